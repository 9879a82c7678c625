"""Tokens with which a new host introduces itself, before it has an identity.

A token `<id>.<secret>` is good while the Secret `bootstrap-token-<id>` in kube-system holds that secret, allows authentication
and has not expired. It names a user of its own in groups that may do little: bind them to what joining needs and no more.
"""

import hmac
import re
from base64 import b64decode
from binascii import Error as Base64Error

from applecart.clock import Clock
from applecart.embedded.auth.untyped import Document, mapping, metadata, text
from applecart.embedded.auth.user import AUTHENTICATED, User
from applecart.embedded.reader import Reader
from applecart.embedded.times import read_stamp

NAMESPACE = "kube-system"
SECRET_PREFIX = "bootstrap-token-"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
USER_PREFIX = "system:bootstrap:"
GROUP = "system:bootstrappers"
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
        return User(f"{USER_PREFIX}{token_id}", (*sorted({GROUP, *groups}), AUTHENTICATED))

    def _has_expired(self, secret: Document) -> bool:
        expiration = _data(secret, "expiration")
        if not expiration:
            return False
        try:
            return read_stamp(expiration) <= self._clock.now()
        except (ValueError, OverflowError):
            return True


def _data(secret: Document, name: str) -> str:
    try:
        return b64decode(text(mapping(secret.get("data")).get(name)), validate=True).decode()
    except (Base64Error, ValueError):
        return ""
