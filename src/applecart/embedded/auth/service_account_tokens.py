"""Tokens of service accounts: issued here, believed only while what they are bound to exists.

A token is good when this server signed it, for an audience that is asked for, within its time, and while its ServiceAccount
(and the Pod, Secret or Node it is bound to) is the very same object. The signature of a known token is not checked twice; the
objects are, as soon as any of their kind changed, so a deletion ends access at once. Tokens are remembered by digest only.
There are two forms: today's, and the one of token Secrets, whose claims are spelled out under long names.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec

from applecart.api.core import SERVICE_ACCOUNT_TOKEN
from applecart.api.meta import read_stamp
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import BadToken, NotOurs, TokenKeys
from applecart.embedded.auth.untyped import go_list, metadata, secret_data, text, texts_by_name, uid_of
from applecart.embedded.auth.user import AUTHENTICATED, CREDENTIAL_ID, SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS, User
from applecart.embedded.store.store import Reader

LEGACY_ISSUER = "kubernetes/serviceaccount"
_LEGACY = "kubernetes.io/serviceaccount/"


class Bound(msgspec.Struct, frozen=True):
    """An object by name and identity."""

    name: str = ""
    uid: str = ""


class Binding(msgspec.Struct, frozen=True):
    """The private claims of today's form."""

    namespace: str = ""
    serviceaccount: Bound = Bound()
    pod: Bound | None = None
    secret: Bound | None = None
    node: Bound | None = None


class Claims(msgspec.Struct, frozen=True, gc=False):
    iss: str
    sub: str = ""
    aud: str | tuple[str, ...] = ()
    exp: float | None = None
    iat: float | None = None
    nbf: float | None = None
    jti: str = ""
    kubernetes: Binding | None = msgspec.field(default=None, name="kubernetes.io")
    legacy_namespace: str = msgspec.field(default="", name=f"{_LEGACY}namespace")
    legacy_secret_name: str = msgspec.field(default="", name=f"{_LEGACY}secret.name")
    legacy_account_name: str = msgspec.field(default="", name=f"{_LEGACY}service-account.name")
    legacy_account_uid: str = msgspec.field(default="", name=f"{_LEGACY}service-account.uid")


def claims_for(
    issuer: str,
    account: Bound,
    namespace: str,
    audiences: tuple[str, ...],
    now: datetime,
    lifetime_s: int,
    token_id: str,
    bound: Mapping[str, Bound],
) -> dict[str, Any]:
    issued_s = int(now.timestamp())
    private = {"serviceaccount": account, **bound}
    return {
        "aud": list(audiences),
        "exp": issued_s + lifetime_s,
        "iat": issued_s,
        "iss": issuer,
        "jti": token_id,
        "kubernetes.io": {"namespace": namespace, **{kind: _reference(private[kind]) for kind in sorted(private)}},
        "nbf": issued_s,
        "sub": f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account.name}",
    }


def legacy_claims_for(account: Bound, namespace: str, secret_name: str) -> dict[str, Any]:
    """The token of a `kubernetes.io/service-account-token` Secret: no end, good while the Secret holds it."""
    return {
        "iss": LEGACY_ISSUER,
        f"{_LEGACY}namespace": namespace,
        f"{_LEGACY}secret.name": secret_name,
        f"{_LEGACY}service-account.name": account.name,
        f"{_LEGACY}service-account.uid": account.uid,
        "sub": f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account.name}",
    }


def _reference(bound: Bound) -> dict[str, str]:
    return {"name": bound.name, **({"uid": bound.uid} if bound.uid else {})}


LEEWAY = timedelta(minutes=1)  # clocks differ, and what was deleted a moment ago may still finish its last request
RECHECK_S = 10  # how long objects are believed without a look, as they age without changing
MOST_REMEMBERED = 4096  # tokens; an agent has one
BOUND_KINDS = ("serviceaccounts", "pods", "secrets", "nodes")
INVALIDATED = "service account token has been invalidated"
LEGACY_INVALID_LABEL = "kubernetes.io/legacy-token-invalid-since"


@dataclass(frozen=True, slots=True)
class Verified:
    """Whose token it is, and for which of the audiences that were asked for."""

    user: User
    audiences: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """A token whose signature has been checked."""

    claims: Claims
    user: User
    checked_s: float
    revisions: list[int]


class ServiceAccountTokens:
    def __init__(self, keys: TokenKeys, issuer: str, reader: Reader, clock: Clock) -> None:
        self.keys = keys
        self.issuer = issuer
        self._reader = reader
        self._clock = clock
        self._known: dict[bytes, _Known] = {}

    @property
    def audiences(self) -> tuple[str, ...]:
        """Whom a token is for unless its request says so."""
        return (self.issuer,)

    def issue(self, account: Bound, namespace: str, audiences: tuple[str, ...], lifetime_s: int, **bound: Bound) -> str:
        """A token of an account; `bound` names what it dies with: `pod`, `secret` or `node`."""
        token_id = str(UUID(int=self._clock.random.getrandbits(128), version=4))
        now = self._clock.now()
        return self.keys.sign(claims_for(self.issuer, account, namespace, audiences, now, lifetime_s, token_id, bound))

    def verify(self, token: str, audiences: tuple[str, ...] | None = None) -> Verified:
        """Who shows this token; raises BadToken."""
        digest = sha256(token.encode("utf-8", "replace")).digest()
        known = self._known.get(digest)
        claims = known.claims if known else self._claims(token)
        granted = self._audiences(claims, audiences or self.audiences)
        self._check_time(claims)
        revisions = [self._reader.changed_at(kind) for kind in BOUND_KINDS]
        now_s = self._clock.monotonic()
        if known is None or known.revisions != revisions or now_s - known.checked_s > RECHECK_S:
            self._known.pop(digest, None)
            user = self._living_user(claims, token)
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = self._known[digest] = _Known(claims, user, now_s, revisions)
        return Verified(known.user, granted)

    def _claims(self, token: str) -> Claims:
        try:
            claims = msgspec.json.decode(self.keys.verified(token), type=Claims)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise BadToken("token claims are malformed") from None
        if claims.iss not in (self.issuer, LEGACY_ISSUER):
            raise NotOurs("token issuer is invalid")
        return claims

    def _audiences(self, claims: Claims, asked: tuple[str, ...]) -> tuple[str, ...]:
        held = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
        held = held or self.audiences  # a token of a Secret names none and is for the server
        granted = tuple(one for one in held if one in asked)
        if not granted:
            raise BadToken(f"token audiences {go_list(held)} is invalid for the target audiences {go_list(asked)}")
        return granted

    def _check_time(self, claims: Claims) -> None:
        now_s, leeway_s = self._clock.now().timestamp(), LEEWAY.total_seconds()
        earliest, latest = now_s - leeway_s, now_s + leeway_s
        if claims.exp is not None and earliest > claims.exp:
            raise BadToken("service account token has expired")
        if claims.nbf is not None and latest < claims.nbf:
            raise BadToken("service account token is not valid yet")
        if claims.iat is not None and latest < claims.iat:
            raise BadToken("service account token is issued in the future")

    def _living_user(self, claims: Claims, token: str) -> User:
        """The user, after a look at everything the token is bound to."""
        if claims.iss == LEGACY_ISSUER:
            return self._legacy_user(claims, token)
        bound = claims.kubernetes
        if claims.exp is None or bound is None:
            raise BadToken("token claims are malformed")
        deleted_before = self._clock.now() - LEEWAY
        if _was_deleted(self._account(bound.namespace, bound.serviceaccount), deleted_before):
            raise BadToken(f"service account {bound.namespace}/{bound.serviceaccount.name} has been deleted")
        if bound.secret:
            self._must_live("secrets", bound.namespace, bound.secret, deleted_before)
        if bound.pod:
            self._must_live("pods", bound.namespace, bound.pod, deleted_before)
        elif bound.node:
            self._must_live("nodes", "", bound.node, deleted_before)
        extra: dict[str, tuple[str, ...]] = {}
        if claims.jti:
            extra[CREDENTIAL_ID] = (f"JTI={claims.jti}",)
        for kind, reference in (("node", bound.node), ("pod", bound.pod)):
            if reference and reference.name:
                extra[f"authentication.kubernetes.io/{kind}-name"] = (reference.name,)
                if reference.uid:
                    extra[f"authentication.kubernetes.io/{kind}-uid"] = (reference.uid,)
        return account_user(bound.namespace, bound.serviceaccount, extra)

    def _legacy_user(self, claims: Claims, token: str) -> User:
        namespace, account = claims.legacy_namespace, Bound(claims.legacy_account_name, claims.legacy_account_uid)
        if not all((namespace, account.name, account.uid, claims.legacy_secret_name)):
            raise BadToken("a claim is missing")
        if claims.sub != f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account.name}":
            raise BadToken("sub claim is invalid")
        secret = self._reader.get("secrets", namespace, claims.legacy_secret_name)
        if secret is None or metadata(secret).get("deletionTimestamp") or secret.get("type") != SERVICE_ACCOUNT_TOKEN:
            raise BadToken("Token has been invalidated")
        if LEGACY_INVALID_LABEL in texts_by_name(metadata(secret).get("labels")):
            raise BadToken("Token has been invalidated")
        if not hmac.compare_digest(secret_data(secret, "token"), token.encode("utf-8", "replace")):
            raise BadToken("Token does not match server's copy")
        if metadata(self._account(namespace, account)).get("deletionTimestamp"):
            raise BadToken(f"ServiceAccount {namespace}/{account.name} has been deleted")
        return account_user(namespace, account, {})

    def _account(self, namespace: str, account: Bound) -> dict[str, Any]:
        found = self._reader.get("serviceaccounts", namespace, account.name)
        if found is None:
            raise BadToken(f'serviceaccounts "{account.name}" not found')
        if not account.uid or uid_of(found) != account.uid:
            raise BadToken(f"service account UID ({uid_of(found)}) does not match claim ({account.uid})")
        return found

    def _must_live(self, label: str, namespace: str, bound: Bound, deleted_before: datetime) -> None:
        found = self._reader.get(label, namespace, bound.name)
        if found is None or _was_deleted(found, deleted_before):
            raise BadToken(INVALIDATED)
        if uid_of(found) != bound.uid:
            kind = label.removesuffix("s")
            raise BadToken(f"{kind} UID ({uid_of(found)}) does not match service account {kind} ref claim ({bound.uid})")


def account_user(namespace: str, account: Bound, extra: dict[str, tuple[str, ...]]) -> User:
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account.name}", groups, account.uid, extra)


def _was_deleted(obj: dict[str, Any], before: datetime) -> bool:
    deleted_at = text(metadata(obj).get("deletionTimestamp"))
    if not deleted_at:
        return False
    try:
        return read_stamp(deleted_at) < before
    except ValueError:
        return True  # an instant nobody can read must not keep a token alive
