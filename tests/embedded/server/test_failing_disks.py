"""A failing disk below the API: a sentence, an orderly end, and after the repair everything that was acknowledged."""

import random
import shutil
import sqlite3
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.embedded.server.failing_disk import Program, can_mount, names_and_revisions, small_filesystem, write

pytestmark = pytest.mark.real_time

FULL_BYTES = 2 << 20
LARGE = "x" * 100_000
needs_mount = pytest.mark.skipif(not can_mount(), reason="only root can make a small filesystem")


async def fill(program: Program) -> dict[str, int]:
    """Write until a write is not acknowledged; what was, with its revision."""
    acknowledged: dict[str, int] = {}
    async with program.user() as user:
        while revision := await write(user, name := f"c{len(acknowledged)}", LARGE):
            acknowledged[name] = revision
    return acknowledged


async def assert_kept(data: Path, acknowledged: dict[str, int]) -> None:
    """On a whole disk it starts again, has it all, and takes writes."""
    with Program(data) as program:
        assert program.serves(), program.ended()
        async with program.user() as user:
            found = await names_and_revisions(user)
            assert acknowledged.items() <= found.items()
            assert await write(user, "after", "repaired") > max(found.values(), default=0)
        assert program.stop() == (0, "")


async def test_a_file_that_may_not_grow_ends_the_server_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """As a quota does, which reports another error than a full disk."""
    with Program(tmp_path / "data", most_file_bytes=FULL_BYTES) as program:
        assert program.serves()
        acknowledged = await fill(program)
        code, said = program.ended()
    assert code == 1
    assert said.startswith(f"applecart: {tmp_path}/data/store.db cannot be used (disk I/O error); check the disk")
    assert len(acknowledged) >= 5
    await assert_kept(tmp_path / "data", acknowledged)


def use_up(filler: Path) -> None:
    """Take what is left of a filesystem."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


@needs_mount
async def test_a_full_disk_ends_the_server_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    with small_filesystem(tmp_path / "disk", FULL_BYTES):
        with Program(tmp_path / "disk" / "data") as program:
            assert program.serves()
            acknowledged = await fill(program)
            code, said = program.ended()
        assert code == 1
        assert said.startswith(f"applecart: the disk of {tmp_path}/disk/data/store.db is full; free some space and start again")
        use_up(tmp_path / "disk" / "filler")
        with Program(tmp_path / "disk" / "data") as again:
            assert not again.serves(), "a disk that is still full is no disk to start on"
            code, said = again.ended()
        assert code in (1, 2)
        assert said.startswith("applecart: ")
        assert str(tmp_path / "disk" / "data") in said
        shutil.copytree(tmp_path / "disk" / "data", tmp_path / "larger")
    assert len(acknowledged) >= 5
    await assert_kept(tmp_path / "larger", acknowledged)


def forbid_writing(data: Path) -> None:
    for file in data.rglob("*"):
        file.chmod(0o500 if file.is_dir() else 0o400)


async def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    with ExitStack() as stack:
        data = tmp_path / "disk" / "data"
        if can_mount():
            make_read_only = stack.enter_context(small_filesystem(tmp_path / "disk", 16 * FULL_BYTES))
        else:
            make_read_only = partial(forbid_writing, data)
        with Program(data) as program:
            assert program.serves()
            async with program.user() as user:
                acknowledged = {"a": await write(user, "a", "b")}
            program.stop()
        make_read_only()
        with Program(data) as program:
            assert not program.serves()
            code, said = program.ended()
        assert code == 2
        assert str(data) in said
        assert "read-only" in said.lower() or "Permission denied" in said
        shutil.copytree(data, tmp_path / "writable")
    for file in (tmp_path / "writable").rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    await assert_kept(tmp_path / "writable", acknowledged)


@pytest.mark.parametrize("how", ["in the middle", "in the header", "cut short"])
async def test_a_damaged_database_is_refused_and_the_undamaged_one_served(tmp_path: Path, how: str) -> None:
    data = tmp_path / "data"
    with Program(data) as program:
        assert program.serves()
        async with program.user() as user:
            acknowledged = {f"c{number}": await write(user, f"c{number}", "y" * 3000) for number in range(60)}
        program.stop()
    whole = (data / "store.db").read_bytes()
    damaged = bytearray(whole)
    if how == "in the middle":
        middle = len(whole) // 2
        damaged[middle : middle + 40_960] = random.Random(4).randbytes(40_960)
    elif how == "in the header":
        damaged[:100] = bytes(100)
    else:
        del damaged[len(whole) // 2 :]
    (data / "store.db").write_bytes(damaged)
    with Program(data) as program:
        assert not program.serves()
        code, said = program.ended()
    assert code == 2
    # Damage that hits nothing but contents leaves a whole database, whose object cannot be read.
    assert f"{data}/store.db is damaged" in said or "is no readable object" in said
    assert said.endswith("applecart api restore")
    (data / "store.db").write_bytes(whole)
    await assert_kept(data, acknowledged)


async def test_an_object_that_is_no_json_any_more_is_named(tmp_path: Path) -> None:
    """A flipped byte inside a value: the database itself is whole."""
    data = tmp_path / "data"
    with Program(data) as program:
        assert program.serves()
        async with program.user() as user:
            revision = await write(user, "c", "content")
        program.stop()
    database = sqlite3.connect(data / "store.db")
    database.execute("UPDATE log SET value = substr(value, 1, 40) WHERE rev = ?", (revision,))
    database.commit()
    database.close()
    with Program(data) as program:
        assert not program.serves()
        code, said = program.ended()
    assert code == 2, said
    assert f"configmaps default/c at revision {revision} is no readable object" in said


async def test_a_second_server_on_the_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with Program(tmp_path / "data") as first:
        assert first.serves()
        with Program(tmp_path / "data") as second:
            assert not second.serves()
            code, said = second.ended()
        assert code == 2
        assert f"is in use by another server (process {first.process.pid})" in said
        async with first.user() as user:
            assert await write(user, "a", "b")
        assert first.stop() == (0, "")


async def test_a_missing_key_file_is_told_and_the_right_one_opens_the_database(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Program(data) as program:
        assert program.serves()
        async with program.user() as user:
            acknowledged = {"a": await write(user, "a", "b")}
            assert await write(user, "s", "hidden", kind="Secret")
        program.stop()
    key = (data / "secrets.key").read_bytes()
    (data / "secrets.key").unlink()
    for another, why in (
        (None, f"{data}/secrets.key is missing, and {data}/store.db holds Secrets that only it opens"),
        (b"00" * 32, f"secrets default/s was sealed with another key than the one in {data}/secrets.key"),
    ):
        if another:
            (data / "secrets.key").write_bytes(another)
        with Program(data) as program:
            assert not program.serves()
            code, said = program.ended()
        assert code == 2
        assert why in said
    (data / "secrets.key").write_bytes(key)
    await assert_kept(data, acknowledged)
