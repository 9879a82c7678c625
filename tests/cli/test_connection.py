"""`applecart connection`: what it finds, and one sentence for each thing that can be wrong."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from applecart.cli.connection import Connection, text
from applecart.cli.main import run
from tests.kube.api_stand_in import ApiStandIn, Certificates
from tests.kube.kubeconfigs import b64, kubeconfig, write

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


def expired_token() -> str:
    ended = datetime.now(UTC) - timedelta(hours=3, minutes=1)
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "robot", "exp": ended.timestamp()}).encode()).decode()
    return f"e30.{claims}.c2lnbmF0dXJl"


NO_ONES = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "SSL_CERT_FILE": os.devnull}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Through the real entry point, in a process of its own."""
    argv = [sys.executable, "-m", "applecart", "connection", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, env=NO_ONES)


NO_SERVER: list[tuple[Any, str, int]] = [
    ("clusters: [", "the kubeconfig {file} is not valid YAML", 2),
    ("{}", "{file} sets no current-context; set it or pass --context (contexts there: none)", 2),
    (kubeconfig(cluster={}), 'field server of cluster "farm" in {file} is missing', 2),
    (
        kubeconfig(cluster={"server": "https://a", "certificate-authority-data": "%"}),
        'field certificate-authority-data of cluster "farm" in {file} is not base64',
        2,
    ),
    (
        kubeconfig(cluster={"server": "https://a", "certificate-authority-data": b64("-----BEGIN CERTIFICATE-----")}),
        'field certificate-authority-data of cluster "farm" in {file} holds no readable certificate',
        2,
    ),
    (
        kubeconfig(cluster={"server": "https://127.0.0.1:1"}),
        ' is unreachable (connection refused); check field server of cluster "farm" in {file}',
        1,
    ),
    (
        kubeconfig(user={"exec": {**EXEC, "command": "no-such-plugin", "installHint": "brew install no-such-plugin"}}),
        'the exec plugin no-such-plugin (field exec.command of user "robot" in {file}) cannot be started '
        "(not found in PATH); brew install no-such-plugin",
        2,
    ),
    (
        kubeconfig(user={"exec": {**EXEC, "command": "false"}}),
        'the exec plugin false (field exec.command of user "robot" in {file}) exited with status 1',
        1,
    ),
    (kubeconfig(user={"tokenFile": "gone"}), "the token file {folder}/gone cannot be read (No such file or directory)", 2),
]


@pytest.mark.parametrize(("document", "sentence", "code"), NO_SERVER, ids=range(len(NO_SERVER)))
def test_a_bad_input_is_one_sentence_with_file_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: Any, sentence: str, code: int
) -> None:
    file = write(tmp_path / "config", document)
    assert run(["connection", "--kubeconfig", str(file)]) == code
    printed = capsys.readouterr()
    assert sentence.replace("{file}", str(file)).replace("{folder}", str(tmp_path)) in printed.err
    assert printed.err.startswith("applecart: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize("number", [0, 5, 6], ids=["broken-kubeconfig", "unreachable", "missing-plugin"])
def test_the_real_entry_point_says_the_same(tmp_path: Path, number: int) -> None:
    document, sentence, code = NO_SERVER[number]
    file = write(tmp_path / "config", document)
    ended = command("--kubeconfig", str(file))
    assert ended.returncode == code
    assert sentence.replace("{file}", str(file)) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_without_any_configuration_it_says_what_was_tried() -> None:
    ended = command()
    assert ended.returncode == 2
    assert "/nonexistent/.kube/config does not exist" in ended.stderr


def test_a_context_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "config", kubeconfig())
    assert run(["connection", "--kubeconfig", str(file), "--context", "barn"]) == 2
    assert f'there is no context "barn" in {file}; choose one of: "ci"' in capsys.readouterr().err


@pytest.mark.real_time
async def test_a_certificate_for_another_host_is_one_sentence(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "pki")
    async with ApiStandIn().serving(certificates.server_context("api.fleet.test")) as api:
        cluster = {"server": api.url, "certificate-authority-data": b64(certificates.ca_pem)}
        file = write(tmp_path / "config", kubeconfig(cluster))
        ended = await asyncio.to_thread(command, "--kubeconfig", str(file))
    assert ended.stderr == (
        f"applecart: {api.url} shows a certificate that is not for that host; correct field server of cluster "
        f'"farm" in {file}, or write a name that it holds in field tls-server-name of cluster "farm" in {file}\n'
    )
    assert ended.returncode == 2


@pytest.mark.real_time
async def test_an_expired_token_is_one_sentence_with_its_file_field_and_end(tmp_path: Path) -> None:
    stand_in = ApiStandIn()
    stand_in.tokens = set()
    async with stand_in.serving() as api:
        file = write(tmp_path / "config", kubeconfig({"server": api.url}, {"token": expired_token()}))
        ended = await asyncio.to_thread(command, "--kubeconfig", str(file))
    assert ended.stderr == (
        f"applecart: GET /version: {api.url} refuses the bearer token (field token of user "
        f'"robot" in {file}): it expired 3 h ago; replace it (401)\n'
    )
    assert ended.returncode == 1


@pytest.mark.real_time
async def test_a_web_server_that_is_no_kubernetes_is_one_sentence(tmp_path: Path) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>")
        writer.close()

    async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        file = write(tmp_path / "config", kubeconfig({"server": url}))
        ended = await asyncio.to_thread(command, "--kubeconfig", str(file))
    assert ended.stderr == (
        f'applecart: {url} answers, but is no Kubernetes API; correct field server of cluster "farm" in {file}\n'
    )
    assert ended.returncode == 2


@pytest.mark.real_time
async def test_it_tells_server_version_user_credential_and_its_end(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "pki")
    pair = certificates.client("robot-of-ci")
    async with ApiStandIn().serving(certificates.server_context()) as api:
        user = {"client-certificate-data": b64(pair.certificate_pem), "client-key-data": b64(pair.key_pem.reveal())}
        cluster = {"server": api.url, "certificate-authority-data": b64(certificates.ca_pem)}
        file = write(tmp_path / "config", kubeconfig(cluster, user))
        ended = await asyncio.to_thread(command, "--kubeconfig", str(file), "-o", "json")
    found = json.loads(ended.stdout)
    assert ended.stderr == ""
    assert found["server"] == api.url
    assert found["version"] == "v1.36.3"
    assert found["user"] == "robot-of-ci"
    assert found["groups"] == ["system:authenticated"]
    assert found["credential"] == f'client certificate (field client-certificate-data of user "robot" in {file})'
    assert found["expiresAt"] is not None
    assert found["namespace"] == "default"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_text_for_a_terminal_has_one_line_per_finding() -> None:
    found = Connection("https://a", "a file", "v1.36.3", "robot", ("g", "h"), "a token", NOW + timedelta(hours=3), "ci", 0.25)
    assert text(found, NOW).splitlines() == [
        "server      https://a (a file)",
        "version     v1.36.3",
        "user        robot (groups: g, h)",
        "credential  a token",
        "expires     2026-01-01T03:00:00Z (in 3 h)",
        "namespace   ci",
        "took        0.25 s",
    ]


def test_a_server_that_does_not_tell_who_we_are_is_no_error() -> None:
    found = Connection("https://a", "a file", "v1.27.0", None, (), "a token", None, "ci", 0.25)
    shown = text(found, NOW)
    assert "user        not known: the server does not tell" in shown
    assert "expires     not known" in shown
