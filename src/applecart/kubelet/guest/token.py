"""The token with which a guest asks for work: of the Pod's ServiceAccount, bound to the Pod, good for dispatch only.

It dies with the Pod, outlives any job that is worth waiting for, and is replaced in the guest's folder long before it expires.
It is asked for only when the Pod says so itself: an unset `automountServiceAccountToken` means no here, because a VM runs the
code of strangers. The token is never logged.
"""

import asyncio
from datetime import datetime, timedelta
from typing import NoReturn

from applecart.api.authentication import BoundObject, TokenRequest, TokenRequestSpec
from applecart.api.core import ServiceAccount
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.api.well_known_names import DISPATCH_AUDIENCE
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kubelet.entry import Lifetime
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.guest.downward import service_account
from applecart.kubelet.guest.share import GuestShare
from applecart.observe.logs import logger

LIFETIME_S = 28800  # one hour ended in the middle of jobs; no job runs longer than 8 hours
ROTATED_AT = 0.8  # of its life: the rest is there to get through an outage of the API
LEAST_PAUSE_S = 60.0  # a host whose clock is hours ahead believes that every token expires at once
RETRY = Backoff(first_s=5.0, longest_s=300.0)  # a fifth of the life is left for it

log = logger(__name__)


def wants_token(pod: Pod) -> bool:
    return pod.spec.automount_service_account_token is True


def next_rotation(issued: datetime, expires: datetime, now: datetime) -> datetime:
    """When the next token is due; never in the past."""
    return max(now, issued + (expires - issued) * ROTATED_AT)


async def write_token(client: Client, pod: Pod, share: GuestShare, clock: Clock) -> Lifetime:
    """A new token is in the guest's folder when this returns."""
    account = Key(pod.namespace, service_account(pod))
    bound = BoundObject(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid)
    spec = TokenRequestSpec(audiences=(DISPATCH_AUDIENCE,), expiration_seconds=LIFETIME_S, bound_object_ref=bound)
    issued_at = clock.now()
    try:
        answer = await client.create_subresource(ServiceAccount, account, "token", TokenRequest(spec=spec))
    except NotFound as error:
        raise MissingConfig(f"Pod {pod.key} wants a token of ServiceAccount {account}, and there is none: {error}") from None
    share.write_token(answer.token)
    return _lifetime(answer, issued_at)


def _lifetime(answer: TokenRequest, issued_at: datetime) -> Lifetime:
    """A server whose clock runs ahead of ours must not make the token seem longer-lived than it granted."""
    granted = issued_at + timedelta(seconds=answer.spec.expiration_seconds or LIFETIME_S)
    said = answer.status.expiration_timestamp
    return Lifetime(issued_at, min(granted, said) if said is not None and said > issued_at else granted)


class TokenKeeper:
    """Keeps the token of one guest fresh, for as long as its task is not cancelled."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def keep(self, pod: Pod, share: GuestShare, lifetime: Lifetime | None = None) -> NoReturn:
        """Without a lifetime (of a VM that an earlier agent started) the token is replaced at once."""
        failures = 0
        while True:
            if failures:
                await asyncio.sleep(RETRY.wait_s(failures, self._clock.random))
            elif lifetime is not None:
                now = self._clock.now()
                due = next_rotation(lifetime.issued_at, lifetime.expires_at, now)
                await asyncio.sleep(max(LEAST_PAUSE_S, (due - now).total_seconds()))
            try:
                lifetime = await write_token(self._client, pod, share, self._clock)
                failures = 0
            except (ApplecartError, OSError) as error:
                failures += 1
                log.warning("the token of a guest could not be renewed", object=pod, failures=failures, why=str(error))
