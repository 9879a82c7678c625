"""`applecart api restore`: a backup becomes a working server with the same identity, and nothing is lost on the way."""

import io
import random
import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.cli.api.archive import unpack
from applecart.cli.api.backup import back_up
from applecart.cli.api.database import RESTORE_JUMP, read_facts
from applecart.cli.api.restore import restore
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import DataFolder
from applecart.embedded.server.server import offline_api
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.errors import Expired
from applecart.kube.transport import Request
from tests.cli.api.folders import SECRET_VALUE, make_folder, read
from tests.cli.commands import refused, running_api

pytestmark = pytest.mark.real_time

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECRET = "/api/v1/namespaces/ci/secrets/token"


@pytest.fixture
async def folder(tmp_path: Path) -> DataFolder:
    return await make_folder(tmp_path / "data")


@pytest.fixture
def archive(folder: DataFolder, tmp_path: Path) -> Path:
    target = tmp_path / "backup.tar"
    back_up(folder, target, NOW, with_keys=True, progress=lambda done, total: None)
    return target


@pytest.fixture
def keyless(folder: DataFolder, tmp_path: Path) -> Path:
    target = tmp_path / "keyless.tar"
    back_up(folder, target, NOW, with_keys=False, progress=lambda done, total: None)
    return target


async def test_a_restored_server_has_the_objects_and_the_identity(folder: DataFolder, archive: Path, tmp_path: Path) -> None:
    restore(tmp_path / "new", archive, NOW, force=False)
    new = DataFolder(tmp_path / "new")
    secret = await read(new, SECRET)
    assert secret
    assert secret["data"]["token"] == SECRET_VALUE
    assert new.authority_files.certificate.read_bytes() == folder.authority_files.certificate.read_bytes()


async def test_it_goes_on_far_above_every_revision_that_was_given_out(folder: DataFolder, archive: Path) -> None:
    """A client that saw a revision after the backup was taken must not take the new ones for old news."""
    await read(folder, SECRET)  # a start, which gives out revisions
    given_out = read_facts(folder.database).revision
    done = restore(folder.folder, archive, NOW, force=True)
    facts = read_facts(folder.database)
    assert done.revision == facts.revision == given_out + RESTORE_JUMP
    assert facts.compacted == facts.revision, "no history before it is pretended"


async def test_a_client_that_saw_later_revisions_is_told_to_list_anew(folder: DataFolder, archive: Path) -> None:
    await read(folder, SECRET)
    given_out = read_facts(folder.database).revision
    restore(folder.folder, archive, NOW, force=True)
    watch = (("watch", "true"), ("resourceVersion", str(given_out)))
    exact = (("resourceVersion", str(given_out)), ("resourceVersionMatch", "Exact"))
    clock = SystemClock()
    async with offline_api(folder, clock) as running:
        client = Client(running.transport(), clock)
        stream = await client.open(Request("GET", "/api/v1/namespaces", watch))
        event = msgspec.json.decode(await stream.read())
        await stream.aclose()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        with pytest.raises(Expired):
            await client.call(Request("GET", "/api/v1/namespaces", exact))


async def test_a_folder_with_a_database_is_left_alone_unless_forced(folder: DataFolder, archive: Path) -> None:
    before = folder.database.read_bytes()
    with pytest.raises(BadInput, match="has a database already; give --force to move it aside"):
        restore(folder.folder, archive, NOW, force=False)
    assert folder.database.read_bytes() == before


async def test_what_is_replaced_is_moved_aside_each_time(folder: DataFolder, archive: Path) -> None:
    before = folder.database.read_bytes()
    first = restore(folder.folder, archive, NOW, force=True).moved_to
    second = restore(folder.folder, archive, NOW, force=True).moved_to
    assert first
    assert second
    assert first != second
    assert (first / "store.db").read_bytes() == before
    assert (first / "secrets.key").exists()


async def test_a_damaged_database_can_be_replaced(folder: DataFolder, archive: Path) -> None:
    folder.database.write_bytes(b"gone")
    restore(folder.folder, archive, NOW, force=True)
    assert await read(folder, SECRET)


async def test_a_folder_that_a_server_holds_is_refused(archive: Path, tmp_path: Path) -> None:
    with running_api(tmp_path / "held", "--no-controllers") as process:
        said = refused("api", "restore", "--data", str(tmp_path / "held"), "--from", str(archive), "--force")
    assert f"is in use by another server (process {process.pid})" in said


async def test_without_keys_it_needs_those_that_lie_in_the_folder(folder: DataFolder, keyless: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"holds no keys; put secrets\.key and pki of the server it is from into"):
        restore(tmp_path / "new", keyless, NOW, force=False)
    assert not (tmp_path / "new" / "store.db").exists()
    restore(folder.folder, keyless, NOW, force=True)
    assert await read(folder, SECRET)


async def test_another_servers_key_is_found_out_before_anything_is_replaced(keyless: Path, tmp_path: Path) -> None:
    other = await make_folder(tmp_path / "other")
    before = other.database.read_bytes()
    with pytest.raises(BadInput, match="was sealed with another key"):
        restore(other.folder, keyless, NOW, force=True)
    assert other.database.read_bytes() == before


def altered(archive: Path, name: str, content: bytes | None) -> Path:
    """The archive with one part replaced, or without it."""
    changed = archive.with_name("altered.tar")
    with tarfile.open(archive) as old, tarfile.open(changed, "w") as new:
        for member in old:
            stream = old.extractfile(member)
            assert stream
            data = stream.read()
            if member.name == name:
                if content is None:
                    continue
                data, member.size = content, len(content)
            new.addfile(member, io.BytesIO(data))
    return changed


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("store.db", b"no database" * 1000, "the database in the backup is damaged"),
        ("store.db", None, "it lacks a part or has one too many"),
        ("secrets.key", None, "it lacks a part or has one too many"),
        ("secrets.key", b"short", "holds no key of 32 bytes"),
        ("secrets.key", b"0" * 100_000, "too large for a key"),
        ("manifest.json", None, "it has no manifest.json"),
        ("manifest.json", b"{}", "its manifest.json cannot be read"),
        ("manifest.json", b"[" * 5000, "its manifest.json cannot be read"),
    ],
)
async def test_an_archive_that_is_not_whole_is_refused_and_changes_nothing(
    folder: DataFolder, archive: Path, name: str, content: bytes | None, said: str
) -> None:
    before = folder.database.read_bytes()
    with pytest.raises(BadInput, match=said):
        restore(folder.folder, altered(archive, name, content), NOW, force=True)
    assert folder.database.read_bytes() == before
    assert not list(folder.folder.glob(".restoring-*"))


async def test_an_archive_of_a_later_format_names_it(folder: DataFolder, archive: Path) -> None:
    later = {"format": 2, "applecart": "9", "madeAt": "2030-01-01T00:00:00Z", "revision": 1, "hasKeys": True}
    with pytest.raises(BadInput, match="has format 2 and this applecart reads 1"):
        restore(folder.folder, altered(archive, "manifest.json", msgspec.json.encode(later)), NOW, force=True)


async def test_parts_that_climb_out_of_the_folder_or_are_links_are_refused(archive: Path, tmp_path: Path) -> None:
    link = tarfile.TarInfo("pki/../../escaped")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(archive, "a") as tar:
        tar.addfile(link)
    with pytest.raises(BadInput, match="it lacks a part or has one too many"):
        restore(tmp_path / "new", archive, NOW, force=False)
    assert not (tmp_path / "escaped").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30), how=st.sampled_from(["cut", "flip", "noise"]))
def test_a_file_with_any_damage_is_a_sentence_or_restores(archive: Path, tmp_path: Path, seed: int, how: str) -> None:
    chance = random.Random(seed)
    content = bytearray(archive.read_bytes())
    if how == "cut":
        content = content[: chance.randrange(len(content))]
    elif how == "flip":
        for _ in range(20):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    else:
        content = bytearray(chance.randbytes(2000))
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(content)
    target = tmp_path / f"out-{seed}-{how}"
    target.mkdir(exist_ok=True)
    for file in list(target.rglob("*")):
        if file.is_file():
            file.unlink()
    with suppress(BadInput):  # and nothing else
        unpack(damaged, target)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    said = refused("api", "restore", "--data", str(tmp_path / "new"), "--from", str(tmp_path / "none.tar"))
    assert "none.tar is not a file" in said
    assert not (tmp_path / "new").exists()


def modes(below: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode for path in below.rglob("*")}


@pytest.mark.parametrize("is_there", [False, True], ids=["no folder", "an empty one"])
async def test_a_refused_restore_leaves_nothing(keyless: Path, tmp_path: Path, is_there: bool) -> None:
    """It left a folder with an empty pki and a lock, in which nobody had a server."""
    target = tmp_path / "deep" / "new"
    if is_there:
        target.mkdir(parents=True, mode=0o755)
    before = modes(tmp_path)
    for archive, said in ((keyless, "holds no keys"), (altered(keyless, "store.db", None), "it lacks a part")):
        with pytest.raises(BadInput, match=said):
            restore(target, archive, NOW, force=False)
    (tmp_path / "altered.tar").unlink()
    assert modes(tmp_path) == before
