"""Whatever is done in whatever order, and whoever is killed meanwhile: what must always be true of a Mac stays true."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from applecart.clock import VirtualClock, run_virtual
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.guest_life import read_running
from applecart.sim.tart.store import exists, read_config
from applecart.tart.running import running_vms
from tests.sim.tart.sim_tart import SimTart, in_process

NAMES = ("golden", "a", "b", "c")
IMAGES = ("ghcr.io/acme/macos:1", "ghcr.io/acme/macos:2")
ENDED_IN_WORDS = (0, 1, 2, 64)
KILLED = 137

names = st.sampled_from(NAMES)
images = st.sampled_from(IMAGES)
COMMANDS = st.one_of(
    st.tuples(st.just("pull"), images),
    st.tuples(st.just("clone"), names | images, names),
    st.tuples(st.just("set"), names, st.just("--random-serial")),
    st.tuples(st.just("stop"), names, st.just("--timeout"), st.sampled_from(["0", "1", "30"])),
    st.tuples(st.just("delete"), names | images),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("exec"), names, st.sampled_from(["true", "false", "shutdown"])),
    st.tuples(st.just("ip"), names, st.just("--wait"), st.sampled_from(["0", "9"])),
    st.tuples(st.sampled_from(["list", "prune --older-than 0", "prune --space-budget 50"])),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("command"), COMMANDS, st.floats(0, 500)),
        st.tuples(st.just("start"), names, st.floats(0, 20)),
        st.tuples(st.just("kill"), st.integers(0, 5), st.sampled_from([signal.SIGKILL, signal.SIGINT, signal.SIGUSR2])),
    ),
    max_size=14,
)


async def play(tart: SimTart, steps: Sequence[tuple[object, ...]]) -> list[str]:
    """Every command runs beside the others; what happened, in order."""
    told: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def command(argv: tuple[str, ...]) -> None:
        words = [word for part in argv for word in part.split()]
        ended = await tart.run(*words)
        told.append(f"{words} {ended.code} {ended.err.decode()}")
        assert ended.code in (*ENDED_IN_WORDS, KILLED, 130, 128 + signal.SIGUSR2), ended
        assert ended.code != 1 or ended.err or argv[0] == "exec"

    for kind, what, how in steps:
        if kind == "command":
            assert isinstance(what, tuple)
            tasks.append(asyncio.create_task(command(what)))
        elif kind == "start":
            assert isinstance(what, str)
            await tart.start(what)
        else:
            assert isinstance(what, int)
            assert isinstance(how, int)
            found = await tart.mac.processes()
            told.append(f"kill {found[what % len(found)].command}")
            tart.mac.signal(found[what % len(found)].pid, how)
        if isinstance(how, float):
            await asyncio.sleep(how)
        await check(tart)
    await asyncio.gather(*tasks)
    await check(tart)
    return told


async def check(tart: SimTart) -> None:
    assert isinstance(tart.mac, SimulatedMac)
    store = tart.mac.store
    await asyncio.sleep(0)  # what was killed is gone now
    running = set(store.running_names())
    assert len(running) <= 2
    runs = {process.pid for process in await tart.mac.processes() if running_vms([process], "tart")}
    assert {told.pid for name in running if (told := read_running(store, name))} <= runs
    assert store.free_bytes() >= 0
    addresses = [read_config(store.vms / name).mac_address for name in store.local_names()]
    assert len(addresses) == len(set(addresses))
    for name, folder in store.cached():
        assert exists(folder.resolve()), name


@settings(max_examples=60)
@given(steps=STEPS)
def test_what_must_be_true_is_true_after_every_step(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_virtual(_scene(tmp_path_factory.mktemp("any"), steps))


@settings(max_examples=15)
@given(steps=STEPS)
@example(steps=[("start", "golden", 1.0), ("command", ("rename", "golden", "c"), 600.0), ("command", ("stop", "c"), 1.0)])
def test_the_same_steps_have_the_same_end(steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """D9: what was found once can be played again."""
    one, two = (run_virtual(_scene(tmp_path_factory.mktemp("same"), steps)) for _ in range(2))
    assert one == two


async def _scene(folder: Path, steps: list[tuple[object, ...]]) -> list[str]:
    tart = in_process(folder, VirtualClock(asyncio.get_running_loop()))
    tart.rules({"runs_s": 60})
    for name in NAMES[:3]:
        await tart.out("create", name)
    return [line.replace(str(folder), "") for line in await play(tart, steps)]
