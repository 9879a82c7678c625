"""Pulling and pushing on virtual time: what is kept, what is fetched again, and what an empty disk does."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.disk_image import GB
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.registry import made_up_digest
from applecart.tart.mac import Ended
from tests.virtual_time import elapse

TART = "/usr/local/bin/tart"
IMAGE = "ghcr.io/acme/macos:15"
OTHER = "ghcr.io/acme/macos:14"
ELSEWHERE = "quay.io/acme/macos:15"
PULL_S = 400.0  # 40 GB at the pace of a simulated Mac


@pytest.fixture
async def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


async def tart(mac: SimulatedMac, *argv: str, **env: str) -> Ended:
    return await mac.run([TART, *argv], deadline_s=None, env={"CI": "1", **env})


def pid_of(mac: SimulatedMac, verb: str) -> int:
    return next(process.pid for process in mac.table.all() if process.argv[1] == verb)


def names(mac: SimulatedMac) -> list[str]:
    return sorted(name for name, _ in mac.store.cached())


def partials(mac: SimulatedMac) -> list[Path]:
    return list(mac.store.tmp.iterdir())


async def test_a_pull_says_its_progress_in_whole_percents_and_leaves_two_rows(mac: SimulatedMac, clock: Clock) -> None:
    seen: list[bytes] = []
    await mac.run([TART, "pull", IMAGE], deadline_s=None, env={"CI": "1"}, on_output=seen.append)
    lines = b"".join(seen).decode().splitlines()
    assert lines[0] == "pulling manifest..."
    percents = [int(line.rstrip("%")) for line in lines if line.endswith("%")]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (0, 100)
    assert clock.monotonic() == pytest.approx(PULL_S, abs=2)
    assert names(mac) == [IMAGE, f"ghcr.io/acme/macos@{made_up_digest(IMAGE)}"]
    assert partials(mac) == []


async def test_a_pull_of_what_is_there_waits_for_no_other_pull(mac: SimulatedMac, clock: Clock) -> None:
    """Tart looks before it locks; one pull at a time holds for what must be fetched."""
    await tart(mac, "pull", IMAGE)
    other = asyncio.create_task(tart(mac, "pull", OTHER))
    await elapse(5)
    before_s = clock.monotonic()
    again = await tart(mac, "pull", IMAGE)
    assert b"image is already cached and linked!" in again.out
    assert clock.monotonic() - before_s < 2
    assert not other.done()
    await other


async def test_a_pull_that_is_killed_goes_on_where_it_was(mac: SimulatedMac, clock: Clock) -> None:
    pulling = asyncio.create_task(tart(mac, "pull", IMAGE))
    await elapse(PULL_S * 0.75)
    assert mac.signal(pid_of(mac, "pull"), signal.SIGKILL)
    assert (await pulling).code == 137
    assert len(partials(mac)) == 1
    before = clock.monotonic()
    assert (await tart(mac, "pull", IMAGE)).code == 0
    assert clock.monotonic() - before < PULL_S * 0.4  # the layer that was cut off is fetched again


async def test_a_look_at_vms_destroys_a_half_that_nobody_holds(mac: SimulatedMac, clock: Clock) -> None:
    """Weakness 2: and one that somebody holds it leaves alone."""
    pulling = asyncio.create_task(tart(mac, "pull", IMAGE))
    await elapse(PULL_S / 2)
    await tart(mac, "list")
    assert len(partials(mac)) == 1  # the pull holds it
    mac.signal(pid_of(mac, "pull"), signal.SIGKILL)
    await pulling
    with Lock(partials(mac)[0]) as lock:
        assert lock.try_take()
        await tart(mac, "list")
        assert len(partials(mac)) == 1
    await tart(mac, "get", "nobody")
    assert partials(mac) == []
    before = clock.monotonic()
    await tart(mac, "pull", IMAGE)
    assert clock.monotonic() - before > PULL_S * 0.95


async def test_an_interrupted_pull_cleans_up_after_itself(mac: SimulatedMac) -> None:
    pulling = asyncio.create_task(tart(mac, "pull", IMAGE))
    await elapse(PULL_S / 2)
    mac.signal(pid_of(mac, "pull"), signal.SIGINT)
    assert (await pulling).code == 1
    assert partials(mac) == []
    assert names(mac) == []


async def test_pulls_from_one_registry_wait_for_each_other(mac: SimulatedMac, clock: Clock) -> None:
    ends = await asyncio.gather(*(tart(mac, "pull", image) for image in (IMAGE, OTHER, ELSEWHERE)))
    assert [b"waiting for lock..." in end.out for end in ends] == [False, True, False]
    assert clock.monotonic() == pytest.approx(2 * PULL_S, abs=4)


async def test_a_pull_of_what_is_there_costs_a_manifest(mac: SimulatedMac, clock: Clock) -> None:
    await tart(mac, "pull", IMAGE)
    before = clock.monotonic()
    assert b"already cached and linked" in (await tart(mac, "pull", IMAGE)).out
    assert clock.monotonic() - before < 1


async def test_a_moved_tag_leads_to_another_image_and_the_old_one_goes(mac: SimulatedMac) -> None:
    await tart(mac, "pull", IMAGE)
    digest = mac.registry.move(IMAGE)
    assert digest != made_up_digest(IMAGE)
    await tart(mac, "pull", IMAGE)
    assert names(mac) == [IMAGE, f"ghcr.io/acme/macos@{digest}"]


async def test_a_tag_of_a_home_that_was_moved_is_linked_anew(mac: SimulatedMac) -> None:
    """Every Pod of an image that was there before the move waited for ever."""
    await tart(mac, "pull", IMAGE)
    [link] = [path for path in mac.home.rglob("*") if path.is_symlink()]
    folder = Path(os.readlink(link))
    link.unlink()
    link.symlink_to(Path("/where/it/was") / folder.name)
    assert b"already cached! creating a symlink" in (await tart(mac, "pull", IMAGE)).out
    assert Path(os.readlink(link)) == folder


async def test_an_image_pulled_by_digest_stays_without_a_tag(mac: SimulatedMac) -> None:
    by_digest = f"ghcr.io/acme/macos@{made_up_digest(IMAGE)}"
    await tart(mac, "pull", by_digest)
    await tart(mac, "pull", IMAGE)
    await tart(mac, "delete", IMAGE)
    assert names(mac) == [by_digest]
    assert (await tart(mac, "delete", by_digest)).code == 0
    assert names(mac) == []


async def test_deleting_the_digest_takes_its_tag_along(mac: SimulatedMac) -> None:
    """Weakness 25: rows come in pairs, and the second delete then finds nothing."""
    await tart(mac, "pull", IMAGE)
    for name, code in zip(names(mac)[::-1], (0, 2), strict=True):
        assert (await tart(mac, "delete", name)).code == code


async def test_layers_that_another_image_has_are_not_fetched_again(mac: SimulatedMac, clock: Clock) -> None:
    base, next_one = made_up_digest(OTHER), made_up_digest(IMAGE)
    shared = {"base": 30 * GB}
    mac.registry.edit(lambda content: content.layers.update({base: shared, next_one: {**shared, "xcode": 10 * GB}}))
    await tart(mac, "pull", OTHER)
    before, free = clock.monotonic(), mac.disk(Path("/")).free_bytes
    await tart(mac, "pull", IMAGE)
    assert clock.monotonic() - before == pytest.approx(100, abs=2)
    assert free - mac.disk(Path("/")).free_bytes == 10 * GB


@pytest.mark.parametrize(
    ("where", "words"),
    [("missing", "code: 404"), ("denied", "code: 401"), ("busy", "code: 429"), ("private", "code: 401")],
)
async def test_a_registry_says_no_in_its_own_words(mac: SimulatedMac, where: str, words: str) -> None:
    mac.registry.edit(lambda content: getattr(content, where).append("ghcr.io/acme/*"))
    ended = await tart(mac, "pull", IMAGE)
    assert (ended.code, words in ended.err.decode()) == (1, True)
    assert (await tart(mac, "pull", ELSEWHERE)).code == 0
    login = {"TART_REGISTRY_USERNAME": "robot", "TART_REGISTRY_PASSWORD": "opens"}
    assert (await tart(mac, "pull", IMAGE, **login)).code == (0 if where == "private" else 1)
    assert (await tart(mac, "pull", IMAGE, **login, TART_REGISTRY_HOSTNAME="quay.io")).code == 1


async def test_a_pull_without_room_ends_with_tarts_words_and_leaves_its_half(mac: SimulatedMac) -> None:
    mac.fill_disk(10 * GB)
    ended = await tart(mac, "pull", IMAGE)
    assert (ended.code, b"No space left on device" in ended.err) == (1, True)
    assert len(partials(mac)) == 1
    assert mac.disk(Path("/")).free_bytes < GB


async def test_a_clone_without_room_says_it_with_an_apostrophe_of_its_own(mac: SimulatedMac) -> None:
    await tart(mac, "create", "golden")
    mac.fill_disk(0)
    ended = await tart(mac, "clone", "golden", "v")
    assert (ended.code, "isn\N{RIGHT SINGLE QUOTATION MARK}t enough space" in ended.err.decode()) == (1, True)
    assert mac.vms() == ["golden"]


async def test_pull_makes_room_by_itself_unless_it_is_told_not_to(mac: SimulatedMac) -> None:
    await tart(mac, "pull", OTHER)
    mac.fill_disk(10 * GB)
    assert (await tart(mac, "pull", IMAGE, TART_NO_AUTO_PRUNE="1")).code == 1
    assert OTHER in names(mac)
    await tart(mac, "list")  # cleans up
    assert (await tart(mac, "pull", IMAGE)).code == 0
    assert names(mac) == [IMAGE, f"ghcr.io/acme/macos@{made_up_digest(IMAGE)}"]


async def test_a_golden_frees_nothing_as_long_as_its_image_is_there(mac: SimulatedMac) -> None:
    """Incident 31: reclaiming goldens freed metadata only."""
    await tart(mac, "pull", IMAGE)
    free = mac.disk(Path("/")).free_bytes
    await tart(mac, "clone", IMAGE, "golden")
    await tart(mac, "clone", "golden", "v")
    assert mac.disk(Path("/")).free_bytes == free
    await tart(mac, "delete", "golden", "v")
    assert mac.disk(Path("/")).free_bytes == free
    await tart(mac, "clone", IMAGE, "golden")
    await tart(mac, "delete", IMAGE)
    assert mac.disk(Path("/")).free_bytes == free
    await tart(mac, "delete", "golden")
    assert mac.disk(Path("/")).free_bytes == free + 40 * GB


async def test_a_push_takes_minutes_and_opens_the_nvram_last(mac: SimulatedMac, clock: Clock) -> None:
    """Incident 27: a VM that is deleted under its push fails at the very end."""
    await tart(mac, "pull", IMAGE)
    await tart(mac, "clone", IMAGE, "build")
    before = clock.monotonic()
    assert (await tart(mac, "push", "build", OTHER)).code == 0
    assert clock.monotonic() - before > 600
    pushing = asyncio.create_task(tart(mac, "push", "build", OTHER))
    await elapse(300)
    assert (await tart(mac, "delete", "build")).code == 0
    ended = await pushing
    assert (ended.code, "nvram.bin" in ended.err.decode()) == (1, True)


async def test_what_was_pushed_can_be_pulled(mac: SimulatedMac) -> None:
    await tart(mac, "create", "build")
    await tart(mac, "push", "build", "ghcr.io/acme/tools:1")
    assert (await tart(mac, "pull", "ghcr.io/acme/tools:1")).code == 0
    assert mac.disk(Path("/")).free_bytes == mac.disk(Path("/")).total_bytes - 62 * GB


async def test_prune_goes_by_age_and_by_space(mac: SimulatedMac) -> None:
    await tart(mac, "pull", OTHER)
    await elapse(3 * 86_400)
    await tart(mac, "pull", IMAGE)
    await tart(mac, "prune", "--older-than", "1")
    assert OTHER not in names(mac)
    assert IMAGE in names(mac)
    await tart(mac, "pull", OTHER)
    await tart(mac, "prune", "--space-budget", "50")
    assert names(mac)[0] == OTHER  # the one used last
    assert len(names(mac)) == 2
    await tart(mac, "create", "v")
    await tart(mac, "prune", "--entries", "vms", "--space-budget", "0")
    assert mac.vms() == []
