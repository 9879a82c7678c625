"""A walk through what a guest left is bounded in everything that a guest can multiply."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kubelet.cache import walk
from applecart.kubelet.cache.digest import inventory
from applecart.kubelet.cache.walk import TooMuchToMeasure, Walk, walked
from tests.kubelet.cache.test_digest import EMPTY_DIGEST

CAS = "CompilationCache.noindex"


def folder(path: Path) -> None:
    path.mkdir(parents=True)


def file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize(
    ("place", "make"),
    [
        (f"{CAS}/folder-%d", folder),
        (f"{CAS}/.hidden-%d", file),
        (f"{CAS}/one/.hidden-folder-%d", folder),
        ("tuist/Binaries/.hidden-%d", file),
        ("tuist/Plugins/binary-%d", file),
    ],
)
def test_every_entry_counts_also_those_that_are_in_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, make: Callable[[Path], None]
) -> None:
    """Folders and hidden files were free of charge, so a guest could leave millions of them and no limit was ever met."""
    for number in range(20):
        make(tmp_path / (place % number))
    inventory(tmp_path)
    monkeypatch.setattr(walk, "MOST_ENTRIES", 19)
    with pytest.raises(TooMuchToMeasure, match="more than 19 entries"):
        inventory(tmp_path)


@pytest.mark.parametrize("make", [folder, file])
def test_names_are_bounded_by_what_they_take_and_not_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    """Two million paths of a kilobyte each are gigabytes, in an agent that is meant to take sixty megabytes."""
    for number in range(10):
        make(tmp_path / CAS / f"{number:0200}")
    inventory(tmp_path)
    monkeypatch.setattr(walk, "MOST_BYTES", 10 * 200)
    with pytest.raises(TooMuchToMeasure, match="MiB"):
        inventory(tmp_path)


def test_a_walk_that_is_given_up_goes_no_further(tmp_path: Path) -> None:
    for number in range(50):
        folder(tmp_path / CAS / str(number))
    looks = 0

    def is_given_up() -> bool:
        nonlocal looks
        looks += 1
        return looks > 60  # all of them were seen by then, and some of the empty ones were looked into

    with pytest.raises(TooMuchToMeasure, match="in time"):
        inventory(tmp_path, Walk(is_given_up))
    assert looks == 61


@pytest.mark.real_time
@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_the_thread_of_a_walk_ends_with_whoever_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """I13: each look at a Pod parked one more thread in the same image."""
    file(tmp_path / "one")
    began, ended = threading.Event(), threading.Event()

    def endless(mount: Path, steps: Walk) -> None:
        began.set()
        try:
            while True:
                list(steps.entries(bytes(mount)))
        except TooMuchToMeasure:
            ended.set()

    monkeypatch.setattr(walk, "MOST_ENTRIES", 10**12)
    monkeypatch.setattr(walk, "DEADLINE_S", 3600.0 if is_cancelled else 0.01)
    task = asyncio.create_task(walked(endless, tmp_path))
    assert await asyncio.to_thread(began.wait, 30)
    if is_cancelled:
        task.cancel()
    with pytest.raises(asyncio.CancelledError if is_cancelled else TimeoutError):
        await task
    assert await asyncio.to_thread(ended.wait, 30)


async def test_a_walk_that_ends_says_what_it_found(tmp_path: Path, clock: Clock) -> None:
    assert (await walked(inventory, tmp_path)).digest == EMPTY_DIGEST
