"""exec and attach through our API, into a simulated agent over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from applecart.clock import Clock
from applecart.embedded.relay.pump import LOST, STDOUT, V4, V5
from applecart.sim.guest import Guest
from applecart.sim.guest_programs import BLOCK
from tests.embedded.relay.remote_command import RemoteCommand
from tests.embedded.relay.stage import OurStage, our_stage, session_to

pytestmark = pytest.mark.real_time

ALL = ("stdin", "stdout", "stderr")


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[OurStage]:
    async with our_stage(tmp_path, clock) as stage:
        await stage.make_pod("job")
        yield stage


@pytest.fixture
def guest(stage: OurStage) -> Guest:
    return stage.agent.add("default", "job", "vm")


@asynccontextmanager
async def running(
    stage: OurStage, *command: str, action: str = "exec", streams: tuple[str, ...] = ALL, protocols: tuple[str, ...] = (V5,)
) -> AsyncIterator[RemoteCommand]:
    query = urlencode([*(("command", word) for word in command), *((one, "true") for one in streams)])
    async with stage.session.ws_connect(stage.pod_path(f"job/{action}?{query}"), protocols=protocols) as socket:
        assert socket.protocol == protocols[0]
        yield RemoteCommand(socket)


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("protocol", [V5, V4])
async def test_a_command_runs_and_ends_with_success(stage: OurStage, protocol: str) -> None:
    async with running(stage, "echo", "a b", "c&d=e", protocols=(protocol,)) as command:
        assert await command.until_end() == 1000
        assert (command.out, command.exit_code) == (b"a b c&d=e\n", 0)


@pytest.mark.usefixtures("guest")
async def test_a_command_that_fails_tells_its_exit_code_and_its_complaint(stage: OurStage) -> None:
    async with running(stage, "sh", "-c", "echo hello; echo oh no >&2; exit 42") as command:
        await command.until_end()
        assert (command.out, command.err, command.exit_code) == (b"hello\n", b"oh no\n", 42)
        assert command.status["reason"] == "NonZeroExitCode"


@pytest.mark.usefixtures("guest")
async def test_what_is_typed_reaches_the_command_and_its_end_too(stage: OurStage) -> None:
    async with running(stage, "cat") as command:
        await command.type(b"hello")
        await command.until_heard(STDOUT, b"hello")
        await command.type(bytes(range(256)) * 1000)
        await command.close_stdin()
        await command.until_end()
        assert command.out == b"hello" + bytes(range(256)) * 1000
        assert command.exit_code == 0


@pytest.mark.usefixtures("guest")
async def test_a_window_that_changes_its_size_is_told(stage: OurStage) -> None:
    async with running(stage, "window", "2", streams=(*ALL, "tty")) as command:
        await command.resize(80, 24)
        await command.resize(120, 40)
        await command.until_end()
        assert command.out == b"80x24\n120x40\n"


async def test_attach_joins_the_main_process(stage: OurStage, guest: Guest) -> None:
    async with running(stage, action="attach") as command:
        await command.until_heard(STDOUT, b"attached\n")
        await command.type(b"hi\n")
        await command.close_stdin()
        await command.until_end()
        assert command.out == b"attached\nhi\n"
    assert bytes(guest.stdin) == b"hi\n"
    assert stage.agent.asked[-1] == "/attach/default/job/vm?error=1&input=1&output=1"


@pytest.mark.usefixtures("guest")
async def test_an_agent_that_vanishes_ends_the_command_with_a_word(stage: OurStage) -> None:
    async with running(stage, "hang") as command:
        await command.until_heard(STDOUT, b"hanging\n")
        stage.agent.cut()
        assert await command.until_end() == 1011
        assert command.status["message"] == f"Internal error occurred: {LOST}"


@pytest.mark.usefixtures("guest")
async def test_a_client_that_goes_ends_its_command(stage: OurStage) -> None:
    async with running(stage, "hang") as command:
        await command.until_heard(STDOUT, b"hanging\n")
    async with asyncio.timeout(60):
        await stage.agent.until_idle()


@pytest.mark.usefixtures("guest")
async def test_a_flood_arrives_whole(stage: OurStage) -> None:
    blocks = 400  # 12 MiB: more than all buffers on the way
    async with running(stage, "flood", str(blocks)) as command:
        await command.until_end()
        assert len(command.out) == blocks * len(BLOCK)
        assert command.exit_code == 0


@pytest.mark.usefixtures("guest")
async def test_frames_that_are_none_are_dropped(stage: OurStage) -> None:
    async with running(stage, "cat") as command:
        for frame in (b"", b"\x01out", b"\x02err", b"\x03{}", b"\x07?", b"\x04not json", b"\x04[]", b"\xff", b"\xff\x09"):
            await command._socket.send_bytes(frame)
        await command._socket.send_str("\x00text")
        await command._socket.send_str("\u0142")
        await command.close_stdin()
        await command.until_end()
        assert (command.out, command.exit_code) == (b"text", 0)


async def handshake(stage: OurStage, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": V5,
    }
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    async with stage.session.request(method, stage.pod_path(path), headers={**upgrade, **changed}) as answer:
        status = await answer.json()
        assert status["code"] == answer.status
        return answer.status, status["message"]


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("other/exec?command=x&stdout=1", 404, 'pods "other" not found'),
        ("job/exec?container=no&stdout=1", 400, "container no is not valid for pod job"),
        ("job/exec?command=x", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("job/status/exec", 404, "the server could not find the requested resource"),
    ],
)
@pytest.mark.parametrize("upgrade", ["websocket", "SPDY/3.1"])
async def test_a_command_that_cannot_run_is_refused_the_same_over_websocket_and_spdy(
    stage: OurStage, path: str, code: int, message: str, upgrade: str
) -> None:
    """kubectl falls back to SPDY when its WebSocket was refused, and shows only the second refusal."""
    assert await handshake(stage, path, Upgrade=upgrade) == (code, message)


@pytest.mark.parametrize("upgrade", ["websocket", "SPDY/3.1"])
async def test_an_agent_that_is_not_there_is_named(stage: OurStage, upgrade: str) -> None:
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    message = "error dialing backend: dial tcp 127.0.0.1:9: connect: connection refused"
    assert await handshake(stage, "job/exec?command=x&stdout=1", Upgrade=upgrade) == (500, message)


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_spdy_is_refused_with_what_to_do(stage: OurStage, method: str) -> None:
    code, message = await handshake(stage, "job/exec?command=x&stdout=1", method, Upgrade="SPDY/3.1")
    assert code == 400
    assert "kubectl 1.30 or newer" in message


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_WebSocket_Protocol": "channel.k8s.io"},
        {"Sec_WebSocket_Protocol": ""},
        {"Sec_WebSocket_Version": "9"},
        {"Sec_WebSocket_Key": "short"},
    ],
)
async def test_a_handshake_that_is_none_is_refused(stage: OurStage, headers: dict[str, str]) -> None:
    code, _ = await handshake(stage, "job/exec?command=x&stdout=1", **headers)
    assert code == 400
    assert not any("exec" in path for path in stage.agent.asked)


async def test_a_pod_without_a_node_runs_nothing(stage: OurStage) -> None:
    await stage.make_pod("waits", node="")
    assert await handshake(stage, "waits/exec?command=x&stdout=1") == (400, "pod waits does not have a host assigned")


@pytest.mark.usefixtures("guest")
async def test_without_an_upgrade_there_is_no_exec(stage: OurStage) -> None:
    assert (await stage.refusal(stage.pod_path("job/exec?command=x")))["message"] == "Upgrade request required"
    assert (await stage.refusal(stage.pod_path("other/exec?command=x")))["message"] == 'pods "other" not found'


@pytest.mark.usefixtures("guest")
async def test_who_may_only_read_pods_runs_nothing_in_them(stage: OurStage) -> None:
    """A WebSocket begins with GET: for years `get pods/exec` was enough to run commands in every Pod."""
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec", "pods/log"], "verbs": ["get"]}]
    await stage._write(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": rules},
    )
    await stage._write(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    pair = stage.trust.client_pair("reader")
    path = stage.pod_path("job/exec?command=echo&stdout=1")
    async with session_to(stage.url, stage.trust.client_context(pair)) as reader:
        async with reader.get(stage.pod_path("job/log")) as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await reader.ws_connect(path, protocols=(V5,))
    assert refused.value.status == 403
    assert not any("exec" in asked for asked in stage.agent.asked)


async def test_the_command_line_stays_out_of_the_request_log(tmp_path: Path, clock: Clock) -> None:
    async with our_stage(tmp_path, clock) as stage:
        await stage.make_pod("job")
        stage.agent.add("default", "job", "vm")
        async with running(stage, "echo", "hunter2") as command:
            await command.until_end()
        await handshake(stage, "other/exec?command=hunter2&stdout=1")
    logged = (tmp_path / "pki" / "requests.jsonl").read_text()  # whole only now: a thread writes it
    assert "pods/job/exec" in logged
    assert "pods/other/exec" in logged
    assert "hunter2" not in logged


async def test_an_agent_takes_commands_from_the_api_server_alone(stage: OurStage) -> None:
    stranger = stage.trust.client_pair("system:node:mac-2", "system:nodes")
    url = f"https://{stage.agent.host}:{stage.agent.port}"
    async with (
        session_to(url, stage.trust.client_context(stranger)) as session,
        session.get("/containerLogs/default/job/vm") as answer,
    ):
        assert (answer.status, "system:node:mac-2" in await answer.text()) == (403, True)
    assert "/containerLogs/default/job/vm" not in stage.agent.asked
