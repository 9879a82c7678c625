"""Who a verified client certificate names.

The TLS layer has checked the chain; this reads the subject (common name as user, organizations as groups) and asks again
whether the certificate is valid now, because a connection may live longer than the certificate that opened it. Answers are
kept by fingerprint: a certificate is parsed once, not once per request.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from applecart.clock import Clock
from applecart.embedded.auth.user import AUTHENTICATED, User

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
UID_ATTRIBUTE = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")  # the subject attribute Kubernetes reads a user's UID from
MOST_REMEMBERED = 4096  # certificates; a fleet has some hundred living ones


@dataclass(frozen=True, slots=True)
class _Read:
    """A certificate's content; no user when its subject names none."""

    user: User | None
    valid_from: datetime
    valid_until: datetime


class ClientCertificates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, _Read] = {}

    def user(self, certificate_der: bytes) -> User | None:
        """The user of a certificate; None when it is not valid now, names nobody or cannot be read."""
        fingerprint = sha256(certificate_der).digest()
        read = self._known.get(fingerprint)
        if read is None:
            read = _read(certificate_der, fingerprint)
            if read is None:
                return None
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[fingerprint] = read
        if read.valid_from <= self._clock.now() <= read.valid_until:
            return read.user
        self._known.pop(fingerprint, None)
        return None


def _read(certificate_der: bytes, fingerprint: bytes) -> _Read | None:
    try:
        certificate = x509.load_der_x509_certificate(certificate_der)
        names = _values(certificate, NameOID.COMMON_NAME)
        groups = _values(certificate, NameOID.ORGANIZATION_NAME)
        uids = _values(certificate, UID_ATTRIBUTE)
        period = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except (ValueError, UnsupportedAlgorithm):
        return None
    if not names or not names[-1] or len(uids) > 1:
        return _Read(None, *period)
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"X509SHA256={fingerprint.hex()}",)}
    if AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return _Read(User(names[-1], groups, uids[0] if uids else "", extra), *period)


def _values(certificate: x509.Certificate, attribute: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(one.value for one in certificate.subject.get_attributes_for_oid(attribute) if isinstance(one.value, str))
