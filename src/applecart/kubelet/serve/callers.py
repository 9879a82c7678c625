"""Who calls the agent: a client certificate of the cluster's authority, or a bearer token that the API knows.

The TLS layer has checked a certificate's chain; here its subject is read, and its end is asked about again because a
connection may outlive it. A token is shown to the API and its answer kept under the token's hash, never under the token.
Nobody is anonymous here, and a token is in no text that leaves (I9).
"""

import asyncio
import ssl
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from applecart.api.authentication import TokenReview, TokenReviewSpec
from applecart.clock import Clock
from applecart.errors import ApplecartError, ControlPlaneFault
from applecart.kube.client import Client
from applecart.kubelet.serve.remembered import Remembered
from applecart.observe.logs import logger
from applecart.secrets import Secret

GOOD_S, BAD_S = 120.0, 10.0  # as a kubelet remembers a token: a withdrawn one works two minutes longer
MOST_TOKENS = 1024
REVIEW_S = 10.0  # a person waits for the answer
LONGEST_TOKEN_CHARS = 16 << 10  # tokens are 1 to 2 KB; nobody's garbage is sent on to the API
AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
API_SERVER = "kube-apiserver-kubelet-client"  # the name that every installer of Kubernetes gives to the API server

log = logger(__name__)


class Caller(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    has_certificate: bool = False

    @property
    def is_the_api_server(self) -> bool:
        """It must be answered also when the API cannot be asked about it: it is the one who would answer."""
        return self.has_certificate and (self.name == API_SERVER or MASTERS in self.groups)


class CannotAsk(ControlPlaneFault):
    """The API did not answer a question about a caller."""


NOBODY = Caller("")


def caller_of_certificate(certificate: Mapping[str, Any], now_s: float) -> Caller | None:
    """The user a verified certificate names (in the form of `ssl`); None when it names nobody or is no longer valid."""
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    names = [value for key, value in subject if key == "commonName"]
    groups = tuple(value for key, value in subject if key == "organizationName")
    try:
        is_over = now_s > ssl.cert_time_to_seconds(certificate["notAfter"])
    except (KeyError, ValueError, TypeError):
        return None
    if is_over or not names or not names[-1]:
        return None
    return Caller(names[-1], tuple(dict.fromkeys((*groups, AUTHENTICATED))), has_certificate=True)


def bearer_of(header: str) -> Secret:
    """The token of an Authorization header; empty when there is none that could be one."""
    scheme, _, token = header.strip().partition(" ")
    is_one = scheme.lower() == "bearer" and len(token) <= LONGEST_TOKEN_CHARS and token.isascii()
    return Secret(token.strip() if is_one else "")


class Tokens:
    """Asks the API whose a token is."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._known: Remembered[bytes, Caller] = Remembered(clock, MOST_TOKENS)

    async def caller(self, token: Secret) -> Caller | None:
        """None when the token is nobody's. Raises CannotAsk."""
        key = sha256(token.reveal().encode()).digest()
        known = self._known.get(key)
        if known is None:
            known = await self._review(token)
            self._known.put(key, known, BAD_S if known is NOBODY else GOOD_S)
        return None if known is NOBODY else known

    async def _review(self, token: Secret) -> Caller:
        try:
            async with asyncio.timeout(REVIEW_S):
                review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token.reveal())))
        except (ApplecartError, TimeoutError) as error:
            log.warning("the API cannot be asked whose a token is", exc_info=error)
            raise CannotAsk("the Kubernetes API cannot be asked who you are; try again") from None
        user = review.status.user
        if not review.status.authenticated or user is None or not user.username:
            return NOBODY
        return Caller(user.username, user.groups, user.uid, tuple(sorted(user.extra.items())))
