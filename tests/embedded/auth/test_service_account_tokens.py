"""Which tokens are believed, and for how long."""

import base64
import hashlib
import hmac
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import stamp
from applecart.clock import VirtualClock, VirtualLoop
from applecart.embedded.auth.service_account_tokens import MOST_REMEMBERED
from applecart.embedded.auth.token_keys import BadToken, TokenKeys, openid_configuration
from applecart.embedded.trust.pki import PairFiles, load_or_create_token_keys
from applecart.errors import BadInput
from applecart.secrets import Secret
from tests.embedded.auth.objects_in_memory import plain, pod
from tests.embedded.auth.token_worlds import ISSUER, KEY, TokenWorld
from tests.virtual_time import elapse

PUBLIC_PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def world(clock: VirtualClock) -> TokenWorld:
    return TokenWorld(clock)


def refusal(world: TokenWorld, token: str, *audiences: str) -> str:
    with pytest.raises(BadToken) as caught:
        world.tokens.verify(token, audiences or None)
    return str(caught.value)


async def test_a_token_names_its_account_and_groups(world: TokenWorld) -> None:
    verified = world.tokens.verify(world.token())
    assert verified.user.name == "system:serviceaccount:ns:robot"
    assert verified.user.uid == world.robot.uid
    assert verified.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert list(verified.user.extra) == ["authentication.kubernetes.io/credential-id"]
    assert verified.audiences == (ISSUER,)


async def test_a_token_of_a_pod_carries_the_pod_and_its_node(world: TokenWorld) -> None:
    bound_pod, bound_node = world.bound("pods", "ns", "p"), world.bound("nodes", "", "mac-1")
    user = world.tokens.verify(world.token(bound={"pod": bound_pod, "node": bound_node})).user
    prefix = "authentication.kubernetes.io"
    assert user.extra[f"{prefix}/pod-name"] == ("p",)
    assert user.extra[f"{prefix}/pod-uid"] == (bound_pod.uid,)
    assert user.extra[f"{prefix}/node-name"] == ("mac-1",)
    assert user.extra[f"{prefix}/node-uid"] == (bound_node.uid,)


async def test_a_token_ends_a_minute_after_its_time_and_not_before(world: TokenWorld) -> None:
    token = world.token(lifetime_s=600)
    await elapse(600 + 59)
    assert world.tokens.verify(token)
    await elapse(2)
    assert refusal(world, token) == "service account token has expired"


async def test_a_token_of_the_future_is_not_believed(world: TokenWorld, clock: VirtualClock) -> None:
    token = world.token()
    clock.jump(timedelta(minutes=-2))
    assert refusal(world, token) == "service account token is not valid yet"
    issued_late = world.keys.sign(world.claims(iat=int(clock.now().timestamp()) + 120))
    assert refusal(world, issued_late) == "service account token is issued in the future"


async def test_a_token_is_good_only_for_its_audiences(world: TokenWorld) -> None:
    token = world.token(audiences=("vault", "other"))
    assert refusal(world, token) == (f'token audiences ["vault" "other"] is invalid for the target audiences ["{ISSUER}"]')
    assert world.tokens.verify(token, ("x", "vault")).audiences == ("vault",)
    assert world.tokens.verify(world.keys.sign(world.claims(aud=ISSUER)))


@pytest.mark.parametrize(
    ("kind", "label", "namespace", "name"),
    [("pod", "pods", "ns", "p"), ("secret", "secrets", "ns", "s"), ("node", "nodes", "", "mac-1")],
)
async def test_a_token_dies_at_once_with_what_it_is_bound_to(
    world: TokenWorld, kind: str, label: str, namespace: str, name: str
) -> None:
    token = world.token(bound={kind: world.bound(label, namespace, name)})
    assert world.tokens.verify(token)
    world.objects.remove(kind.capitalize(), namespace, name)
    assert refusal(world, token) == "service account token has been invalidated"
    remade = pod("ns", "p", "mac-1") if kind == "pod" else plain(kind.capitalize(), namespace, name)
    world.objects.put(remade)
    assert f"does not match service account {kind} ref claim" in refusal(world, token)


async def test_a_token_dies_at_once_with_its_account_and_a_new_account_of_the_name_does_not_revive_it(
    world: TokenWorld,
) -> None:
    token = world.token()
    assert world.tokens.verify(token)
    world.objects.remove("ServiceAccount", "ns", "robot")
    assert refusal(world, token) == 'serviceaccounts "robot" not found'
    world.objects.put(plain("ServiceAccount", "ns", "robot"))
    assert "does not match claim" in refusal(world, token)


async def test_an_account_that_is_being_deleted_keeps_its_tokens_for_a_minute(world: TokenWorld) -> None:
    token = world.token()
    found = world.objects.get("serviceaccounts", "ns", "robot")
    assert found is not None
    found["metadata"]["deletionTimestamp"] = stamp(world.clock.now())
    world.objects.put(found)
    assert world.tokens.verify(token)
    await elapse(72)
    assert refusal(world, token) == "service account ns/robot has been deleted"


async def test_a_pods_node_may_vanish_without_ending_the_pods_token(world: TokenWorld) -> None:
    token = world.token(bound={"pod": world.bound("pods", "ns", "p"), "node": world.bound("nodes", "", "mac-1")})
    world.objects.remove("Node", "", "mac-1")
    assert world.tokens.verify(token)


# Forged tokens


async def test_a_token_of_another_key_is_refused(world: TokenWorld) -> None:
    other = TokenKeys(ec.generate_private_key(ec.SECP256R1()))
    assert refusal(world, other.sign(world.claims())) == "the token is not signed by this server"


async def test_a_token_without_signature_is_refused(world: TokenWorld) -> None:
    for algorithm in ("none", "None", "NONE"):
        header = base64.urlsafe_b64encode(msgspec.json.encode({"alg": algorithm, "typ": "JWT"})).rstrip(b"=")
        payload = base64.urlsafe_b64encode(msgspec.json.encode(world.claims())).rstrip(b"=")
        for signature in (b"", b"AAAA"):
            refusal(world, (header + b"." + payload + b"." + signature).decode())


async def test_a_token_keyed_with_the_public_half_is_refused(world: TokenWorld) -> None:
    """The classic confusion: a symmetric signature made with the key that everybody may know."""
    for secret in (PUBLIC_PEM, PUBLIC_PEM.strip()):
        header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
        payload = base64.urlsafe_b64encode(msgspec.json.encode(world.claims())).rstrip(b"=")
        signed = header + b"." + payload
        signature = base64.urlsafe_b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).rstrip(b"=")
        refusal(world, (signed + b"." + signature).decode())


async def test_a_key_inside_the_token_is_not_used(world: TokenWorld) -> None:
    mine = ec.generate_private_key(ec.SECP256R1())
    header = {"jwk": TokenKeys(mine).jwks()["keys"][0], "kid": world.keys.key_id}
    token = jwt.encode(world.claims(), mine, algorithm="ES256", headers=header)
    refusal(world, token)


async def test_a_changed_payload_is_refused(world: TokenWorld) -> None:
    header, payload, signature = world.token().split(".")
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "==="))
    claims["sub"] = "system:serviceaccount:kube-system:admin"
    claims["kubernetes.io"]["serviceaccount"]["name"] = "admin"
    changed = base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
    refusal(world, f"{header}.{changed}.{signature}")


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://somebody.else"},
        {"iss": None},
        {"exp": None},
        {"exp": "soon"},
        {"kubernetes.io": None},
        {"kubernetes.io": {}},
        {"kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot"}}},
        {"kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": ""}}},
        {"kubernetes.io": {"namespace": "other", "serviceaccount": {"name": "robot", "uid": "u"}}},
        {"kubernetes.io": {"namespace": ["ns"]}},
        {"aud": 7},
    ],
    ids=str,
)
async def test_a_signed_token_with_claims_that_do_not_hold_is_refused(world: TokenWorld, changes: dict[str, Any]) -> None:
    refusal(world, world.keys.sign(world.claims(**changes)))


@given(st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}", fullmatch=True))
def test_any_text_is_refused_and_nothing_else_happens(text: str) -> None:
    loop = VirtualLoop()
    refusal(TokenWorld(VirtualClock(loop)), text)
    loop.close()


@pytest.mark.parametrize(
    "header", [b"[" * 9000, b'{"alg":"ES256","kid":' + b"[" * 8000, b'{"alg":["ES256"]}', b'{"alg":1}', b"null"]
)
async def test_odd_headers_are_refused(world: TokenWorld, header: bytes) -> None:
    encoded = base64.urlsafe_b64encode(header).rstrip(b"=").decode()
    _, payload, signature = world.token().split(".")
    refusal(world, f"{encoded}.{payload}.{signature}")


async def test_a_signed_payload_that_is_no_claims_is_refused(world: TokenWorld) -> None:
    for payload in (b"[]", b"null", b"7", b"{", b"[" * 5000, b"\xff"):
        token = jwt.PyJWS().encode(payload, KEY, algorithm="ES256", headers={"kid": world.keys.key_id})
        refusal(world, token)


# What is remembered


async def test_tokens_are_remembered_by_digest_and_not_without_end(world: TokenWorld) -> None:
    token = world.token()
    world.tokens.verify(token)
    assert token not in repr(world.tokens._known)
    assert len(world.tokens._known) == 1
    for number in range(MOST_REMEMBERED):
        world.tokens._known[str(number).encode()] = next(iter(world.tokens._known.values()))
    world.tokens.verify(world.token(lifetime_s=601))
    assert len(world.tokens._known) <= MOST_REMEMBERED


async def test_a_known_token_is_looked_up_again_only_when_something_changed(world: TokenWorld) -> None:
    token = world.token()
    first = world.tokens.verify(token).user
    assert world.tokens.verify(token).user is first
    world.objects.put(plain("Secret", "ns", "unrelated"))
    assert world.tokens.verify(token).user == first


# Tokens of Secrets


async def test_a_token_of_a_secret_is_good_while_the_secret_holds_it(world: TokenWorld) -> None:
    token = world.put_legacy_token()
    user = world.tokens.verify(token).user
    assert user.name == "system:serviceaccount:ns:robot"
    assert user.extra == {}
    await elapse(10 * 365 * 86400)
    assert world.tokens.verify(token)
    world.objects.remove("Secret", "ns", "old")
    assert refusal(world, token) == "Token has been invalidated"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": {"token": base64.b64encode(b"another").decode()}}, "Token does not match server's copy"),
        ({"data": {"token": "%%%"}}, "Token does not match server's copy"),
        ({"data": None}, "Token does not match server's copy"),
        ({"type": "Opaque"}, "Token has been invalidated"),
        (
            {"metadata": {"name": "old", "namespace": "ns", "labels": {"kubernetes.io/legacy-token-invalid-since": "x"}}},
            "Token has been invalidated",
        ),
        (
            {"metadata": {"name": "old", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
            "Token has been invalidated",
        ),
    ],
)
async def test_a_secret_that_changed_ends_its_token(world: TokenWorld, change: dict[str, Any], reason: str) -> None:
    token = world.put_legacy_token()
    found = world.objects.get("secrets", "ns", "old")
    assert found is not None
    world.objects.put({**found, **change})
    assert refusal(world, token) == reason


async def test_a_token_of_a_secret_dies_with_its_account(world: TokenWorld) -> None:
    token = world.put_legacy_token()
    world.objects.remove("ServiceAccount", "ns", "robot")
    assert refusal(world, token) == 'serviceaccounts "robot" not found'


# Keys


async def test_a_library_of_another_hand_believes_our_tokens(world: TokenWorld) -> None:
    found = jwt.PyJWK(world.keys.jwks()["keys"][0])
    token = world.token()
    options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    claims = jwt.decode(token, found.key, algorithms=["ES256"], audience=ISSUER, issuer=ISSUER, options=options)
    assert claims["sub"] == "system:serviceaccount:ns:robot"
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "kid": world.keys.key_id}
    assert openid_configuration(ISSUER, "https://x")["jwks_uri"] == "https://x/openid/v1/jwks"


def test_keys_are_those_kept_with_the_cluster(tmp_path: Path) -> None:
    files = load_or_create_token_keys(tmp_path, "service-account")
    assert TokenKeys.load(files).key_id == TokenKeys.load(load_or_create_token_keys(tmp_path, "service-account")).key_id
    with pytest.raises(BadInput):
        TokenKeys.load(PairFiles(files.certificate, tmp_path / "absent"))


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)])
def test_keys_of_other_kinds_are_refused_with_a_sentence(key: Any) -> None:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with pytest.raises(BadInput, match="EC P-256"):
        TokenKeys.from_pem(Secret(pem))
    with pytest.raises(BadInput, match="not a private key"):
        TokenKeys.from_pem(Secret("nothing of the kind"))
