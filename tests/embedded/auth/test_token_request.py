"""Handing out tokens."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import stamp
from applecart.clock import VirtualClock, VirtualLoop
from applecart.embedded.auth.token_request import issue
from applecart.embedded.auth.untyped import Document
from applecart.embedded.refusals import Refusal
from tests.embedded.auth.objects_in_memory import pod, refused_code
from tests.embedded.auth.test_roles import JSON
from tests.embedded.auth.token_worlds import ISSUER, TokenWorld


@pytest.fixture
def world(clock: VirtualClock) -> TokenWorld:
    return TokenWorld(clock)


def ask(world: TokenWorld, spec: Any = None, metadata: Any = None, name: str = "robot") -> Document:
    request = {"kind": "TokenRequest", "metadata": metadata or {}, "spec": spec or {}}
    return issue(request, "ns", name, world.tokens, world.objects, world.clock)


def refusal(world: TokenWorld, spec: Any = None, metadata: Any = None, name: str = "robot") -> Refusal:
    with pytest.raises(Refusal) as caught:
        ask(world, spec, metadata, name)
    return caught.value


async def test_the_answer_is_the_request_with_defaults_and_a_token(world: TokenWorld) -> None:
    answer = ask(world)
    token = answer["status"].pop("token")
    now = world.clock.now()
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "robot", "namespace": "ns", "uid": world.robot.uid, "creationTimestamp": stamp(now)},
        "spec": {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None},
        "status": {"expirationTimestamp": stamp(now + timedelta(hours=1))},
    }
    assert world.tokens.verify(token).user.name == "system:serviceaccount:ns:robot"


async def test_a_token_bound_to_a_pod_knows_its_node_also_when_the_node_is_gone(world: TokenWorld) -> None:
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    first = world.tokens.verify(ask(world, {"boundObjectRef": reference})["status"]["token"]).user
    assert first.extra["authentication.kubernetes.io/node-uid"]
    world.objects.remove("Node", "", "mac-1")
    second = world.tokens.verify(ask(world, {"boundObjectRef": reference})["status"]["token"]).user
    assert second.extra["authentication.kubernetes.io/node-name"] == ("mac-1",)
    assert "authentication.kubernetes.io/node-uid" not in second.extra


@pytest.mark.parametrize(("kind", "name"), [("Secret", "s"), ("Node", "mac-1")])
async def test_a_token_can_be_bound_to_secrets_and_nodes(world: TokenWorld, kind: str, name: str) -> None:
    token = ask(world, {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}})["status"]["token"]
    assert world.tokens.verify(token)


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 5},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: '
            "may not specify a duration less than 10 minutes",
        ),
        (
            {"expirationSeconds": 2**33},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 8589934592: '
            "may not specify a duration larger than 2^32 seconds",
        ),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}, 404, 'pods "nope" not found'),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "nope"}}, 404, 'secrets "nope" not found'),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u"}},
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (u) does not match the UID in '
            "record. The object might have been deleted and then recreated",
        ),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "p"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "p"}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        ({"boundObjectRef": {}}, 400, "cannot bind token to object of type /, Kind="),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
        ({"expirationSeconds": "600"}, 400, "spec.expirationSeconds must be a whole number of seconds"),
    ],
)
async def test_what_cannot_be_issued_is_refused_as_the_real_server_does(
    world: TokenWorld, spec: Document, code: int, message: str
) -> None:
    world.objects.put(pod("ns", "q", "mac-1", serviceAccountName="another"))
    refused = refusal(world, spec)
    assert (refused.code, refused.message) == (code, message)


async def test_names_of_the_request_must_be_the_accounts(world: TokenWorld) -> None:
    assert refusal(world, metadata={"name": "other"}).message == (
        'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": '
        "must match the service account name if specified"
    )
    assert refusal(world, metadata={"namespace": "other"}).code == 422
    assert refusal(world, metadata={"uid": "other"}).message == (
        'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (other) '
        f"does not match the UID of the service account ({world.robot.uid})"
    )
    assert refusal(world, name="nobody").message == 'serviceaccounts "nobody" not found'


@given(JSON, JSON, st.integers() | st.text() | st.none())
def test_requests_of_any_shape_are_answered_or_refused(metadata: Any, reference: Any, lifetime: Any) -> None:
    loop = VirtualLoop()
    world = TokenWorld(VirtualClock(loop))
    request = {
        "metadata": metadata,
        "spec": {"boundObjectRef": reference, "expirationSeconds": lifetime, "audiences": reference},
    }
    for document in (request, {"spec": reference}, {"metadata": {"name": metadata, "uid": reference}}):
        ask_for = partial(issue, document, "ns", "robot", world.tokens, world.objects, world.clock)
        assert refused_code(ask_for) in (None, 400, 404, 409, 422)
    loop.close()
