"""Who sends a request: certificates, tokens, nobody, and somebody in the name of another."""

import hmac
from datetime import timedelta
from functools import partial
from hashlib import sha256

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import stamp
from applecart.clock import EPOCH, VirtualClock, VirtualLoop
from applecart.embedded.auth.authenticate import UID_ATTRIBUTE, ClientCertificates, bearer_token, impersonated
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.token_keys import BadToken
from applecart.embedded.auth.user import ANONYMOUS, CREDENTIAL_ID, MASTERS, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.trust.pki import LEAF_LIFETIME, Authority
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, binding, refused_code, role, rule, user
from tests.embedded.auth.token_worlds import ISSUER, TokenWorld, secret
from tests.virtual_time import elapse

AUTHORITY = Authority.create("ca", EPOCH)
KEY = ec.generate_private_key(ec.SECP256R1())


def der(user: str, *groups: str) -> bytes:
    pair = AUTHORITY.issue_client(user, groups, EPOCH)
    return x509.load_pem_x509_certificate(pair.certificate_pem).public_bytes(Encoding.DER)


def self_made(*attributes: tuple[x509.ObjectIdentifier, str]) -> bytes:
    name = x509.Name([x509.NameAttribute(*attribute) for attribute in attributes])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(EPOCH).not_valid_after(EPOCH + timedelta(days=1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


async def test_the_common_name_is_the_user_and_organizations_are_groups(clock: VirtualClock) -> None:
    content = der("alice", "devs", "ops")
    user = ClientCertificates(clock).user(content)
    assert user is not None
    assert (user.name, user.groups, user.uid) == ("alice", ("devs", "ops", "system:authenticated"), "")
    assert user.extra == {CREDENTIAL_ID: (f"X509SHA256={sha256(content).hexdigest()}",)}


async def test_a_certificate_is_parsed_once(clock: VirtualClock) -> None:
    certificates, content = ClientCertificates(clock), der("alice")
    assert certificates.user(content) is certificates.user(bytes(content))


async def test_a_connection_that_outlives_its_certificate_loses_its_identity(clock: VirtualClock) -> None:
    certificates, content = ClientCertificates(clock), der("alice")
    assert certificates.user(content)
    await elapse(LEAF_LIFETIME.total_seconds() + 1)
    assert certificates.user(content) is None


async def test_a_certificate_of_the_future_names_nobody_yet(clock: VirtualClock) -> None:
    clock.jump(timedelta(days=-1))
    certificates, content = ClientCertificates(clock), der("alice")
    assert certificates.user(content) is None
    clock.jump(timedelta(days=1))
    assert certificates.user(content)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ([(NameOID.ORGANIZATION_NAME, "devs")], None),
        ([(NameOID.COMMON_NAME, "a"), (UID_ATTRIBUTE, "u")], ("a", "u")),
        ([(NameOID.COMMON_NAME, "a"), (UID_ATTRIBUTE, "u"), (UID_ATTRIBUTE, "v")], None),
    ],
)
async def test_a_subject_must_name_one_user(
    clock: VirtualClock, subject: list[tuple[x509.ObjectIdentifier, str]], expected: tuple[str, str] | None
) -> None:
    user = ClientCertificates(clock).user(self_made(*subject))
    assert (user and (user.name, user.uid)) == expected


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_name_somebody_or_nobody(noise: bytes, place: int) -> None:
    loop = VirtualLoop()
    certificates = ClientCertificates(VirtualClock(loop))
    good = der("alice")
    certificates.user(noise)
    certificates.user(good[:place] + noise + good[place:])
    certificates.user(good[:place])
    loop.close()


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


ADMIN = user("admin", MASTERS)
ALICE = user("alice")


def act(someone: User, *headers: tuple[str, str], objects: ObjectsInMemory | None = None) -> User | None:
    return impersonated(someone, headers, Authorizer(objects or ObjectsInMemory()).decide)


def may(*rules: dict[str, object]) -> ObjectsInMemory:
    return ObjectsInMemory(role("r", *rules), binding("b", "r", "user:alice"))


def test_a_request_without_such_headers_acts_as_itself() -> None:
    assert act(ADMIN, ("Accept", "x")) is None
    assert act(ADMIN, ("Impersonate-User", "")) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Impersonate-User", "bob")], User("bob", ("system:authenticated",))),
        (
            [("impersonate-user", "bob"), ("IMPERSONATE-GROUP", "a"), ("Impersonate-Group", "b")],
            User("bob", ("a", "b", "system:authenticated")),
        ),
        ([("Impersonate-User", "system:anonymous")], User("system:anonymous", ("system:unauthenticated",))),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Group", "system:unauthenticated")],
            User("bob", ("system:unauthenticated",)),
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            User(
                "system:serviceaccount:ns:robot",
                ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot"), ("Impersonate-Group", "g")],
            User("system:serviceaccount:ns:robot", ("g", "system:authenticated")),
        ),
        (
            [
                ("Impersonate-User", "bob"),
                ("Impersonate-Uid", "u"),
                ("Impersonate-Extra-Acme.com%2fProject", "x"),
                ("Impersonate-Extra-acme.com%2Fproject", "y"),
            ],
            User("bob", ("system:authenticated",), "u", {"acme.com/project": ("x", "y")}),
        ),
    ],
)
def test_the_user_taken_on_is_the_one_the_headers_say(headers: list[tuple[str, str]], expected: User) -> None:
    assert act(ADMIN, *headers) == msgspec.structs.replace(expected, caller=ADMIN)


@pytest.mark.parametrize(
    ("headers", "rules", "message"),
    [
        (
            [("Impersonate-User", "bob")],
            [],
            'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
            [rule("impersonate", "core", "users")],
            'groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" '
            "at the cluster scope",
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:robot")],
            [rule("impersonate", "core", "users")],
            'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" '
            'in the namespace "ns"',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Extra-scopes", "all")],
            [rule("impersonate", "core", "users")],
            'userextras.authentication.k8s.io "all" is forbidden: User "alice" cannot impersonate resource '
            '"userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Uid", "u")],
            [rule("impersonate", "core", "users")],
            'uids.authentication.k8s.io "u" is forbidden: User "alice" cannot impersonate resource "uids" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
    ],
)
def test_each_part_needs_its_own_right(headers: list[tuple[str, str]], rules: list[dict[str, object]], message: str) -> None:
    with pytest.raises(Refusal) as caught:
        act(ALICE, *headers, objects=may(*rules))
    assert (caught.value.code, caught.value.message) == (403, message)


def test_who_impersonates_pays_and_the_service_accounts_of_a_namespace_pay_together() -> None:
    """Whoever might act as the ServiceAccounts of their namespace had as many shares of each limit as there are names."""
    robot = User("system:serviceaccount:ns:robot")
    assert [ALICE.payer, robot.payer.name] == [ALICE, "system:serviceaccounts:ns"]
    assert robot.payer == robot.payer.payer == User("system:serviceaccount:ns:other").payer != robot
    assert User("system:serviceaccount:ns2:robot").payer != robot.payer
    agent = User("system:serviceaccount:kube-system:tart-kubelet-mac-1")
    assert agent.payer == agent  # a fleet of them is not one user
    for name in ("bob", "system:serviceaccount:ns:x1"):
        taken_on = act(ADMIN, ("Impersonate-User", name))
        assert taken_on is not None
        assert taken_on.payer == ADMIN
    as_admin = [("Impersonate-User", "admin"), ("Impersonate-Group", "system:masters")]
    taken_on = act(ALICE, *as_admin, objects=may(rule("impersonate", "core", "users groups")))
    assert taken_on is not None
    assert taken_on.payer == ALICE


def test_rights_may_name_who_can_be_taken_on() -> None:
    objects = may(
        rule("impersonate", "core", "users", names="bob"),
        rule("impersonate", "core", "groups", names="devs"),
        rule("impersonate", "authentication.k8s.io", "userextras/scopes uids"),
    )
    headers = [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Uid", "u"),
        ("Impersonate-Extra-Scopes", "x"),
    ]
    expected = User("bob", ("devs", "system:authenticated"), "u", {"scopes": ("x",)}, ALICE)
    assert act(ALICE, *headers, objects=objects) == expected
    with pytest.raises(Refusal):
        act(ALICE, ("Impersonate-User", "carol"), objects=objects)


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-x"])
def test_groups_uid_and_extras_need_a_user(header: str) -> None:
    with pytest.raises(Refusal) as caught:
        act(ADMIN, (header, "v"))
    assert caught.value.code == 400
    assert caught.value.message.endswith("without impersonating a user")


HEADERS = st.sampled_from(
    ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-%ZZ", "Impersonate-Extra-", "Impersonate-"]
)


@given(st.lists(st.tuples(HEADERS, st.text(max_size=20))))
def test_any_headers_end_in_a_user_or_a_refusal(headers: list[tuple[str, str]]) -> None:
    assert refused_code(lambda: act(ADMIN, *headers)) in (None, 400)
    assert refused_code(lambda: act(ALICE, *headers)) in (None, 400, 403)
