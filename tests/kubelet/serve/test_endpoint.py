"""The endpoint over real TLS: who gets in, and what they get."""

import asyncio
import errno
import json
import os
import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.serve.endpoint import KubeletEndpoint
from applecart.kubelet.serve.guests import State
from applecart.kubelet.serve.tls import TlsFiles
from applecart.kubelet.serve.upgrade import NO_UPGRADE
from applecart.observe.connection_limit import CONNECTIONS
from applecart.tart.this_mac import ThisMac
from tests.embedded.relay.stage import HOST, NODE, Trust, session_to
from tests.kubelet.serve.agent_stage import AgentStage, agent_stage
from tests.kubelet.serve.local_guests import print_to, say_in
from tests.kubelet.serve.test_access import allow
from tests.kubelet.serve.test_callers import service_account_token

pytestmark = pytest.mark.real_time

LOGS = "/containerLogs/default/job/vm"
EXEC = "/exec/default/job/vm?command=true&output=1"
ROUNDS = 100
VALUES = ["", "1", "true", "-1", "x", "9" * 30, "é", "\x00", "a b", "%", "../..", "0001-01-01T00:00:00Z", "#?&="]
NAMES = ["command", "input", "output", "error", "tty", "tailLines", "sinceTime", "sinceSeconds", "limitBytes", "previous"]
PATHS = [
    "containerLogs/default/job/vm",
    "exec/default/job/vm",
    "attach/default/job/vm",
    "exec/x",
    "run/default/job/vm",
    "..",
    "",
]


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[AgentStage]:
    async with agent_stage(tmp_path, clock) as stage:
        print_to(stage.guests.add(), "hello\n")
        yield stage


async def ask(session: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, str]:
    async with session, session.get(path, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_the_api_server_reads_logs_while_the_api_is_away(stage: AgentStage) -> None:
    stage.wire.is_cut = True
    assert await ask(stage.session(), LOGS) == (200, "hello\n")
    assert await ask(stage.session("root", "system:masters"), LOGS) == (200, "hello\n")


async def test_whoever_shows_nothing_is_unauthorized(stage: AgentStage) -> None:
    assert await ask(stage.stranger(), LOGS) == (401, "Unauthorized")
    assert await ask(stage.stranger(), LOGS, Authorization="Bearer nobody-knows-this") == (401, "Unauthorized")
    assert await ask(stage.stranger(), "/no/such/path") == (401, "Unauthorized")


async def test_a_certificate_of_another_authority_opens_nothing(stage: AgentStage, tmp_path: Path, clock: Clock) -> None:
    other = Trust(tmp_path / "other", clock)
    context = stage.trust.client_context(other.client_pair("kube-apiserver-kubelet-client", "system:masters"))
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask(session_to(stage.url, context), LOGS)


async def test_a_known_user_needs_a_right_to_this_node(stage: AgentStage) -> None:
    said = "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[proxy])"
    assert await ask(stage.session("ann"), LOGS) == (403, said)
    await allow(stage.client, "bob", "get", "nodes/proxy", "nodes/stats")
    assert await ask(stage.session("bob"), LOGS) == (200, "hello\n")
    assert (await ask(stage.session("bob"), "/stats/summary"))[0] == 200


async def test_who_may_only_read_runs_no_command(stage: AgentStage) -> None:
    """A WebSocket begins with GET, and `get nodes/proxy` must not be enough."""
    await allow(stage.client, "bob", "get", "nodes/proxy")
    status, said = await ask(stage.session("bob"), EXEC)
    assert (status, said) == (403, "Forbidden (user=bob, verb=create, resource=nodes, subresource(s)=[proxy])")
    assert stage.commands.sessions == []


async def test_a_token_of_the_cluster_is_as_good_as_a_certificate(stage: AgentStage) -> None:
    token = await service_account_token(stage.client)
    user = "system:serviceaccount:ci:prometheus"
    bearer = f"Bearer {token.reveal()}"
    status, said = await ask(stage.stranger(), "/stats/summary", Authorization=bearer)
    assert (status, said) == (403, f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[stats])")
    await allow(stage.client, user, "get", "nodes/proxy")
    assert await ask(stage.stranger(), LOGS, Authorization=bearer) == (200, "hello\n")


async def test_an_api_that_is_away_is_a_503_for_everybody_else(stage: AgentStage) -> None:
    stage.wire.is_cut = True
    status, said = await ask(stage.session("ann"), LOGS)
    assert (status, said) == (503, "the Kubernetes API cannot be asked what ann may do; try again")
    status, said = await ask(stage.stranger(), LOGS, Authorization="Bearer x")
    assert (status, said) == (503, "the Kubernetes API cannot be asked who you are; try again")


async def test_logs_are_chosen_by_the_query(stage: AgentStage) -> None:
    guest = stage.guests.find("default", "job")
    assert guest is not None
    say_in(guest, "one\ntwo\n")
    assert await stage.get(f"{LOGS}?tailLines=2") == (200, "one\ntwo\n")
    assert await stage.get(f"{LOGS}?limitBytes=7") == (200, "hello\no")
    status, text = await stage.get(f"{LOGS}?timestamps=true&tailLines=1")
    assert (status, text.endswith("Z two\n")) == (200, True)


async def test_a_followed_log_ends_with_its_vm(stage: AgentStage) -> None:
    guest = stage.guests.find("default", "job")
    assert guest is not None
    async with stage.session() as session, session.get(f"{LOGS}?follow=true") as answer:
        assert await answer.content.readline() == b"hello\n"
        say_in(guest, "more\n")
        assert await answer.content.readline() == b"more\n"
        stage.guests.end(guest)
        assert await answer.content.read() == b""


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/containerLogs/default/none/vm", 404, 'pod "none" does not exist'),
        ("/containerLogs/default/job/other", 404, 'container "other" not found in pod "job"'),
        (f"{LOGS}?previous=true", 400, 'previous terminated container "vm" in pod "job" not found'),
        (f"{LOGS}?tailLines=x", 400, '{"message": "Unable to decode query."}'),
        ("/containerLogs/default/waits/vm", 400, 'container "vm" in pod "waits" is waiting to start: ContainerCreating'),
        ("/exec/default/none/vm?command=x&output=1", 404, 'pod "none" does not exist'),
        ("/exec/default/job/vm?command=x", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/job/vm?command=x&output=1", 400, NO_UPGRADE),
        ("/attach/default/job/vm?output=1", 400, NO_UPGRADE),
    ],
)
async def test_what_cannot_be_done_is_explained(stage: AgentStage, path: str, status: int, said: str) -> None:
    stage.guests.add("waits", state=State.WAITING)
    assert await stage.get(path) == (status, said)


async def test_pods_health_and_usage(stage: AgentStage) -> None:
    assert await stage.get("/healthz") == (200, "ok")
    status, text = await stage.get("/pods")
    listed = json.loads(text)
    assert (status, listed["kind"], [pod["metadata"]["name"] for pod in listed["items"]]) == (200, "PodList", ["job"])
    while True:  # `ps` may take longer than one summary waits for it; what it found is in the next one
        status, text = await stage.get("/stats/summary")
        summary = json.loads(text)
        if "memory" in summary["node"] and summary["pods"]:
            break
    assert (status, summary["node"]["memory"]["workingSetBytes"] > 0) == (200, True)
    assert [pod["podRef"]["name"] for pod in summary["pods"]] == ["job"]
    assert (await stage.get("/runningpods/"))[0] == 404


async def test_changed_certificates_are_served_and_believed_without_a_restart(
    stage: AgentStage, tmp_path: Path, clock: Clock
) -> None:
    other = Trust(tmp_path / "other", clock)
    stage.tls.certificate.write_bytes(other.agent.certificate.read_bytes())
    stage.endpoint._tls.look()  # half of it: the key is not the certificate's
    assert await ask(stage.session(), LOGS) == (200, "hello\n")
    stage.tls.key.write_bytes(other.agent.key.read_bytes())
    stage.tls.client_authority.write_bytes(other.pem)
    stage.endpoint._tls.look()
    fresh = other.client_context(other.client_pair("kube-apiserver-kubelet-client"))
    assert await ask(session_to(stage.url, fresh), LOGS) == (200, "hello\n")
    stale = other.client_context(stage.trust.client_pair("kube-apiserver-kubelet-client"))
    with pytest.raises((aiohttp.ClientError, OSError)):
        await ask(session_to(stage.url, stale), LOGS)


@pytest.mark.parametrize("surprise", [RuntimeError("a bug"), OSError(errno.EMFILE, "too many open files")])
async def test_a_certificate_that_could_not_be_read_once_is_read_again(
    stage: AgentStage, surprise: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One surprise ended the rotation without a word; a process out of handles looked at the files never again."""
    context, surprises = TlsFiles.context, [surprise, surprise]

    def surprised(files: TlsFiles) -> ssl.SSLContext:
        if surprises:
            raise surprises.pop()
        return context(files)

    monkeypatch.setattr(TlsFiles, "context", surprised)
    caplog.set_level("INFO", "applecart.kubelet.serve.tls")
    os.utime(stage.tls.certificate, ns=(1, 1))
    for _ in range(4):
        stage.endpoint._tls.look()
    assert [one.message for one in caplog.records if one.name.endswith("tls")] == [
        "a changed certificate is not usable; the one before it stays in use",
        "a changed certificate is in use",
    ]


async def test_files_that_are_no_certificates_are_named(stage: AgentStage, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    good = stage.tls
    with pytest.raises(BadInput, match=r"bad\.pem.*No such file"):
        TlsFiles(bad, good.key, good.client_authority).context()
    bad.write_text("not a certificate")
    with pytest.raises(BadInput, match=r"bad\.pem"):
        TlsFiles(good.certificate, good.key, bad).context()
    with pytest.raises(BadInput, match=r"bad\.pem"):
        TlsFiles(good.certificate, bad, good.client_authority).context()


async def test_an_address_that_cannot_be_served_is_a_sentence(stage: AgentStage, clock: Clock) -> None:
    port = stage.endpoint.port
    second = KubeletEndpoint(NODE, HOST, port, stage.tls, stage.client, stage.guests, stage.commands, ThisMac(), clock)
    with pytest.raises(BadInput, match="--kubelet-bind-address"):
        async with second:
            raise AssertionError("two cannot serve one port")


async def test_no_request_is_too_odd_for_an_answer(stage: AgentStage) -> None:
    chance = random.Random(5)
    async with stage.session() as session:
        for _ in range(ROUNDS):
            query = "&".join(f"{chance.choice(NAMES)}={quote(chance.choice(VALUES))}" for _ in range(chance.randrange(5)))
            headers = {}
            if chance.random() < 0.5:
                headers = {
                    "Connection": "Upgrade",
                    "Upgrade": chance.choice(["websocket", "SPDY/3.1", ""]),
                    "Sec-WebSocket-Protocol": chance.choice(["v9", "", "channel.k8s.io", ","]),
                    "Sec-WebSocket-Key": chance.choice(["", "x", "é"]),
                }
            path = f"/{chance.choice(PATHS)}?{query}"
            method = chance.choice(["GET", "POST", "PUT"])
            async with session.request(method, path, headers=headers) as answer:
                assert answer.status in (200, 400, 404, 405), (method, path, headers, await answer.text())
        async with session.get("/healthz") as answer:
            assert answer.status == 200
    assert stage.commands.sessions == []


@pytest.mark.parametrize("length", [9_000, 100_000])
async def test_a_command_may_be_as_long_as_a_script(stage: AgentStage, length: int) -> None:
    stage.guests.add("job")
    async with stage.running("echo", "x" * length) as command:
        await command.until_end()
        assert command.out == b"x" * length + b"\n"


async def test_a_log_has_no_head(stage: AgentStage) -> None:
    """aiohttp sends the body of a stream after a HEAD without a frame: a guest's log could pose as the next answer."""
    print_to(stage.guests.add("job"), "HTTP/1.1 200 OK\n")
    async with stage.session() as session, session.head("/containerLogs/default/job/vm") as answer:
        assert answer.status == 405


async def test_strangers_cannot_take_all_files_of_the_agent(stage: AgentStage) -> None:
    """They shake hands and say nothing. With launchd's 256 files no Tart command could be started any more."""
    context = ssl.create_default_context(cadata=stage.trust.pem.decode())
    context.check_hostname = False

    async def come() -> asyncio.StreamWriter | None:
        try:
            return (await asyncio.open_connection(HOST, stage.endpoint.port, ssl=context))[1]
        except (OSError, ssl.SSLError):
            return None

    before = len(os.listdir("/dev/fd"))
    writers = [writer for writer in [await come() for _ in range(CONNECTIONS + 40)] if writer is not None]
    held = len(os.listdir("/dev/fd")) - before - len(writers)
    for writer in writers:
        writer.transport.abort()
    assert held <= CONNECTIONS


async def test_a_metrics_server_reads_what_guests_use(stage: AgentStage) -> None:
    stage.guests.add("job")
    async with asyncio.timeout(60):
        while True:  # a busy machine may take longer than the endpoint waits
            status, text = await stage.get("/metrics/resource")
            assert status == 200
            used = {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}
            if "container_memory_working_set_bytes" in used:
                break
    assert used["container_memory_working_set_bytes"].labels == {"container": "vm", "namespace": "default", "pod": "job"}
    assert used["container_cpu_usage_seconds_total"].value > 0
    assert used["scrape_error"].value == 0
