"""Whom a client certificate names."""

from datetime import timedelta
from hashlib import sha256

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH, VirtualClock, VirtualLoop
from applecart.embedded.auth.certificates import CREDENTIAL_ID, UID_ATTRIBUTE, ClientCertificates
from applecart.embedded.trust.pki import LEAF_LIFETIME, Authority
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
