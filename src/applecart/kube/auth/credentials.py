"""Who we are to an API server, and how that stays true while tokens and certificates are replaced.

`Credentials.get` gives the `Credential` to present now. After a 401 the caller passes the one that was refused: only if it is
still the current one is a new one fetched, so a hundred calls refused together cause one refresh. A credential that did not
change is the same object, which lets the transport keep its TLS context. Values are `Secret`; `source` says where a credential
was written and never holds a value (I9).
"""

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.secrets import Secret

REREAD_AFTER_S = 60.0  # a projected token is replaced when 80 % of its life is over: minutes before the old one ends


class ClientCertificate(msgspec.Struct, frozen=True):
    """A certificate chain and its key, both PEM, and the fields a person would have to correct."""

    chain_pem: str
    key_pem: Secret
    chain_from: str
    key_from: str


class Credential(msgspec.Struct, frozen=True):
    """What one call presents. At most one of `token` and `basic`; a certificate may come with either."""

    source: str  # 'bearer token (field token of user "ci" in /home/ci/.kube/config)'
    token: Secret | None = None
    basic: tuple[str, Secret] | None = None
    certificate: ClientCertificate | None = None
    impersonation: tuple[tuple[str, str], ...] = ()  # headers; a name may come several times
    expires_at: datetime | None = None  # as whoever issued it said; `applecart.kube.auth.expiry` looks inside the rest

    def authorization(self) -> str | None:
        """The header that proves who we are. The result is a secret: hand it over and forget it."""
        if self.token is not None:
            return f"Bearer {self.token.reveal()}"
        if self.basic is not None:
            user, password = self.basic
            return "Basic " + base64.b64encode(f"{user}:{password.reveal()}".encode()).decode()
        return None


class Credentials(Protocol):
    async def get(self, rejected: Credential | None = None) -> Credential:
        """What to present now. `rejected` is what the server refused with 401."""

    async def aclose(self) -> None:
        """End whatever still runs to fetch a credential."""


class FixedCredentials:
    """A credential that never changes: written into the kubeconfig, or none at all."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def get(self, rejected: Credential | None = None) -> Credential:
        return self._credential

    async def aclose(self) -> None: ...


class FileCredentials:
    """A credential read from files that somebody replaces while we run: a projected token, a rotated certificate.

    Reads at most once a minute, and at once after a refusal. A file that is unreadable later, as during its replacement, leaves
    the last good credential in use.
    """

    def __init__(self, read: Callable[[], Credential], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._credential: Credential | None = None
        self._read_at_s = 0.0

    async def get(self, rejected: Credential | None = None) -> Credential:
        known = self._credential
        if known is None:
            return self._keep(self._read())
        if rejected is known or self._clock.monotonic() - self._read_at_s >= REREAD_AFTER_S:
            try:
                fresh = self._read()
            except ApplecartError:
                fresh = known
            return self._keep(known if fresh == known else fresh)
        return known

    async def aclose(self) -> None: ...

    def _keep(self, credential: Credential) -> Credential:
        self._credential = credential
        self._read_at_s = self._clock.monotonic()
        return credential


NO_CREDENTIAL = Credential(source="no credential")
