"""Questions about identity and rights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from applecart.api.meta import stamp
from applecart.clock import VirtualClock
from applecart.embedded.auth import reviews
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.bootstrap_policy import wanted
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, binding, node_user, pod, refused_code, role, rule, user
from tests.embedded.auth.test_roles import JSON
from tests.embedded.auth.token_worlds import ISSUER, TokenWorld

READER = role("reader", rule("get list", "core", "pods", names="a"), rule("get", paths="/metrics"))
AUTHORIZER = Authorizer(ObjectsInMemory(READER, binding("b", "reader", "user:alice"), pod("ns", "p", "mac-1")))
GET_A = {"verb": "get", "resource": "pods", "name": "a"}


def sar(**spec: Any) -> Document:
    return reviews.subject_access_review({"spec": spec}, AUTHORIZER)


def refusal(**spec: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        sar(**spec)
    return caught.value


def test_an_access_review_answers_for_somebody_else() -> None:
    spec = {"user": "alice", "resourceAttributes": GET_A}
    assert sar(**spec) == {
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "alice"',
        },
    }
    assert sar(user="bob", resourceAttributes=GET_A)["status"] == {"allowed": False}
    assert sar(groups=[MASTERS], resourceAttributes=GET_A)["status"] == {"allowed": True}
    assert sar(user="alice", nonResourceAttributes={"verb": "get", "path": "/metrics"})["status"]["allowed"]


@pytest.mark.parametrize(
    ("selector", "is_allowed", "ignored"),
    [
        ({"rawSelector": "spec.nodeName=mac-1"}, True, None),
        ({"rawSelector": "spec.nodeName=mac-2"}, False, None),
        ({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["mac-1"]}]}, True, None),
        ({"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["mac-1"]}]}, False, None),
        ({"rawSelector": "&&&"}, False, "spec.resourceAttributes.fieldSelector ignored due to parse error"),
        (
            {
                "requirements": [
                    {"key": "spec.nodeName", "operator": "In", "values": ["mac-1"]},
                    {"key": "x", "operator": "Odd"},
                ]
            },
            True,
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error",
        ),
        (
            {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["mac-1", "b"]}]},
            False,
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
    ],
)
def test_field_selectors_are_part_of_the_question(selector: Document, is_allowed: bool, ignored: str | None) -> None:
    asked = {"verb": "list", "resource": "pods", "fieldSelector": selector}
    status = sar(user="system:node:mac-1", groups=["system:nodes"], resourceAttributes=asked)["status"]
    assert status["allowed"] is is_allowed
    assert status.get("evaluationError") == ignored


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {},
            '.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of '
            'nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": '
            "at least one of user or group must be specified]",
        ),
        (
            {"user": "a", "resourceAttributes": {}, "nonResourceAttributes": {}},
            '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: '
            "cannot be specified in combination with resourceAttributes",
        ),
        (
            {"user": "a", "resourceAttributes": {"fieldSelector": {}}},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.fieldSelector.requirements: Required value: when '
            "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
        ),
    ],
)
def test_a_question_that_is_none_is_refused_as_the_real_server_does(spec: Document, message: str) -> None:
    refused = refusal(**spec)
    assert (refused.code, refused.message) == (422, message)
    assert refused.details is not None
    assert "kind" not in refused.details


def test_a_review_has_no_name() -> None:
    review = {"metadata": {"name": "x"}, "spec": {"user": "a", "resourceAttributes": {}}}
    with pytest.raises(Refusal, match="must be empty"):
        reviews.subject_access_review(review, AUTHORIZER)


def test_a_local_review_stays_in_its_namespace() -> None:
    spec = {"user": "alice", "resourceAttributes": {**GET_A, "namespace": "ns"}}
    answer = reviews.local_subject_access_review({"metadata": {"namespace": "ns"}, "spec": spec}, "ns", AUTHORIZER)
    assert answer["metadata"] == {"namespace": "ns"}
    assert answer["status"]["allowed"]
    with pytest.raises(Refusal, match=r'spec.resourceAttributes.namespace: Invalid value: "ns": must match'):
        reviews.local_subject_access_review({"spec": spec}, "other", AUTHORIZER)
    with pytest.raises(Refusal, match="disallowed on this kind of request"):
        reviews.local_subject_access_review({"spec": {"user": "a", "nonResourceAttributes": {"path": "/"}}}, "ns", AUTHORIZER)
    with pytest.raises(Refusal, match="must match namespace: ns"):
        reviews.local_subject_access_review({"metadata": {"namespace": "x"}, "spec": spec}, "ns", AUTHORIZER)


def test_everybody_asks_about_themselves() -> None:
    review = {"spec": {"resourceAttributes": GET_A}}
    assert reviews.self_subject_access_review(review, user("alice"), AUTHORIZER)["status"]["allowed"]
    assert not reviews.self_subject_access_review(review, user("bob"), AUTHORIZER)["status"]["allowed"]


def test_rules_are_listed() -> None:
    answer = reviews.self_subject_rules_review({"spec": {"namespace": "ns"}}, user("alice"), AUTHORIZER)
    assert answer["spec"] == {}
    assert answer["status"] == {
        "resourceRules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
        "incomplete": False,
    }
    with pytest.raises(Refusal, match="no namespace on request"):
        reviews.self_subject_rules_review({}, user("alice"), AUTHORIZER)


@pytest.mark.parametrize(("verbs", "expected"), [("get", reviews.MOST_RULES), ("get " * 98, reviews.MOST_WORDS // 100)])
def test_of_too_many_rules_the_first_are_shown(verbs: str, expected: int) -> None:
    """The rules of 150 bindings of one large role were an answer of 100 MB, made in one turn of 4 s."""
    many = [rule(verbs, "core", "pods")] * (reviews.MOST_RULES + 1)
    authorizer = Authorizer(ObjectsInMemory(role("large", *many), binding("b", "large", "user:alice")))
    status = reviews.self_subject_rules_review({"spec": {"namespace": "ns"}}, user("alice"), authorizer)["status"]
    assert len(status["resourceRules"]) == expected
    assert status["incomplete"] is True
    assert status["evaluationError"] == f"only the first {expected} of {len(many)} rules are shown"


def test_the_rules_of_a_node_are_said_to_be_incomplete() -> None:
    status = reviews.self_subject_rules_review({"spec": {"namespace": "ns"}}, node_user("mac-1"), AUTHORIZER)["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == "node authorizer does not support user rule resolution"


def test_the_rules_of_masters_come_from_their_binding() -> None:
    authorizer = Authorizer(ObjectsInMemory(*wanted()))
    status = reviews.self_subject_rules_review({"spec": {"namespace": "ns"}}, user("a", MASTERS), authorizer)["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in status["resourceRules"]


def test_whoami_shows_what_is_known(clock: VirtualClock) -> None:
    someone = User("alice", ("devs",), "u", {"k": ("v", "w")})
    answer = reviews.self_subject_review(someone, clock)
    assert answer["metadata"] == {"creationTimestamp": stamp(clock.now())}
    assert answer["status"]["userInfo"] == {"username": "alice", "uid": "u", "groups": ["devs"], "extra": {"k": ["v", "w"]}}
    assert reviews.user_document(User("x")) == {"username": "x"}


async def test_a_token_review_says_whose_token_it_is(clock: VirtualClock) -> None:
    world = TokenWorld(clock)
    answer = reviews.token_review({"spec": {"token": world.token()}}, world.bearer)
    status = answer["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:ns:robot"
    assert status["audiences"] == [ISSUER]
    bad = reviews.token_review({"spec": {"token": "junk"}}, world.bearer)
    assert bad["status"] == {"user": {}, "error": "invalid bearer token"}
    assert "authenticated" not in bad["status"]
    with pytest.raises(Refusal, match="token is required"):
        reviews.token_review({"spec": {}}, world.bearer)


@given(JSON, JSON)
def test_reviews_of_any_shape_are_answered_or_refused(one: Any, other: Any) -> None:
    selectors = {"fieldSelector": one, "labelSelector": other, "verb": other, "resource": one}
    specs = [one, {"user": one, "groups": other, "extra": other, "resourceAttributes": other}]
    specs.append({"user": "a", "resourceAttributes": selectors})
    specs.append({"user": "a", "nonResourceAttributes": other})
    for spec in specs:
        document = {"metadata": other, "spec": spec}
        answers: list[Callable[[Document], Document]] = [
            lambda document: reviews.subject_access_review(document, AUTHORIZER),
            lambda document: reviews.local_subject_access_review(document, "ns", AUTHORIZER),
            lambda document: reviews.self_subject_access_review(document, user("a"), AUTHORIZER),
            lambda document: reviews.self_subject_rules_review(document, user("a"), AUTHORIZER),
        ]
        for answer in answers:
            assert refused_code(partial(answer, document)) in (None, 400, 422)
