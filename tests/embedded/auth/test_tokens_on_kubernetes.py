"""Tokens of a real server and ours, for the same objects and with the same keys."""

import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from applecart.clock import SystemClock
from applecart.embedded.auth import reviews
from applecart.embedded.auth.authenticate import BearerTokens, BootstrapTokens
from applecart.embedded.auth.service_account_tokens import Bound, ServiceAccountTokens, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys, openid_configuration
from applecart.embedded.auth.token_request import issue
from applecart.embedded.auth.untyped import Document
from applecart.embedded.refusals import Refusal
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, plain, pod
from tests.embedded.auth.real_server import Caller, needs_newest, seen_objects
from tests.embedded.auth.token_worlds import ISSUER
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class Stage(NamedTuple):
    admin: Caller
    cluster: FullCluster
    objects: ObjectsInMemory
    tokens: ServiceAccountTokens
    n: str

    def ask(self, spec: Document, meta: Document | None = None, name: str = "robot") -> tuple[int, Any]:
        body = token_request(spec, meta)
        return self.admin("POST", f"/api/v1/namespaces/{self.n}/serviceaccounts/{name}/token", body)

    def review(self, token: str, *audiences: str) -> Any:
        spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
        code, answer = self.admin(
            "POST", REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        )
        assert code == 201, answer
        return answer["status"]

    def our_review(self, token: str, *audiences: str) -> Any:
        bearer = BearerTokens(self.tokens, BootstrapTokens(self.objects, SystemClock()))
        return reviews.token_review({"spec": {"token": token, "audiences": list(audiences)}}, bearer)["status"]


@pytest.fixture
def stage(real_cluster: FullCluster, namespace: str) -> Iterator[Stage]:
    n = namespace
    admin = Caller(real_cluster, "kubernetes-admin", "system:masters")
    admin.create(plain("ServiceAccount", n, "robot"))
    admin.create(plain("Node", "", f"{n}-1"))
    admin.create(pod(n, "p", f"{n}-1", serviceAccountName="robot"))
    admin.create(pod(n, "q", serviceAccountName="robot"))
    admin.create(pod(n, "other", serviceAccountName="another"))
    objects = seen_objects(admin)
    keys = TokenKeys.load(real_cluster.files.trust.token_keys)
    yield Stage(admin, real_cluster, objects, ServiceAccountTokens(keys, ISSUER, objects, SystemClock()), n)
    admin("DELETE", f"/api/v1/nodes/{n}-1")
    admin.close()


def token_request(spec: Document, meta: Document | None = None) -> Document:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": meta or {}, "spec": spec}


def claims(token: str) -> Document:
    found: Document = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==="))
    return found


def comparable(answer: Document) -> Document:
    """Without what differs from request to request."""
    meta = {name: value for name, value in answer["metadata"].items() if name not in ("managedFields", "creationTimestamp")}
    return {**answer, "metadata": meta, "status": sorted(answer["status"])}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"audiences": ["vault", "other"]},
        {"expirationSeconds": 601},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}},
    ],
    ids=str,
)
def test_answers_and_claims_are_the_same(stage: Stage, spec: Document, kube: str) -> None:
    needs_newest(kube)
    code, real = stage.ask(spec)
    assert code == 201
    ours = issue(token_request(spec), stage.n, "robot", stage.tokens, stage.objects, SystemClock())
    assert comparable(ours) == comparable(real)
    of_real, of_ours = claims(real["status"]["token"]), claims(ours["status"]["token"])
    assert sorted(of_real) == sorted(of_ours)
    assert of_ours["exp"] - of_ours["iat"] == of_real["exp"] - of_real["iat"]
    for name in ("iss", "sub", "aud", "kubernetes.io"):
        assert of_ours[name] == of_real[name]


@pytest.mark.parametrize(
    ("spec", "meta", "name"),
    [
        ({"expirationSeconds": 5}, {}, "robot"),
        ({"expirationSeconds": 0}, {}, "robot"),
        ({"expirationSeconds": 2**33}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u"}}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "nope"}}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "nope"}}, {}, "robot"),
        ({"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "nope"}}, {}, "robot"),
        ({"boundObjectRef": {}}, {}, "robot"),
        ({}, {"name": "x"}, "robot"),
        ({}, {"uid": "x"}, "robot"),
        ({}, {}, "nobody"),
    ],
    ids=str,
)
def test_refusals_are_the_same(stage: Stage, spec: Document, meta: Document, name: str, kube: str) -> None:
    if "uid" in meta:
        needs_newest(kube)
    code, real = stage.ask(spec, meta, name)
    assert code >= 400
    with pytest.raises(Refusal) as caught:
        issue(token_request(spec, meta), stage.n, name, stage.tokens, stage.objects, SystemClock())
    assert caught.value.document() == real


def test_each_server_believes_the_others_tokens_and_says_the_same_of_them(stage: Stage) -> None:
    _, answer = stage.ask({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}})
    theirs = answer["status"]["token"]
    ours = issue(token_request({}), stage.n, "robot", stage.tokens, stage.objects, SystemClock())["status"]["token"]
    for token in (theirs, ours):
        assert stage.review(token) == stage.our_review(token)
        assert stage.review(token)["authenticated"] is True
        assert stage.review(token, "vault") == stage.our_review(token, "vault")
        assert stage.review(token, "vault", ISSUER) == stage.our_review(token, "vault", ISSUER)
    assert stage.review("junk") == stage.our_review("junk")
    caller = Caller(stage.cluster, token=ours)
    code, who = caller(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    caller.close()
    assert (code, who["status"]["userInfo"]["username"]) == (201, f"system:serviceaccount:{stage.n}:robot")


def test_a_token_of_a_secret_is_believed_by_both(stage: Stage) -> None:
    account = stage.objects.get("serviceaccounts", stage.n, "robot")
    assert account is not None
    uid = account["metadata"]["uid"]
    token = stage.tokens.keys.sign(legacy_claims_for(Bound("robot", uid), stage.n, "old"))
    secret = plain("Secret", stage.n, "old", type="kubernetes.io/service-account-token")
    secret["metadata"]["annotations"] = {
        "kubernetes.io/service-account.name": "robot",
        "kubernetes.io/service-account.uid": uid,
    }
    secret["data"] = {"token": base64.b64encode(token.encode()).decode()}
    stage.objects.put(stage.admin.create(secret))
    assert stage.review(token) == stage.our_review(token)
    assert stage.review(token)["authenticated"] is True


def test_the_public_half_is_published_the_same(stage: Stage) -> None:
    assert stage.admin("GET", "/openid/v1/jwks") == (200, stage.tokens.keys.jwks())
    code, real = stage.admin("GET", "/.well-known/openid-configuration")
    assert (code, real) == (200, openid_configuration(ISSUER, stage.cluster.url))
