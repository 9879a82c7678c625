"""The port of an API that was started before."""

import socket
from pathlib import Path

import pytest

from applecart.cli.api.port import port_again
from applecart.cli.api.start import PORT
from tests.cli.commands import SERVES, read_until, running


def ran(data: Path, port: int) -> Path:
    """A folder as a server on that port left it."""
    data.mkdir()
    (data / "admin.kubeconfig").write_text(f"clusters:\n- cluster:\n    server: https://127.0.0.1:{port}\n  name: applecart\n")
    return data


def test_an_api_gets_its_last_port_again_and_another_only_with_a_line_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        data = ran(tmp_path / "data", port)
        assert port_again(data, PORT) == 0
        assert f"notice: port {port} of the last start is taken, so the API takes another" in capsys.readouterr().err
    assert port_again(data, PORT) == port
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", [None, "", "no kubeconfig", "server: https://name"])
def test_a_folder_where_none_ran_tells_no_port(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "admin.kubeconfig").write_text(text)
    assert port_again(tmp_path, PORT) == PORT


def test_a_start_without_a_port_takes_the_last_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running("api", "start", "--no-controllers", "--data", str(ran(tmp_path / "data", port))) as process:
        assert f"  api      https://127.0.0.1:{port}\n" in read_until(process, SERVES)
