"""The server put together on a data folder."""

from pathlib import Path

import pytest

from applecart.api.core import Namespace
from applecart.api.meta import Key
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import existing_data_folder
from applecart.embedded.server.server import EmbeddedServer, offline_api, reachable
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect

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


async def test_its_data_outlive_it_and_can_be_read_without_a_socket(tmp_path: Path) -> None:
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock) as server:
        uid = (await Client(server.running.transport(), clock).get(Namespace, Key("", "default"))).metadata.uid
        with pytest.raises(BadInput, match="is in use by another server"):
            async with offline_api(server.folder, clock):
                pytest.fail("two on one folder")
    async with offline_api(existing_data_folder(tmp_path), clock) as running:
        assert (await Client(running.transport(), clock).get(Namespace, Key("", "default"))).metadata.uid == uid


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
    async with EmbeddedServer(tmp_path, SystemClock()) as server:
        authority = server.folder.authority_files.certificate
    assert "authority" not in caplog.text
    authority.unlink()
    async with EmbeddedServer(tmp_path, SystemClock()):
        assert "put pki/ back" in caplog.text
