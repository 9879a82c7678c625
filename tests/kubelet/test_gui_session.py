"""The login session: looked for before every start, brought back rarely and carefully, and told plainly when it is missing."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH, Clock, VirtualClock
from applecart.errors import ApplecartError, BadInput, DeadlineExceeded
from applecart.kubelet.gui_session import KICK_EVERY, SETTLES_IN, Await, GiveUp, GuiSession, Kick, Kicked, next_step
from applecart.sim.mac import Call, SimulatedMac
from applecart.tart.driver import Tart
from applecart.tart.failures import NoGuiSession
from applecart.tart.files import Files
from applecart.tart.mac import Ended
from applecart.tart.run_options import RunOptions
from tests.virtual_time import elapse

UID = 501
RECORD = "gui-session.json"
TART = "/usr/local/bin/tart"
KICK = ["sudo", "-n", "launchctl", "kickstart", "-k", "system/com.apple.loginwindow"]
LOOK = ["sudo", "-n", "launchctl", "print", "gui/501"]
NOW = EPOCH + timedelta(hours=1)
Agent = Callable[..., GuiSession]


def ago(seconds: float) -> Kicked:
    return Kicked(NOW - timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("last", "running", "step"),
    [
        (None, (), Kick),
        (None, ("ci-runner",), GiveUp),
        (None, None, GiveUp),
        (ago(0), (), Await),
        (ago(29), ("ci-runner",), Await),  # waiting harms nobody
        (ago(30), (), GiveUp),
        (ago(299), (), GiveUp),
        (ago(300), (), Kick),
        (ago(300), ("ci-runner",), GiveUp),
        (ago(-3600), (), Kick),  # the clock was set back
    ],
)
def test_what_follows_a_missing_session(last: Kicked | None, running: Sequence[str] | None, step: type) -> None:
    assert isinstance(next_step(last, running, NOW), step)


@given(
    st.none() | st.floats(-1e6, 1e6).map(ago),
    st.none() | st.sets(st.text(min_size=1), max_size=3),
)
def test_nothing_that_may_run_is_ever_kicked(last: Kicked | None, running: set[str] | None) -> None:
    """I7: a kick ends the session under a job."""
    step = next_step(last, running, NOW)
    if isinstance(step, Kick):
        assert running == set()
    if isinstance(step, Await):
        assert 0 < step.seconds <= SETTLES_IN.total_seconds()


@pytest.fixture
async def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    state.mkdir()
    return state


@pytest.fixture
def agent(mac: SimulatedMac, state: Path, clock: Clock) -> Agent:
    def started(**options: Any) -> GuiSession:
        given = {"mac": mac, "files": Files(), "clock": clock, "state": state, **options}
        return GuiSession(**given, uid=UID, tart_binary=TART)

    return started


def calls(mac: SimulatedMac, argv: list[str]) -> int:
    return sum(list(call.argv) == argv for call in mac.calls if call.verb == "run")


async def test_a_session_that_is_there_costs_one_look_and_no_kick(mac: SimulatedMac, agent: Agent, state: Path) -> None:
    await agent().ensure()
    assert (calls(mac, LOOK), calls(mac, KICK)) == (1, 0)
    assert not (state / RECORD).exists()


async def test_a_session_that_was_lost_is_brought_back(mac: SimulatedMac, agent: Agent, clock: Clock) -> None:
    """Incident 38: without a session every start died of a missing host key, for ever."""
    mac.lose_gui_session()
    kicks: list[None] = []
    await agent(on_kick=lambda: kicks.append(None)).ensure()
    assert calls(mac, KICK) == 1
    assert len(kicks) == 1
    assert clock.monotonic() < SETTLES_IN.total_seconds()
    assert not any(call.tart for call in mac.calls)


async def test_a_loginwindow_that_is_dead_is_started_and_not_signalled(mac: SimulatedMac, agent: Agent) -> None:
    """Incident 39 and weakness 24: `killall -HUP loginwindow` fails when there is no loginwindow left to signal."""
    mac.lose_gui_session()
    mac.loginwindow_is_dead = True
    await agent().ensure()
    assert not any("killall" in call.argv for call in mac.calls)


async def test_a_sealed_auto_login_fails_with_what_was_tried(mac: SimulatedMac, agent: Agent, clock: Clock) -> None:
    mac.lose_gui_session()
    mac.seal_auto_login()
    with pytest.raises(NoGuiSession) as failed:
        await agent().ensure()
    assert clock.monotonic() == pytest.approx(SETTLES_IN.total_seconds(), abs=3)
    said = str(failed.value)
    assert said.startswith("user 501 is not logged in on the screen of this host, so no VM can start; loginwindow was started")
    assert "at 00:00:00 UTC and no session came within 30 s; the next try may be at 00:05:00 UTC" in said
    assert "look whether /etc/kcpassword reads <sealed>" in said


async def test_retries_do_not_kick_again_before_their_time(mac: SimulatedMac, agent: Agent, clock: Clock) -> None:
    """Weakness 5: every retry of every Pod, two a minute, kicked loginwindow once more."""
    mac.lose_gui_session()
    mac.seal_auto_login()
    gui = agent()
    for _ in range(60):
        with pytest.raises(NoGuiSession):
            await gui.ensure()
        await elapse(30)
    assert calls(mac, KICK) <= 1 + clock.monotonic() // KICK_EVERY.total_seconds()


async def test_many_pods_share_one_attempt(mac: SimulatedMac, agent: Agent, clock: Clock) -> None:
    mac.lose_gui_session()
    mac.seal_auto_login()
    gui = agent()
    failed = await asyncio.gather(*(gui.ensure() for _ in range(20)), return_exceptions=True)
    assert all(isinstance(error, NoGuiSession) for error in failed)
    assert calls(mac, KICK) == 1
    assert calls(mac, LOOK) < 60  # one polls for all, then each looks once
    assert clock.monotonic() < 2 * SETTLES_IN.total_seconds()  # nobody waits behind the others


async def test_a_pod_that_goes_away_takes_nobody_s_attempt_with_it(mac: SimulatedMac, agent: Agent) -> None:
    mac.lose_gui_session()
    gui = agent()
    first = asyncio.create_task(gui.ensure())
    await elapse(0.1)  # it has kicked and waits
    second = asyncio.create_task(gui.ensure())
    first.cancel()
    await second
    assert calls(mac, KICK) == 1


async def test_a_restart_of_the_agent_does_not_kick_again(mac: SimulatedMac, agent: Agent) -> None:
    """Weakness 5: an agent in a crash loop must not log the user out every ten seconds."""
    mac.lose_gui_session()
    mac.seal_auto_login()
    for _ in range(10):
        attempt = asyncio.create_task(agent().ensure())
        await elapse(5)
        attempt.cancel()
    with pytest.raises(NoGuiSession):
        await agent().ensure()
    assert calls(mac, KICK) == 1


class CrashingFiles(Files):
    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        super().write(path, data, mode)
        raise asyncio.CancelledError  # the agent is killed right after its write


async def test_an_agent_that_dies_between_its_record_and_its_kick_has_used_up_the_kick(mac: SimulatedMac, agent: Agent) -> None:
    mac.lose_gui_session()
    with pytest.raises(asyncio.CancelledError):
        await agent(files=CrashingFiles()).ensure()
    with pytest.raises(NoGuiSession):
        await agent().ensure()
    assert calls(mac, KICK) == 0
    await elapse(KICK_EVERY.total_seconds())
    await agent().ensure()
    assert calls(mac, KICK) == 1


async def test_a_kick_is_never_made_while_a_vm_runs(mac: SimulatedMac, agent: Agent, clock: Clock, tmp_path: Path) -> None:
    """I7: a kick ends the session, and with it the job of the VM that still runs in it."""
    tart = Tart(mac, TART, mac.home, clock)
    await tart.pull("ghcr.io/ci/runner:1")
    await tart.clone("ghcr.io/ci/runner:1", "ci-runner")
    detached = await tart.run("ci-runner", RunOptions(), folder=tmp_path / "run", log=tmp_path / "log")
    await elapse(60)
    mac.lose_gui_session()
    gui = agent()
    with pytest.raises(NoGuiSession, match="would end the running VM ci-runner"):
        await gui.ensure()
    assert calls(mac, KICK) == 0
    await tart.stop("ci-runner")
    await detached.wait()
    await gui.ensure()  # nothing is in the way any more
    assert calls(mac, KICK) == 1


async def test_a_host_whose_processes_cannot_be_listed_is_not_kicked(mac: SimulatedMac, agent: Agent) -> None:
    mac.lose_gui_session()

    async def hang(call: Call) -> None:
        if call.verb == "processes":
            raise DeadlineExceeded("ps did not end within 10 s")

    mac.before_call = hang
    with pytest.raises(NoGuiSession, match="a VM may run"):
        await agent().ensure()
    assert calls(mac, KICK) == 0


class Odd:
    """The simulated Mac whose sudo or launchctl is out of order."""

    def __init__(self, mac: SimulatedMac, result: Ended | ApplecartError) -> None:
        self._mac = mac
        self._result = result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mac, name)

    async def run(self, argv: Sequence[str], **options: Any) -> Ended:
        if isinstance(self._result, ApplecartError):
            raise self._result
        return self._result


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (DeadlineExceeded("sudo did not end within 10 s"), "nobody can say whether a user is logged in"),
        (BadInput("there is no program sudo"), "nobody can say whether a user is logged in"),
        (Ended(1, err=b"sudo: a password is required\n"), "sudo without a password is needed.*a password is required"),
    ],
)
async def test_no_answer_is_no_reason_to_kick(
    mac: SimulatedMac, agent: Agent, state: Path, result: Ended | ApplecartError, said: str
) -> None:
    gui = agent(mac=Odd(mac, result))
    with pytest.raises(NoGuiSession, match=said):
        await gui.ensure()
    assert not (state / RECORD).exists()


async def test_a_record_that_cannot_be_written_means_no_kick(mac: SimulatedMac, agent: Agent, tmp_path: Path) -> None:
    mac.lose_gui_session()
    gui = agent(state=tmp_path / "not there")
    with pytest.raises(NoGuiSession, match="cannot be written"):
        await gui.ensure()
    assert calls(mac, KICK) == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"at": "yesterday"}', b'{"at": "2026-01-01T00:00:00"}', b"\xff\xfe"])
async def test_an_unreadable_record_counts_for_nothing(mac: SimulatedMac, agent: Agent, state: Path, content: bytes) -> None:
    (state / RECORD).write_bytes(content)
    mac.lose_gui_session()
    await agent().ensure()
    assert calls(mac, KICK) == 1


async def test_a_clock_that_was_set_back_forbids_no_kick(mac: SimulatedMac, agent: Agent, clock: VirtualClock) -> None:
    mac.lose_gui_session()
    await agent().ensure()
    clock.jump(-timedelta(days=365))
    mac.lose_gui_session()
    await agent().ensure()
    assert calls(mac, KICK) == 2


async def test_the_check_of_the_node_only_looks(mac: SimulatedMac, agent: Agent) -> None:
    gui = agent()
    assert await gui.check() is None
    mac.lose_gui_session()
    assert await gui.check() == "user 501 is not logged in on the screen of this host, so no VM can start"
    assert calls(mac, KICK) == 0


async def test_where_no_session_is_needed_nothing_is_looked_at(mac: SimulatedMac, agent: Agent) -> None:
    mac.lose_gui_session()
    gui = agent(is_needed=False)
    await gui.ensure()
    assert await gui.check() is None
    assert not mac.calls
