import json
import stat
from pathlib import Path

import pytest

from applecart.api import annotations as names
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.screen.screens import Screens
from applecart.tart.files import Files
from tests.kubelet.screen.stage import NODE_IP, TOKEN, Host, ScreensMac, hash_of, line_of, pod, told
from tests.virtual_time import elapse


@pytest.fixture
def host(tmp_path: Path, clock: Clock) -> Host:
    return Host(tmp_path, clock)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Who may be seen


@pytest.mark.parametrize(("label", "capable"), [("true", True), ("false", False), ("True", False), ("", False), ("1", False)])
def test_only_runners_have_a_screen(host: Host, label: str, capable: bool) -> None:
    assert host.screens.is_capable(pod(runner=label)) is capable


async def test_no_request_opens_a_screen_of_a_pod_that_is_no_runner(host: Host) -> None:
    host.boot()
    host.ask(hash_of(TOKEN))
    assert await host.sync(pod(session="s-1", runner="false")) is None
    assert host.ports.bound == []


async def test_without_a_control_folder_nothing_is_shown(tmp_path: Path, clock: Clock) -> None:
    screens = Screens(ScreensMac().as_mac, Files(), clock, control_dir=None, node_ip=NODE_IP, warn=lambda pod, text: None)
    assert not screens.is_capable(pod())
    assert await screens.sync(pod(session="s-1"), "ci-job", tmp_path / "log") is None
    await screens.aclose()


# The control folder


def test_the_control_folders_are_for_the_agents_user_alone(host: Host) -> None:
    assert [mode(host.control / part) for part in (".", "requests", "state")] == [0o700, 0o700, 0o700]


def test_a_control_folder_that_cannot_be_made_ends_the_agent_with_a_sentence(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "vnc-control").write_text("a file")
    with pytest.raises(BadInput, match=r"vnc-control for screens cannot be used.*--vnc-control-dir"):
        Host(tmp_path, clock)


# A session


async def test_a_session_opens_a_relay_and_says_where(host: Host) -> None:
    host.boot()
    changes = await host.sync(pod(session="s-1"))
    assert changes == {
        names.VNC_STATE: "ready",
        names.VNC_RELAY_HOST: NODE_IP,
        names.VNC_RELAY_PORT: "49153",
        names.VNC_RELAY_READY_AT: "2026-01-01T00:00:00Z",
    }
    assert host.ports.bound == [(NODE_IP, 0)]
    assert await host.ports.dial(49153).enter() == b"job's screen"
    await host.screens.aclose()


async def test_viewers_are_told_the_relay_host_and_the_fixed_port(tmp_path: Path, clock: Clock) -> None:
    host = Host(tmp_path, clock, relay_port=5900, relay_host="mac-1.relays.svc")
    host.boot()
    changes = await host.sync(pod(session="s-1"))
    assert changes is not None
    assert (changes[names.VNC_RELAY_HOST], changes[names.VNC_RELAY_PORT]) == ("mac-1.relays.svc", "5900")
    assert host.ports.bound == [(NODE_IP, 5900)]
    await host.screens.aclose()


async def test_a_session_needs_its_token_hash(host: Host) -> None:
    host.boot()
    assert await host.sync(pod(session="s-1", token=None)) is None
    assert host.ports.bound == []
    assert host.said == []


async def test_a_look_at_a_session_that_is_ready_writes_nothing(host: Host) -> None:
    """Weakness 13: the time was written anew at every look, and every write called for the next look."""
    host.boot()
    asked = pod(session="s-1")
    asked = told(asked, await host.sync(asked))
    for _ in range(5):
        await elapse(60)
        assert await host.sync(asked) is None
    assert len(host.ports.bound) == 1
    await host.screens.aclose()


async def test_an_older_view_of_the_pod_gets_the_same_words_again(host: Host) -> None:
    host.boot()
    first = await host.sync(pod(session="s-1"))
    await elapse(60)
    assert await host.sync(pod(session="s-1")) == first
    await host.screens.aclose()


async def test_a_session_that_ends_closes_the_relay_and_takes_its_words_back(host: Host) -> None:
    host.boot()
    asked = told(pod(session="s-1"), await host.sync(pod(session="s-1")))
    viewer = host.ports.dial(49153)
    await viewer.enter()
    more = {name: text for name, text in asked.metadata.annotations.items() if name != names.VNC_SESSION_ID}
    changes = await host.sync(pod(more=more))
    assert changes is not None
    assert set(changes.items()) == {
        (names.VNC_STATE, None),
        (names.VNC_RELAY_HOST, None),
        (names.VNC_RELAY_PORT, None),
        (names.VNC_RELAY_READY_AT, None),
    }
    assert host.ports.open == {}
    assert await viewer.rest() == b""
    assert not host.state().exists()


async def test_another_token_disconnects_those_who_came_with_the_old_one(host: Host) -> None:
    host.boot()
    await host.sync(pod(session="s-1"))
    viewer = host.ports.dial(49153)
    await viewer.enter()
    await elapse(60)
    changes = await host.sync(pod(session="s-1", token=b"another-token"))
    assert await viewer.rest() == b""
    assert changes is not None
    assert changes[names.VNC_RELAY_READY_AT] == "2026-01-01T00:01:00Z"
    port = int(changes[names.VNC_RELAY_PORT] or 0)
    old = host.ports.dial(port)
    await old.send(line_of(TOKEN))
    assert await old.rest() == b""
    assert await host.ports.dial(port).enter(b"another-token") == b"job's screen"
    await host.screens.aclose()


async def test_a_new_session_has_a_time_of_its_own(host: Host) -> None:
    host.boot()
    asked = told(pod(session="s-1"), await host.sync(pod(session="s-1")))
    await elapse(60)
    changes = await host.sync(pod(more={**asked.metadata.annotations, names.VNC_SESSION_ID: "s-2"}))
    assert changes is not None
    assert changes[names.VNC_RELAY_READY_AT] == "2026-01-01T00:01:00Z"
    await host.screens.aclose()


async def test_a_wrong_hash_is_told_once_and_opens_nothing(host: Host) -> None:
    host.boot()
    asked = pod(session="s-1", token=None, more={names.VNC_RELAY_TOKEN_HASH: "not a hash"})
    for _ in range(3):
        assert await host.sync(asked) is None
    assert [name for name, _ in host.said] == ["job"]
    assert "no SHA-256" in host.said[0][1]
    assert host.ports.bound == []


async def test_a_screen_that_tart_has_not_announced_is_opened_when_it_has(host: Host) -> None:
    asked = pod(session="s-1")
    for _ in range(2):
        assert await host.sync(asked) is None
    assert len(host.said) == 1
    assert "Tart has not yet said" in host.said[0][1]
    host.boot()
    assert await host.sync(asked) is not None
    await host.screens.aclose()


async def test_a_node_without_an_address_shows_nothing(tmp_path: Path, clock: Clock) -> None:
    host = Host(tmp_path, clock, node_ip="")
    host.boot()
    assert await host.sync(pod(session="s-1")) is None
    assert "--node-ip" in host.said[0][1]
    assert host.ports.bound == []


# An operator on the host


async def test_an_operator_opens_a_relay_by_a_file_and_the_pod_says_nothing(host: Host) -> None:
    host.boot()
    file = host.ask(hash_of(b"operators-token"))
    assert await host.sync(pod()) is None
    assert await host.ports.dial(49153).enter(b"operators-token") == b"job's screen"
    assert json.loads(host.state().read_bytes())["relay_port"] == 49153
    file.unlink()
    assert await host.sync(pod()) is None
    assert host.ports.open == {}
    assert not host.state().exists()


async def test_an_operators_empty_file_is_refused(host: Host) -> None:
    """Weakness 29: an empty file opened the screen to whoever reached the port."""
    host.boot()
    host.ask("")
    for _ in range(3):
        assert await host.sync(pod()) is None
    assert len(host.said) == 1
    assert "nothing is shown without a token" in host.said[0][1]
    assert host.ports.bound == []
