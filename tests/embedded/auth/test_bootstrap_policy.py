"""The roles every server starts with."""

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.bootstrap_policy import AUTOUPDATE, reconciled, wanted
from applecart.embedded.auth.untyped import Document
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, asks, asks_path, user

BY_NAME = {(one["kind"], one["metadata"]["name"]): one for one in wanted()}
DISCOVERY = BY_NAME["ClusterRole", "system:discovery"]
BASIC = BY_NAME["ClusterRole", "system:basic-user"]
BINDING = BY_NAME["ClusterRoleBinding", "system:discovery"]


def changed(document: Document, **metadata: object) -> Document:
    return {**document, "metadata": {**document["metadata"], **metadata}}


def test_a_missing_object_is_created_as_it_is() -> None:
    assert reconciled(DISCOVERY, None) is DISCOVERY


def test_an_object_as_it_should_be_is_left_alone() -> None:
    stored = changed(DISCOVERY, uid="u", resourceVersion="7")
    assert all(reconciled(one, one) is None for one in wanted())
    assert reconciled(DISCOVERY, stored) is None


def test_rules_that_were_taken_away_come_back_and_added_ones_stay() -> None:
    more = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    stored = {**BASIC, "rules": [more, BASIC["rules"][0]]}
    new = reconciled(BASIC, stored)
    assert new is not None
    assert new["rules"] == [more, *BASIC["rules"]]


def test_a_wider_rule_counts_for_the_narrower_one() -> None:
    stored = {**BASIC, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
    assert reconciled(BASIC, stored) is None


def test_an_object_that_people_took_over_is_never_touched() -> None:
    stored = changed({**DISCOVERY, "rules": []}, annotations={AUTOUPDATE: "false"})
    assert reconciled(DISCOVERY, stored) is None


def test_labels_come_back_and_own_values_stay() -> None:
    new = reconciled(DISCOVERY, changed(DISCOVERY, labels={"team": "ours"}, uid="u"))
    assert new is not None
    assert new["metadata"]["labels"] == {**DISCOVERY["metadata"]["labels"], "team": "ours"}
    assert new["metadata"]["uid"] == "u"


def test_subjects_come_back_and_added_ones_stay() -> None:
    ours = {"kind": "User", "name": "me"}
    new = reconciled(BINDING, {**BINDING, "subjects": [ours]})
    assert new is not None
    assert new["subjects"] == [ours, *BINDING["subjects"]]


def test_a_binding_to_another_role_is_replaced() -> None:
    stored = {**BINDING, "roleRef": {**BINDING["roleRef"], "name": "cluster-admin"}}
    assert reconciled(BINDING, stored) is BINDING


def test_selectors_of_a_gathering_role_come_back() -> None:
    admin = BY_NAME["ClusterRole", "admin"]
    ours = {"matchLabels": {"team": "ours"}}
    stored = {**admin, "aggregationRule": {"clusterRoleSelectors": [ours]}, "rules": [{"verbs": ["get"]}]}
    new = reconciled(admin, stored)
    assert new is not None
    assert new["aggregationRule"]["clusterRoleSelectors"] == [ours, *admin["aggregationRule"]["clusterRoleSelectors"]]
    assert new["rules"] == stored["rules"]


def test_everybody_known_may_look_around_and_ask_about_themselves() -> None:
    authorizer = Authorizer(ObjectsInMemory(*wanted()))
    someone = user("someone")
    for question in (
        asks_path("get", "/api"),
        asks_path("get", "/openapi/v3"),
        asks("create", "selfsubjectaccessreviews.authorization.k8s.io"),
        asks("create", "selfsubjectreviews.authentication.k8s.io"),
    ):
        assert authorizer.decide(someone, question).allowed
    for question in (
        asks("list", "pods", "a"),
        asks_path("get", "/metrics"),
        asks("create", "tokenreviews.authentication.k8s.io"),
    ):
        assert not authorizer.decide(someone, question).allowed
