"""Who sends a request."""

import hmac
from datetime import timedelta
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH, VirtualClock, VirtualLoop
from applecart.embedded.auth.authenticate import bearer_token
from applecart.embedded.auth.token_keys import BadToken
from applecart.embedded.auth.user import ANONYMOUS, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.times import stamp
from applecart.embedded.trust.pki import LEAF_LIFETIME, Authority
from tests.embedded.auth.objects_in_memory import refused_code
from tests.embedded.auth.token_worlds import ISSUER, TokenWorld, secret
from tests.virtual_time import elapse

GOOD = "abcdef.0123456789abcdef"
CERTIFICATE = x509.load_pem_x509_certificate(
    Authority.create("ca", EPOCH).issue_client("alice", ["devs"], EPOCH).certificate_pem
).public_bytes(Encoding.DER)


@pytest.fixture
def world(clock: VirtualClock) -> TokenWorld:
    return TokenWorld(clock)


def is_refused(world: TokenWorld, certificate: bytes | None, header: str) -> bool:
    with pytest.raises(Refusal) as caught:
        world.authenticator.user(certificate, header)
    return (caught.value.code, caught.value.message) == (401, "Unauthorized")


async def test_nobody_in_particular_is_anonymous(world: TokenWorld) -> None:
    for header in (None, "", "Basic abc", "Bearer", "Bearer ", "Bearer  two-spaces"):
        assert world.authenticator.user(None, header) is ANONYMOUS


async def test_a_certificate_counts_before_a_token(world: TokenWorld) -> None:
    assert world.authenticator.user(CERTIFICATE, None).name == "alice"
    assert world.authenticator.user(CERTIFICATE, "Bearer rubbish").name == "alice"


async def test_a_token_counts_where_the_certificate_has_ended(world: TokenWorld) -> None:
    await elapse(LEAF_LIFETIME.total_seconds() + 1)
    assert is_refused(world, CERTIFICATE, "")
    assert world.authenticator.user(CERTIFICATE, f"Bearer {world.token()}").name == "system:serviceaccount:ns:robot"


async def test_a_bad_token_is_401_everywhere(world: TokenWorld) -> None:
    for token in ("rubbish", GOOD, world.token(audiences=("vault",)), "a.b.c"):
        assert is_refused(world, None, f"Bearer {token}")


async def test_good_tokens_of_every_kind_are_believed(world: TokenWorld) -> None:
    world.put_bootstrap_token()
    names = [
        world.authenticator.user(None, f"bEaReR {token}").name for token in (world.token(), world.put_legacy_token(), GOOD)
    ]
    account = "system:serviceaccount:ns:robot"
    assert names == [account, account, "system:bootstrap:abcdef"]


async def test_a_review_hears_why_a_token_is_bad(world: TokenWorld) -> None:
    with pytest.raises(BadToken, match=r"^invalid bearer token$"):
        world.bearer.verify("rubbish")
    expired = world.token(lifetime_s=600)
    await elapse(700)
    with pytest.raises(BadToken, match=r"^\[invalid bearer token, service account token has expired\]$"):
        world.bearer.verify(expired)


# Bootstrap tokens


async def test_a_bootstrap_token_names_a_user_of_its_own(world: TokenWorld) -> None:
    world.put_bootstrap_token(**{"auth-extra-groups": "system:bootstrappers:macs,system:bootstrappers:a-b"})
    verified = world.bearer.verify(GOOD)
    groups = ("system:bootstrappers", "system:bootstrappers:a-b", "system:bootstrappers:macs", "system:authenticated")
    assert verified.user == User("system:bootstrap:abcdef", groups)
    assert verified.audiences == (ISSUER,)
    with pytest.raises(BadToken):
        world.bearer.verify(GOOD, ("vault",))


@pytest.mark.parametrize(
    "changes",
    [
        {"token-secret": "0123456789abcdee"},
        {"token-secret": ""},
        {"token-id": "abcdeg"},
        {"usage-bootstrap-authentication": "false"},
        {"usage-bootstrap-authentication": ""},
        {"expiration": "2025-12-31T23:59:59Z"},
        {"expiration": "tomorrow"},
        {"expiration": "2026-01-01T00:00:00"},
        {"auth-extra-groups": "system:masters"},
        {"auth-extra-groups": "system:bootstrappers:ok,system:masters"},
        {"auth-extra-groups": "system:bootstrappers:"},
        {"auth-extra-groups": "system:bootstrappers:ok\n"},
    ],
    ids=str,
)
async def test_a_bootstrap_token_that_does_not_fit_its_secret_names_nobody(world: TokenWorld, changes: dict[str, str]) -> None:
    world.put_bootstrap_token(**changes)
    assert is_refused(world, None, f"Bearer {GOOD}")


async def test_a_bootstrap_token_ends_with_its_time_its_secret_and_its_type(world: TokenWorld) -> None:
    world.put_bootstrap_token(expiration=stamp(world.clock.now() + timedelta(minutes=5)))
    assert world.authenticator.user(None, f"Bearer {GOOD}")
    await elapse(301)
    assert is_refused(world, None, f"Bearer {GOOD}")
    world.put_bootstrap_token()
    assert world.authenticator.user(None, f"Bearer {GOOD}")
    content = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
    world.objects.put(secret("kube-system", "bootstrap-token-abcdef", "Opaque", content))
    assert is_refused(world, None, f"Bearer {GOOD}")
    world.put_bootstrap_token()
    world.objects.remove("Secret", "kube-system", "bootstrap-token-abcdef")
    assert is_refused(world, None, f"Bearer {GOOD}")


async def test_secrets_are_compared_in_constant_time(world: TokenWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison that stops at the first difference tells an attacker how far a guess is right."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    world.put_bootstrap_token()
    legacy = world.put_legacy_token()
    world.bearer.verify(GOOD)
    world.bearer.verify(legacy)
    assert compared == [(b"0123456789abcdef", b"0123456789abcdef"), (legacy.encode(), legacy.encode())]


@given(st.text(max_size=40), st.binary(max_size=40) | st.none())
def test_any_header_and_certificate_end_in_a_user_or_401(header: str, certificate: bytes | None) -> None:
    loop = VirtualLoop()
    world = TokenWorld(VirtualClock(loop))
    for value in (header, f"Bearer {header}"):
        bearer_token(value)
        assert refused_code(partial(world.authenticator.user, certificate, value)) in (None, 401)
    loop.close()
