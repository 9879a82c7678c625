"""Screens over the life of a host: what is left on its disk, agents that come and go, guests that share it."""

import json
import stat
from pathlib import Path

import pytest

from applecart.api import annotations as names
from applecart.clock import Clock
from applecart.kubelet.screen.screens import Screens
from applecart.secrets import Secret
from applecart.sim.vnc_server import SimulatedScreen
from applecart.tart.files import Files
from tests.kubelet.screen.stage import NODE_IP, PASSWORD, PORT, TOKEN, Host, hash_of, line_of, pod, printed, told
from tests.virtual_time import elapse


@pytest.fixture
def host(tmp_path: Path, clock: Clock) -> Host:
    return Host(tmp_path, clock)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# The state file


async def test_the_state_file_says_where_and_never_how_to_get_in(host: Host) -> None:
    """Weakness 30: the password of the screen lay on the disk in plain text."""
    host.boot()
    await host.sync(pod(session="s-1"))
    assert mode(host.state()) == 0o600
    assert json.loads(host.state().read_bytes()) == {
        "pod": "ci/job",
        "vm_name": "ci-job",
        "relay_url": f"vnc://{NODE_IP}:49153",
        "relay_host": NODE_IP,
        "relay_port": 49153,
        "updated_at": "2026-01-01T00:00:00Z",
    }
    for file in host.control.rglob("*"):
        assert file.is_dir() or PASSWORD not in file.read_text()
    await host.screens.aclose()


async def test_a_guest_that_goes_takes_its_relay_and_its_state_file_along(host: Host) -> None:
    host.boot()
    await host.sync(pod(session="s-1"))
    viewer = host.ports.dial(49153)
    await viewer.enter()
    for _ in range(2):
        await host.screens.stop("uid-job")
    assert await viewer.rest() == b""
    assert host.ports.open == {}
    assert not host.state().exists()


async def test_a_full_disk_does_not_keep_a_screen_from_being_seen(host: Host, clock: Clock) -> None:
    class FullDisk(Files):
        def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            raise OSError(28, "No space left on device")

    screens = Screens(
        host.mac.as_mac, FullDisk(), clock, control_dir=host.control, node_ip=NODE_IP, warn=lambda p, t: None, listen=host.ports
    )
    host.boot()
    assert await screens.sync(pod(session="s-1"), "ci-job", host.log()) is not None
    assert await host.ports.dial(49153).enter() == b"job's screen"
    await screens.aclose()


# A new agent


async def test_the_screen_of_a_vm_that_an_earlier_agent_started_can_be_seen(host: Host) -> None:
    """Weakness 31: after a restart a screen could be seen only if somebody was looking at it when the agent died."""
    host.boot()
    assert await host.sync(pod()) is None
    host.start_agent()
    changes = await host.sync(pod(session="s-1"))
    assert changes is not None
    assert await host.ports.dial(int(changes[names.VNC_RELAY_PORT] or 0)).enter() == b"job's screen"
    await host.screens.aclose()


async def test_a_session_goes_on_under_a_new_agent_and_the_pod_says_where(host: Host) -> None:
    host.boot()
    asked = told(pod(session="s-1"), await host.sync(pod(session="s-1")))
    await elapse(60)
    host.start_agent()
    changes = await host.sync(asked)
    assert changes == {names.VNC_RELAY_PORT: "49154", names.VNC_RELAY_READY_AT: "2026-01-01T00:01:00Z"}
    assert await host.sync(told(asked, changes)) is None
    await host.screens.aclose()


def test_state_files_of_relays_that_died_are_removed_at_the_start(host: Host) -> None:
    """Also the files in which an older kind of agent kept passwords."""
    for name in ("ci_job.json", "ci_job.endpoint.json"):
        (host.control / "state" / name).write_text("{}")
    request = host.ask(hash_of(TOKEN))
    host.start_agent()
    assert list((host.control / "state").iterdir()) == []
    assert request.exists()


async def test_a_screen_stays_known_when_its_log_is_cut(host: Host) -> None:
    host.boot()
    await host.sync(pod())
    host.log().write_bytes(b"")
    assert await host.sync(pod(session="s-1")) is not None
    await host.screens.aclose()


# Several guests


async def test_a_fixed_port_shows_one_screen_and_the_second_learns_why_not(tmp_path: Path, clock: Clock) -> None:
    """Weakness 31: the second session on a host failed again at every look."""
    host = Host(tmp_path, clock, relay_port=5900)
    host.mac.screens[6000] = SimulatedScreen(Secret("other-words-for-a-guest"), clock.random, name="second")
    host.boot()
    host.boot("ci-other", printed(6000, "other-words-for-a-guest"))
    await host.sync(pod(session="s-1"))
    for _ in range(3):
        assert await host.sync(pod("other", session="s-2")) is None
    assert host.said == [("other", "the screen is not shown: port 5900 of the host shows the one of ci/job")]
    assert host.ports.bound == [(NODE_IP, 5900)]
    await host.screens.stop("uid-job")
    changes = await host.sync(pod("other", session="s-2"))
    assert changes is not None
    assert await host.ports.dial(5900).enter() == b"second"
    await host.screens.aclose()


async def test_without_a_fixed_port_every_guest_has_a_relay_of_its_own(host: Host, clock: Clock) -> None:
    host.mac.screens[6000] = SimulatedScreen(Secret("other-words-for-a-guest"), clock.random, name="second")
    host.boot()
    host.boot("ci-other", printed(6000, "other-words-for-a-guest"))
    await host.sync(pod(session="s-1"))
    await host.sync(pod("other", session="s-2", token=b"second-token"))
    assert await host.ports.dial(49153).enter() == b"job's screen"
    assert await host.ports.dial(49154).enter(b"second-token") == b"second"
    wrong = host.ports.dial(49154)
    await wrong.send(line_of(TOKEN))
    assert await wrong.rest() == b""
    await host.screens.aclose()
    assert host.ports.open == {}


async def test_a_port_that_somebody_else_has_is_told_and_tried_again(tmp_path: Path, clock: Clock) -> None:
    host = Host(tmp_path, clock, relay_port=5900)
    host.boot()
    host.ports.is_taken = True
    for _ in range(2):
        assert await host.sync(pod(session="s-1")) is None
    assert host.said == [("job", f"the screen is not shown: port 5900 of {NODE_IP} cannot be used (Address already in use)")]
    host.ports.is_taken = False
    assert await host.sync(pod(session="s-1")) is not None
    await host.screens.aclose()


async def test_a_vm_that_was_started_again_is_seen_at_its_new_port(host: Host, clock: Clock) -> None:
    host.boot()
    await host.sync(pod(session="s-1"))
    del host.mac.screens[PORT]
    host.mac.screens[6000] = SimulatedScreen(Secret("words-of-the-second-run"), clock.random, name="again")
    host.boot(text=printed(6000, "words-of-the-second-run"))
    assert await host.ports.dial(49153).enter() == b"again"
    await host.screens.aclose()
