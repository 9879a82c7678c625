"""What a service-account token says.

Two forms: today's, with an end, audiences and what it is bound to, and the one of token Secrets, whose claims are spelled out
under long names. Plain values; whether a claim is true is for `service_account_tokens` to find out.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from applecart.embedded.auth.user import SERVICE_ACCOUNT_PREFIX

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
