"""Tart's home on disk: what counts as a VM, what a lock says, and what a person may have edited."""

import asyncio
import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from applecart.sim.tart.disk_image import DiskImage, write
from applecart.sim.tart.host_facts import HostFacts
from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.locks import Lock, is_locked
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.store import (
    CONFIG,
    DISK,
    EXPLICIT,
    NVRAM,
    Store,
    VmConfig,
    accessed_at,
    read_config,
    remove,
    touch,
    write_config,
)
from tests.virtual_time import elapse

DIGEST = "sha256:" + "a" * 64


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    write_config(folder, VmConfig(mac_address="02:00:00:00:00:01"))
    write(folder / DISK, DiskImage(id=folder.name, blocks={"shared": 10, folder.name: 1}))
    (folder / NVRAM).touch()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.mark.parametrize("file", [CONFIG, DISK, NVRAM])
def test_a_vm_is_one_when_all_three_of_its_files_are_there(store: Store, file: str) -> None:
    """Half a VM is not a missing one: Tart has other words for it, and another code."""
    make(store.vms / "v")
    assert store.local_names() == ["v"]
    (store.vms / "v" / file).unlink()
    assert store.local_names() == []
    with pytest.raises(Refused, match=r"VM is missing some of its files \(config\.json, disk\.img or nvram\.bin\)") as refused:
        store.open("v")
    assert refused.value.code == 1
    remove(store.vms / "v")
    with pytest.raises(Refused, match='"v" does not exist') as refused:
        store.open("v")
    assert refused.value.code == 2


def test_tags_are_links_to_digests_and_both_are_listed(store: Store) -> None:
    folder = make(store.images / "ghcr.io" / "a" / "b" / DIGEST)
    (folder.parent / "1").symlink_to(folder)
    assert dict(store.cached()) == {f"ghcr.io/a/b@{DIGEST}": folder, "ghcr.io/a/b:1": folder.parent / "1"}
    assert store.open("ghcr.io/a/b:1") == folder.parent / "1"


def test_an_image_goes_when_nothing_leads_to_it(store: Store) -> None:
    parent = store.images / "ghcr.io" / "a" / "b"
    tagged, explicit, loose = (make(parent / f"sha256:{letter * 64}") for letter in "123")
    (parent / "tag").symlink_to(tagged)
    (parent / "broken").symlink_to(parent / "gone")
    (explicit / EXPLICIT).touch()
    store.drop_unreferenced()
    assert sorted(path.name for path in parent.iterdir()) == sorted([tagged.name, explicit.name, "tag"])
    assert not loose.exists()


def test_free_space_counts_a_shared_block_once(store: Store) -> None:
    HostFacts(disk_bytes=1000, other_bytes=100).write(store.sim)
    assert store.free_bytes() == 900
    make(store.vms / "v")
    make(store.tmp / "half")
    make(store.images / "ghcr.io" / "a" / DIGEST)
    assert store.free_bytes() == 900 - 10 - 3
    HostFacts(disk_bytes=1, other_bytes=100).write(store.sim)
    assert store.free_bytes() == 0


def test_only_what_nobody_holds_is_cleaned(store: Store) -> None:
    for name in ("held", "free"):
        (store.tmp / name).mkdir()
    with Lock(store.tmp / "held") as lock:
        assert lock.try_take()
        store.clean_tmp()
        assert [path.name for path in store.tmp.iterdir()] == ["held"]
    store.clean_tmp()
    assert list(store.tmp.iterdir()) == []


def test_the_last_use_is_not_moved_by_readers_and_writers_of_other_files(store: Store) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    folder = make(store.vms / "v")
    touch(folder, at)
    (folder / "applecart.json").write_text("mark")
    list(folder.iterdir())
    assert accessed_at(folder) == at


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xff", b"[]", b'{"cpuCount": "many"}'])
def test_a_configuration_that_cannot_be_read_is_a_sentence(store: Store, content: bytes) -> None:
    folder = make(store.vms / "v")
    (folder / CONFIG).write_bytes(content)
    with pytest.raises(Refused, match=r"config\.json"):
        read_config(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"disk_bytes": "much"}'])
def test_a_file_of_the_simulation_that_cannot_be_read_is_a_sentence(store: Store, content: bytes) -> None:
    (store.sim / "host.json").write_bytes(content)
    with pytest.raises(Refused, match=r"host\.json cannot be used"):
        HostFacts.read(store.sim)
    (store.sim / "folder.json").mkdir()
    with pytest.raises(Refused, match=r"folder\.json cannot be used"):
        load(store.sim / "folder.json", HostFacts)


@pytest.mark.parametrize(
    ("field", "value"),
    [("pull_bytes_per_s", 0), ("push_bytes_per_s", -1), ("look_every_s", 0), ("log_every_s", 0), ("boot_s", -1), ("speed", 1)],
)
def test_a_pace_at_which_nothing_could_move_is_a_sentence(store: Store, field: str, value: int) -> None:
    """Nothing per second was a division by zero, and a look every 0 s a loop without an end."""
    save(store.sim / "host.json", {"pace": {field: value}})
    with pytest.raises(Refused, match=r"host\.json cannot be used"):
        HostFacts.read(store.sim)


def test_a_saved_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.json"
    save(path, {"a": 1})
    save(path, {"a": 2})
    assert load(path, dict[str, int]) == {"a": 2}
    assert [entry.name for entry in path.parent.iterdir()] == ["x.json"]
    assert load(tmp_path / "none.json", dict[str, int]) is None


async def test_a_lock_is_waited_for_and_given_back_by_whoever_is_killed(tmp_path: Path) -> None:
    async def hold() -> None:
        with Lock(tmp_path) as lock:
            await lock.take()
            await asyncio.sleep(1000)

    first, second = asyncio.create_task(hold()), asyncio.create_task(hold())
    await elapse(10)
    assert is_locked(tmp_path)
    first.cancel()
    await elapse(10)
    assert is_locked(tmp_path)  # by the second
    second.cancel()
    await elapse(1)
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "gone")


def test_a_look_at_a_lock_takes_nothing_from_another_look(tmp_path: Path) -> None:
    """Two people who looked at once made each other believe that a VM runs which nobody runs."""
    looking = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(looking, fcntl.LOCK_SH)  # a look of another process, in the middle
        assert not is_locked(tmp_path)
    finally:
        os.close(looking)


async def test_a_lock_that_is_only_looked_at_is_taken_and_one_that_is_held_is_not(tmp_path: Path) -> None:
    looking = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    with Lock(tmp_path) as lock, Lock(tmp_path) as late:
        taking = asyncio.create_task(lock.take_unless_held())
        await elapse(0.001)
        assert not taking.done()
        os.close(looking)
        assert await taking
        assert not await late.take_unless_held()


async def test_whoever_looks_for_ever_is_not_waited_for_as_long(tmp_path: Path) -> None:
    """I10: a wait has an end."""
    looking = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    try:
        with Lock(tmp_path) as lock:
            assert not await lock.take_unless_held()
    finally:
        os.close(looking)


def test_removing_follows_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "nothing"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
