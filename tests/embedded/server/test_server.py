"""The server put together on a data folder."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from applecart.api.core import Namespace, Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import existing_data_folder
from applecart.embedded.server.server import EmbeddedServer, offline_api, reachable
from applecart.embedded.trust.control_plane_files import KEPT
from applecart.embedded.trust.pki import LEAF_LIFETIME
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import Unauthorized
from tests.soak import soaks

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::1", "[::1]"),
        ("fe80::1", "[fe80::1]"),
        ("10.0.0.7", "10.0.0.7"),
        ("api.example.org", "api.example.org"),
    ],
)
def test_the_address_is_written_as_a_client_here_can_use_it(host: str, written: str) -> None:
    assert reachable(host) == written


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
async def test_the_kubeconfig_that_it_writes_reaches_it_over_tls(host: str, tmp_path: Path) -> None:
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock, host=host) as server:
        assert server.folder.address.read_text() == server.url
        client = Client(connect(str(server.folder.admin_kubeconfig), None, clock), clock)
        assert (await client.get(Namespace, Key("", "default"))).name == "default"
        await client.aclose()
    assert not server.folder.address.exists()


async def test_a_client_whose_certificate_has_ended_is_told_401(tmp_path: Path) -> None:
    """A kubeconfig is good for a day; on the next, kubectl said: Unable to connect to the server: EOF."""
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock) as server:
        server.folder.write_admin(server.authority, server.url, clock.now() - LEAF_LIFETIME - timedelta(days=1))
        client = Client(connect(str(server.folder.admin_kubeconfig), None, clock), clock)
        with pytest.raises(Unauthorized):
            await client.get(Namespace, Key("", "default"))
        await client.aclose()


async def test_its_data_outlive_it_and_can_be_read_without_a_socket(tmp_path: Path) -> None:
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock) as server:
        uid = (await Client(server.running.transport(), clock).get(Namespace, Key("", "default"))).metadata.uid
        with pytest.raises(BadInput, match="is in use by another server"):
            async with offline_api(server.folder, clock):
                pytest.fail("two on one folder")
    async with offline_api(existing_data_folder(tmp_path), clock) as running:
        assert (await Client(running.transport(), clock).get(Namespace, Key("", "default"))).metadata.uid == uid


async def test_a_pipe_that_its_reader_closed_is_no_fault_of_the_folder(tmp_path: Path) -> None:
    """`api export | head` of a stopped server ended with: cannot be used (Broken pipe); check the disk and its space."""
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        pass
    with pytest.raises(BrokenPipeError):
        async with offline_api(server.folder, SystemClock()):
            raise BrokenPipeError(32, "Broken pipe")
    assert server.folder.holder() is None


@pytest.mark.parametrize("host", ["nope.invalid", "999.1.1.1", "192.0.2.7", "a..b", "\u00fc"])
async def test_a_host_that_is_not_this_machines_is_said_to_be_that(host: str, tmp_path: Path) -> None:
    """It said: choose another port."""
    with pytest.raises(BadInput, match=rf"^--host {re.escape(host)} is no address of this machine \(") as refusal:
        await EmbeddedServer(tmp_path, SystemClock(), host=host).__aenter__()
    assert "port" not in str(refusal.value)


NO_NAMES = (
    "",
    "a b",
    "https://a",
    "a:6443",
    "a,b",
    "-a",
    "a..b",
    "a.",
    "10.0.0.300",
    "\u00fc",
    "a" * 64,
    "a." * 127 + "a",
    "*",
)


@pytest.mark.parametrize("name", NO_NAMES)
async def test_a_name_that_no_certificate_can_carry_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no name for a certificate"):
        await EmbeddedServer(tmp_path / "data", SystemClock(), names=("api.example.org", name)).__aenter__()
    assert not (tmp_path / "data").exists()


async def test_names_and_addresses_that_clients_use_are_in_the_certificate(tmp_path: Path) -> None:
    names = ("api.example.org", "*.ci.example.org", "mac_1", "10.0.0.7", "fe80::1", "xn--bcher-kva.example")
    async with EmbeddedServer(tmp_path, SystemClock(), names=names) as server:
        shown = x509.load_pem_x509_certificate(server.folder.server_files.certificate.read_bytes())
    alternatives = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names) <= {str(one.value) for one in alternatives}


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != "lock"}


async def test_an_empty_database_beside_a_key_is_refused_and_so_is_none(tmp_path: Path) -> None:
    """A copy that ran out of disk left `store.db` without a byte, and the server began an empty cluster without a word. So it
    did for whoever moved a damaged one away and forgot to restore."""
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        folder = server.folder
    folder.database.write_bytes(b"")
    for what in ("empty", "missing"):
        before = files_of(tmp_path)
        with pytest.raises(BadInput, match=rf"store\.db is {what}, .*restore a backup .*, or remove both to begin anew"):
            await EmbeddedServer(tmp_path, SystemClock()).__aenter__()
        assert files_of(tmp_path) == before
        folder.database.unlink(missing_ok=True)
    folder.secrets_key.unlink()
    async with EmbeddedServer(tmp_path, SystemClock()):
        pass


async def test_a_key_that_is_missing_beside_sealed_secrets_is_not_made_anew(tmp_path: Path) -> None:
    """It was, before the start was refused, and then nothing said any more that a file was missing."""
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        client = Client(server.running.transport(), SystemClock())
        await client.create(Secret(metadata=ObjectMeta(name="token", namespace="default")))
        folder = server.folder
    kept = folder.secrets_key.read_bytes()
    folder.secrets_key.unlink()
    before = files_of(tmp_path)
    with pytest.raises(BadInput, match=r"secrets\.key is missing, and .*store\.db holds Secrets that only it opens"):
        await EmbeddedServer(tmp_path, SystemClock()).__aenter__()
    assert files_of(tmp_path) == before
    folder.secrets_key.write_bytes(kept)
    async with EmbeddedServer(tmp_path, SystemClock()):
        pass


# Ends as by a power cut before the nth of: a statement that makes the database, a key, a certificate.
FIRST_START = """
import asyncio, os, sqlite3, sys
from pathlib import Path as Folder
from applecart.clock import SystemClock
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.store import sealing
from applecart.embedded.trust import pki

left = [int(sys.argv[2])]

def counted(call):
    def counting(*given):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), 9)
        return call(*given)
    return counting

class Dying(sqlite3.Connection):
    executescript = counted(sqlite3.Connection.executescript)

connect = sqlite3.connect
sqlite3.connect = lambda file, **how: connect(file, factory=Dying, **how)
sealing.write_private = pki.write_private = counted(pki.write_private)
asyncio.run(EmbeddedServer(Folder(sys.argv[1]), SystemClock()).__aenter__())
"""


def kill_a_first_start(data: Path, steps: int) -> None:
    killed = subprocess.run([sys.executable, "-c", FIRST_START, str(data), str(steps)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr


@pytest.mark.parametrize("steps", soaks((0, 1), tuple(range(12))))
async def test_a_first_start_that_is_killed_anywhere_is_begun_again(steps: int, tmp_path: Path) -> None:
    kill_a_first_start(tmp_path, steps)
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        assert await Client(server.running.transport(), SystemClock()).get(Namespace, Key("", "default"))


async def test_a_start_that_fails_lets_go_of_the_folder(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "first", SystemClock()) as first:
        with pytest.raises(BadInput, match="cannot listen on"):
            await EmbeddedServer(tmp_path / "second", SystemClock(), port=first.port).__aenter__()
    second = existing_data_folder(tmp_path / "second")
    assert second.holder() is None
    assert not second.address.exists()
    async with EmbeddedServer(tmp_path / "second", SystemClock()) as again:
        assert again.folder.holder()


async def test_a_key_file_of_another_server_is_found_out(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        folder = server.folder
    folder.secrets_key.write_text("not hexadecimal")
    with pytest.raises(BadInput, match="holds no key of 32 bytes"):
        await EmbeddedServer(tmp_path, SystemClock()).__aenter__()
    assert folder.holder() is None


async def test_an_authority_that_was_lost_is_not_replaced_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every kubeconfig and every agent failed after a move that forgot a folder, and the server said that all was well."""
    async with EmbeddedServer(tmp_path, SystemClock()):
        pass
    assert "missing" not in caplog.text
    for file in KEPT:
        (tmp_path / file).unlink()
    async with EmbeddedServer(tmp_path, SystemClock()):
        assert "put pki/ back" in caplog.text
        assert "the key of tokens is missing" in caplog.text
