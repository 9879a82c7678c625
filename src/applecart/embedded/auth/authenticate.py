"""Who sends a request: client certificate, then bearer token, then nobody; and as whom (`kubectl --as`).

The TLS layer has checked a certificate's chain; here its subject is read and its time is checked again, because a connection
may live longer than the certificate that opened it. A bootstrap token is good while its Secret in kube-system says so; service
accounts' tokens have a file of their own. A credential that is not good is 401 everywhere, also where nobody in particular
would be let in: a client with a broken one must learn it. No token ever appears in an answer, an error or a log.

Each thing that somebody takes on (user, groups, uid, extras) needs the right to `impersonate` it; a service account is taken on
as itself, so the right can be given per namespace. What is not said is not inherited from the caller.
"""

import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from applecart.api.meta import read_stamp
from applecart.clock import Clock
from applecart.embedded.auth.rbac import Decision, denial
from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens, Verified
from applecart.embedded.auth.token_keys import BadToken, NotOurs
from applecart.embedded.auth.untyped import Document, metadata, secret_data
from applecart.embedded.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    CREDENTIAL_ID,
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    Attributes,
    User,
)
from applecart.embedded.refusals import bad_request, unauthorized
from applecart.embedded.store.store import Reader

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


NAMESPACE = "kube-system"
SECRET_PREFIX = "bootstrap-token-"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
USER_PREFIX = "system:bootstrap:"
BOOTSTRAPPERS = "system:bootstrappers"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)


class BootstrapTokens:
    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock

    def user(self, token: str) -> User | None:
        """Who shows this token; None for every token that is not good."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        token_id, secret_part = parts.groups()
        secret = self._reader.get("secrets", NAMESPACE, f"{SECRET_PREFIX}{token_id}")
        if secret is None or secret.get("type") != SECRET_TYPE or metadata(secret).get("deletionTimestamp"):
            return None
        is_same = hmac.compare_digest(_data(secret, "token-secret").encode(), secret_part.encode())
        if not is_same or _data(secret, "token-id") != token_id:
            return None
        if self._has_expired(secret) or _data(secret, "usage-bootstrap-authentication") != "true":
            return None
        extra = _data(secret, "auth-extra-groups")
        groups = extra.split(",") if extra else []
        if not all(_EXTRA_GROUP.fullmatch(group) for group in groups):
            return None
        return User(f"{USER_PREFIX}{token_id}", (*sorted({BOOTSTRAPPERS, *groups}), AUTHENTICATED))

    def _has_expired(self, secret: Document) -> bool:
        expiration = _data(secret, "expiration")
        if not expiration:
            return False
        try:
            return read_stamp(expiration) <= self._clock.now()
        except (ValueError, OverflowError):
            return True


def _data(secret: Document, name: str) -> str:
    return secret_data(secret, name).decode("utf-8", "ignore")


INVALID = "invalid bearer token"


class BearerTokens:
    """All kinds of bearer tokens."""

    def __init__(self, accounts: ServiceAccountTokens, bootstrap: BootstrapTokens) -> None:
        self._accounts = accounts
        self._bootstrap = bootstrap

    def verify(self, token: str, audiences: tuple[str, ...] | None = None) -> Verified:
        """Whose token it is; raises BadToken with what a TokenReview shows."""
        try:
            return self._accounts.verify(token, audiences)
        except NotOurs:
            user = self._bootstrap.user(token)
        except BadToken as error:
            raise BadToken(f"[{INVALID}, {error}]") from None
        # A bootstrap token is for this server alone.
        granted = tuple(one for one in audiences or self._accounts.audiences if one in self._accounts.audiences)
        if user is None or not granted:
            raise BadToken(INVALID)
        return Verified(user, granted)


class Authenticator:
    def __init__(self, certificates: ClientCertificates, tokens: BearerTokens) -> None:
        self._certificates = certificates
        self._tokens = tokens

    def user(self, certificate_der: bytes | None, authorization: str | None) -> User:
        """Who sends a request with this verified certificate and Authorization header; raises 401."""
        if certificate_der and (user := self._certificates.user(certificate_der)) is not None:
            return user
        if token := bearer_token(authorization):
            try:
                return self._tokens.verify(token).user
            except BadToken:
                raise unauthorized() from None
        if certificate_der:
            raise unauthorized()  # it showed an identity, and that one is no good
        return ANONYMOUS


def bearer_token(authorization: str | None) -> str:
    """The token of an Authorization header; "" when the header is of another kind."""
    scheme, _, rest = (authorization or "").strip().partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


USER, GROUP, UID, EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
PREFIX = "impersonate-"
AUTHENTICATION = "authentication.k8s.io"
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ACCOUNT = re.compile(rf"{SERVICE_ACCOUNT_PREFIX}({_LABEL}):({_LABEL}(?:\.{_LABEL})*)", re.ASCII)


def impersonated(user: User, headers: Iterable[tuple[str, str]], decide: Callable[[User, Attributes], Decision]) -> User | None:
    """The user a request acts as; None when it acts as itself. Raises 403 and 400."""
    wanted = [(name.lower(), value) for name, value in headers if name.lower().startswith(PREFIX)]
    if not wanted:
        return None
    name = next((value for header, value in wanted if header == USER), "")
    uid = next((value for header, value in wanted if header == UID), "")
    groups = [value for header, value in wanted if header == GROUP]
    keyed = [(header.removeprefix(EXTRA), value) for header, value in wanted if header.startswith(EXTRA)]
    extras = sorted((unquote(key, errors="replace"), value) for key, value in keyed)
    if not name:
        if not (uid or groups or extras):
            return None
        raise bad_request(f"requested {_shown(groups, extras, uid)} without impersonating a user")
    account = _ACCOUNT.fullmatch(name)
    for asked in _asked(name, account, uid, groups, extras):
        decision = decide(user, asked)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
    if account and not groups:
        groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[1]}"]
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in extras:
        extra[key] = (*extra.get(key, ()), value)
    return User(name, _with_everybody(name, groups), uid, extra, user)


def _asked(
    name: str, account: re.Match[str] | None, uid: str, groups: list[str], extras: list[tuple[str, str]]
) -> Iterable[Attributes]:
    asked = partial(Attributes, "impersonate", is_resource=True, version="v1")
    if account:
        yield asked(resource="serviceaccounts", name=account[2], namespace=account[1])
    else:
        yield asked(resource="users", name=name)
    for group in groups:
        yield asked(resource="groups", name=group)
    for key, value in extras:
        yield asked(group=AUTHENTICATION, resource="userextras", name=value, subresource=key)
    if uid:
        yield asked(group=AUTHENTICATION, resource="uids", name=uid)


def _with_everybody(name: str, groups: list[str]) -> tuple[str, ...]:
    """With the group of everybody who is known, or of those who are not."""
    if name == ANONYMOUS.name:
        return tuple(groups) if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    is_said = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return tuple(groups) if is_said else (*groups, AUTHENTICATED)


def _shown(groups: list[str], extras: list[tuple[str, str]], uid: str) -> str:
    references = [
        *(f"{{Group  {group}    }}" for group in groups),
        *(f"{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}" for key, value in extras),
        *([f"{{UID  {uid}  {AUTHENTICATION}/v1  }}"] if uid else []),
    ]
    return f"[{' '.join(references)}]"
