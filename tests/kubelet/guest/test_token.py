"""A guest's token is good for dispatch, dies with its Pod, and is replaced long before it expires."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.authentication import TokenReview, TokenReviewSpec
from applecart.api.containers import Container
from applecart.api.core import ServiceAccount
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.api.well_known_names import DISPATCH_AUDIENCE
from applecart.clock import EPOCH, Clock, VirtualClock
from applecart.kube.client import Client
from applecart.kube.errors import Conflict
from applecart.kubelet.entry import Lifetime
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.guest.staged_secrets import TOKEN_FILE
from applecart.kubelet.guest.token import LEAST_PAUSE_S, LIFETIME_S, TokenKeeper, next_rotation, wants_token, write_token
from applecart.secrets import Secret
from applecart.tart.files import Files
from tests.kube.embedded_api import serving
from tests.kube.faults import FaultyTransport, Says, always
from tests.virtual_time import elapse

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR_S = 3600.0


def new_pod(automount: bool | None = True, account: str = "runner") -> Pod:
    spec = PodSpec(
        containers=(Container(name="runner", image="registry.example/macos:15"),),
        service_account_name=account,
        automount_service_account_token=automount,
    )
    return Pod(metadata=ObjectMeta(name="runner-1", namespace="ci"), spec=spec)


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="runner", namespace="ci")))
        yield client


@pytest.fixture
async def pod(client: Client) -> Pod:
    return await client.create(new_pod())


@pytest.fixture
def share(tmp_path: Path) -> GuestShare:
    share = GuestShare(tmp_path, "ci-runner-1", Files())
    share.stage({}, "mac-7")
    return share


async def is_good(client: Client, share: GuestShare, audience: str = DISPATCH_AUDIENCE) -> bool:
    """As dispatch sees it: it asks the API who shows this token."""
    token = Secret((share.folder / TOKEN_FILE).read_text())
    review = await client.create(TokenReview(spec=TokenReviewSpec(token=token.reveal(), audiences=(audience,))))
    return review.status.authenticated


@asynccontextmanager
async def keeping(client: Client, clock: Clock, pod: Pod, share: GuestShare, lifetime: Lifetime | None) -> AsyncIterator[None]:
    task = asyncio.create_task(TokenKeeper(client, clock).keep(pod, share, lifetime))
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_token_is_good_for_dispatch_only_and_lives_eight_hours(
    client: Client, clock: Clock, pod: Pod, share: GuestShare
) -> None:
    """Incident 42: a token of one hour ended in the middle of jobs, and it was good for the API itself."""
    lifetime = await write_token(client, pod, share, clock)
    assert lifetime.expires_at - lifetime.issued_at == timedelta(seconds=LIFETIME_S)
    assert await is_good(client, share)
    assert not await is_good(client, share, "https://kubernetes.default.svc")
    await elapse(7.9 * HOUR_S)
    assert await is_good(client, share)
    await elapse(0.2 * HOUR_S)
    assert not await is_good(client, share)


async def test_a_token_dies_with_its_pod(client: Client, clock: Clock, pod: Pod, share: GuestShare) -> None:
    await write_token(client, pod, share, clock)
    await client.delete(Pod, pod.key, grace_s=0)
    assert not await is_good(client, share)


async def test_a_pod_of_the_same_name_is_not_the_same_pod(client: Client, clock: Clock, pod: Pod, share: GuestShare) -> None:
    await client.delete(Pod, pod.key, grace_s=0)
    await client.create(new_pod())
    with pytest.raises(Conflict, match="UID"):
        await write_token(client, pod, share, clock)
    assert not (share.folder / TOKEN_FILE).exists()


async def test_a_missing_account_is_named_and_may_still_come(client: Client, clock: Clock, share: GuestShare) -> None:
    orphan = new_pod(account="absent")
    with pytest.raises(MissingConfig, match="ServiceAccount ci/absent"):
        await write_token(client, orphan, share, clock)


async def test_the_guest_holds_a_good_token_throughout_a_day(client: Client, clock: Clock, pod: Pod, share: GuestShare) -> None:
    lifetime = await write_token(client, pod, share, clock)
    tokens = set()
    async with keeping(client, clock, pod, share, lifetime):
        for _ in range(24 * 6):
            await elapse(HOUR_S / 6)
            tokens.add(Secret((share.folder / TOKEN_FILE).read_text()))
            assert await is_good(client, share)
    assert len(tokens) == 4  # one per 6.4 hours


async def test_an_outage_of_the_api_is_survived_with_the_old_token(
    client: Client, clock: Clock, pod: Pod, share: GuestShare
) -> None:
    lifetime = await write_token(client, pod, share, clock)
    faulty = FaultyTransport(client.transport)
    async with keeping(Client(faulty, clock), clock, pod, share, lifetime):
        await elapse(6.3 * HOUR_S)
        faulty.plan = always(Says(503))
        before = len(faulty.calls)
        await elapse(1.2 * HOUR_S)
        assert await is_good(client, share)
        assert before < len(faulty.calls) < 400
        faulty.heal()
        await elapse(HOUR_S)
        assert await is_good(client, share)  # the old one has expired by now


async def test_a_full_disk_is_survived_too(client: Client, clock: Clock, pod: Pod, tmp_path: Path) -> None:
    class FullDisk(Files):
        is_full = False

        def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")
            super().write(path, data, mode)

    files = FullDisk()
    share = GuestShare(tmp_path, "ci-runner-1", files)
    share.stage({}, "mac-7")
    async with keeping(client, clock, pod, share, await write_token(client, pod, share, clock)):
        files.is_full = True
        await elapse(7.5 * HOUR_S)
        files.is_full = False
        await elapse(HOUR_S)
        assert await is_good(client, share)


async def test_an_agent_that_finds_a_running_vm_replaces_its_token_at_once(
    client: Client, clock: Clock, pod: Pod, share: GuestShare
) -> None:
    await write_token(client, pod, share, clock)
    await elapse(7.9 * HOUR_S)
    async with keeping(client, clock, pod, share, None):
        await elapse(0.2 * HOUR_S)
        assert await is_good(client, share)


async def test_a_clock_that_is_hours_ahead_does_not_make_the_agent_ask_at_every_moment(
    client: Client, clock: Clock, pod: Pod, share: GuestShare
) -> None:
    """By such a clock a token of eight hours expires as soon as it is there."""
    ahead = VirtualClock(asyncio.get_running_loop(), start=EPOCH + timedelta(seconds=LIFETIME_S - 1))
    faulty = FaultyTransport(client.transport)
    async with keeping(Client(faulty, ahead), ahead, pod, share, None):
        await elapse(10 * LEAST_PAUSE_S)
    assert len(faulty.calls) == 10


async def test_a_token_never_shows_itself(
    client: Client, clock: Clock, pod: Pod, share: GuestShare, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    lifetime = await write_token(client, pod, share, clock)
    token = (share.folder / TOKEN_FILE).read_text()
    async with keeping(client, clock, pod, share, lifetime):
        await client.delete(Pod, pod.key, grace_s=0)
        await elapse(9 * HOUR_S)
    assert "could not be renewed" in caplog.text
    assert token not in caplog.text


@pytest.mark.parametrize(("automount", "wants"), [(None, False), (False, False), (True, True)])
def test_a_token_is_only_for_a_pod_that_asks(automount: bool | None, wants: bool) -> None:
    assert wants_token(new_pod(automount)) is wants


@given(st.integers(1, 10**6), st.integers(-(10**6), 10**7))
def test_a_rotation_is_never_in_the_past_and_leaves_a_fifth_of_the_life(life_s: int, age_s: int) -> None:
    issued, expires = NOON, NOON + timedelta(seconds=life_s)
    now = issued + timedelta(seconds=age_s)
    due = next_rotation(issued, expires, now)
    assert due >= now
    if due > now:
        assert due == issued + timedelta(seconds=life_s) * 0.8
