import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.secrets import Secret
from applecart.sim.mac import SimulatedMac
from applecart.tart import failures
from applecart.tart.classify import guest_error, start_failure
from applecart.tart.driver import Tart
from applecart.tart.partials import HELD_S, partial_name
from applecart.tart.pulls import PullProgress
from applecart.tart.registry_login import RegistryLogin
from applecart.tart.run_options import RunOptions, Share
from applecart.tart.running import running_vms
from tests.tart.simulated import BINARY, DIGEST, GB, IMAGE, OTHER, OTHER_DIGEST, Scene
from tests.virtual_time import elapse


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> Scene:
    return Scene(tmp_path, clock)


async def test_the_life_of_a_vm(scene: Scene) -> None:
    tart = scene.tart
    vm = await scene.vm()
    await tart.set(vm, cpu=4, memory_mb=8192, random_serial=True)
    run = await tart.run(vm, RunOptions(), **scene.place(vm))
    assert await tart.ip(vm) is None
    address = await tart.ip(vm, wait_s=30)
    assert address
    assert address.startswith("192.168.64.")
    info = await tart.get(vm)
    assert (info.cpu, info.memory_mb, info.is_running) == (4, 8192, True)
    assert (await tart.exec(vm, ["/bin/df", "-k", "/"], deadline_s=15)).code == 0
    await tart.stop(vm)
    assert (await run.wait()).code == 0
    await tart.delete(vm)
    assert {(row.name, row.source) for row in await tart.list()} == {
        ("golden", "local"),
        (IMAGE, "OCI"),
        (f"ghcr.io/acme/runner@{DIGEST}", "OCI"),
    }


async def test_every_command_is_spelled_exactly(scene: Scene) -> None:
    """Incidents 32 and 43: a fresh identity for every clone, and the words of a run."""
    vm = await scene.vm()
    await scene.tart.set(vm, random_serial=True)
    await scene.tart.set(vm, cpu=4, memory_mb=8192)
    await scene.tart.set(vm)  # nothing to set is no command
    shares = (Share("env", scene.root / "env"), Share("status", scene.root / "status", read_only=False))
    for share in shares:
        share.path.mkdir()
    await scene.tart.run(vm, RunOptions(shares), **scene.place(vm))
    await scene.tart.stop(vm, grace_s=45)
    await scene.tart.prune(older_than_days=7, space_budget_gb=100)
    assert scene.argvs("set") == [["set", vm, "--random-serial"], ["set", vm, "--cpu", "4", "--memory", "8192"]]
    dirs = ["--dir", f"env:{scene.root}/env:ro", "--dir", f"status:{scene.root}/status"]
    assert scene.argvs("run") == [["run", vm, "--no-graphics", "--root-disk-opts", "caching=cached", *dirs]]
    assert scene.argvs("stop") == [["stop", vm, "--timeout", "45"]]
    assert scene.argvs("prune") == [["prune", "--older-than", "7", "--space-budget", "100"]]
    assert scene.argvs("clone") == [["clone", IMAGE, "golden"], ["clone", "golden", vm]]


async def test_tart_is_told_its_home_by_every_command(tmp_path: Path, clock: Clock) -> None:
    mac = SimulatedMac(tmp_path / "of-the-mac", clock)
    tart = Tart(mac, BINARY, tmp_path / "ours", clock)
    await tart.pull(IMAGE)
    await tart.clone(IMAGE, "golden")
    await tart.run("golden", RunOptions(), folder=tmp_path / "run", log=tmp_path / "log")
    assert [row.name for row in await tart.list() if row.is_running] == ["golden"]
    assert mac.vms() == []


async def test_a_clone_never_replaces_a_vm(scene: Scene) -> None:
    """Weakness 4: a look that failed read as "no such VM", and the clone that followed replaced one that ran."""
    vm = await scene.vm()
    await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    scene.go_wrong("get", "fail", text="The file “config.json” couldn’t be opened.")  # noqa: RUF001 (Foundation's)
    with pytest.raises(failures.TartFailed) as caught:
        await scene.tart.get(vm)
    assert not isinstance(caught.value, failures.VmMissing)
    with pytest.raises(failures.TartFailed, match="exists already and is not replaced"):
        await scene.tart.clone("golden", vm)
    assert (await scene.tart.get(vm)).is_running
    with pytest.raises(failures.VmMissing):
        await scene.tart.get("vm-2")


async def test_deleting_or_stopping_what_is_not_there_is_done(scene: Scene) -> None:
    """Weakness 14: a VM that was gone could not be deleted, so its Pod stayed Terminating."""
    vm = await scene.vm()
    await scene.tart.stop(vm)
    await scene.tart.delete(vm)
    await scene.tart.delete(vm)
    await scene.tart.stop(vm)
    assert vm not in scene.mac.vms()


async def test_a_running_vm_is_not_deleted(scene: Scene) -> None:
    vm = await scene.vm()
    await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    with pytest.raises(failures.VmAlreadyRunning):
        await scene.tart.delete(vm)


HUNG: dict[str, tuple[Callable[[Tart], Awaitable[object]], float]] = {
    "clone": (lambda tart: tart.clone("golden", "vm-2"), 300),
    "set": (lambda tart: tart.set("golden", cpu=4), 60),
    "stop": (lambda tart: tart.stop("golden", grace_s=30), 120),
    "delete": (lambda tart: tart.delete("golden"), 300),
    "get": (lambda tart: tart.get("golden"), 30),
    "list": (lambda tart: tart.list(), 30),
    "ip": (lambda tart: tart.ip("golden", wait_s=30), 45),
    "exec": (lambda tart: tart.exec("golden", ["true"], deadline_s=15), 15),
}


@pytest.mark.parametrize("op", HUNG)
async def test_a_hung_command_is_killed_at_its_deadline_and_delays_nobody_else(scene: Scene, op: str) -> None:
    """Incident 8: one hung call, and the host did nothing for minutes."""
    await scene.golden()
    call, deadline_s = HUNG[op]
    scene.go_wrong(op, "hang", with_grandchild=True)
    with scene.timed() as took:
        hung = asyncio.ensure_future(call(scene.tart))
        await elapse(1)
        with scene.timed() as meanwhile:
            await scene.tart.list()
        with pytest.raises(failures.TartHung, match=f"tart {op} of .* was killed"):
            await hung
    assert meanwhile[0] < 1
    assert took[0] == pytest.approx(deadline_s, abs=1)


async def test_a_vm_that_cannot_start_says_why_in_its_log(scene: Scene) -> None:
    vm = await scene.vm()
    scene.mac.lose_gui_session()
    place = scene.place(vm)
    run = await scene.tart.run(vm, RunOptions(), **place)
    end = await run.wait()
    assert type(start_failure(place["log"].read_text(), end.code, vm)) is failures.NoGuiSession


async def test_a_third_vm_is_one_too_many(scene: Scene) -> None:
    for name in ("vm-1", "vm-2"):
        await scene.tart.run(await scene.vm(name), RunOptions(), **scene.place(name))
    place = scene.place("vm-3")
    run = await scene.tart.run(await scene.vm("vm-3"), RunOptions(), **place)
    end = await run.wait()
    assert type(start_failure(place["log"].read_text(), end.code)) is failures.TooManyVms


async def test_a_guest_that_crashes_is_told_from_one_that_halts_by_its_log(scene: Scene) -> None:
    """Weakness 10: Tart ends with 0 in both cases."""
    (scene.home / "sim" / "guests.json").write_text('[{"vm": "vm-1", "crashes_after_s": 20}, {"vm": "vm-2", "runs_s": 20}]')
    said = []
    for name in ("vm-1", "vm-2"):
        place = scene.place(name)
        run = await scene.tart.run(await scene.vm(name), RunOptions(), **place)
        assert (await run.wait()).code == 0
        said.append(guest_error(place["log"].read_text()))
    assert said[0]
    assert "virtualization error" in said[0]
    assert said[1] is None


async def test_a_running_vm_is_recognised_after_a_restart(scene: Scene) -> None:
    """Incident 19: its process tells, at once, where waiting for an address took half a minute per VM."""
    vm = await scene.vm()
    await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    with scene.timed() as took:
        assert set(running_vms(await scene.mac.processes(), "tart")) == {vm}
    assert took[0] < 1
    adopted = await scene.mac.adopt(scene.place(vm)["folder"])
    assert adopted
    assert adopted.pid == running_vms(await scene.mac.processes(), "tart")[vm].pid


async def test_the_code_of_a_guests_command_is_its_own(scene: Scene) -> None:
    vm = await scene.vm()
    await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    await scene.tart.ip(vm, wait_s=30)
    assert (await scene.tart.exec(vm, ["false"], deadline_s=15)).code == 1
    session = await scene.tart.exec_session(vm, ["cat"], stdin=True, tty=False)
    await session.write(b"hello\n")
    assert await session.read_out() == b"hello\n"
    await session.close_stdin()
    assert await session.wait() == 0
    assert scene.argvs("exec")[-1] == ["exec", "-i", vm, "cat"]


async def test_what_runs_in_no_guest_is_an_error(scene: Scene) -> None:
    vm = await scene.vm()
    with pytest.raises(failures.VmNotRunning):
        await scene.tart.exec(vm, ["true"], deadline_s=15)
    (scene.home / "sim" / "guests.json").write_text('[{"vm": "*", "no_agent": true}]')
    await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    await scene.tart.ip(vm, wait_s=30)
    with pytest.raises(failures.TartFailed, match="guest agent does not run"):
        await scene.tart.exec(vm, ["true"], deadline_s=15)


@pytest.mark.parametrize(
    ("list_name", "kind"),
    [("missing", failures.ImageMissing), ("denied", failures.RegistryRefused), ("busy", failures.RegistryBusy)],
)
async def test_a_registry_that_says_no_is_of_its_class(scene: Scene, list_name: str, kind: type[Exception]) -> None:
    scene.mac.registry.edit(lambda content: setattr(content, list_name, [IMAGE]))
    with pytest.raises(kind, match=r"ghcr\.io/acme/runner"):
        await scene.tart.pull(IMAGE)


async def test_a_login_goes_by_environment_and_never_by_argument(scene: Scene) -> None:
    scene.set_layers(a=GB)
    scene.mac.registry.edit(lambda content: setattr(content, "private", ["*"]))
    with pytest.raises(failures.RegistryRefused):
        await scene.tart.pull(IMAGE)
    await scene.tart.pull(IMAGE, login=RegistryLogin("ghcr.io", "robot", Secret("wonderful-password")))
    assert scene.is_pulled()
    assert not [call for call in scene.mac.calls if "wonderful" in " ".join(call.argv)]


async def test_a_pull_never_deletes_somebody_elses_image_to_make_room(scene: Scene) -> None:
    """I3: Tart would delete the least recently used images of anybody; room is made by whoever knows what is ours."""
    await scene.mac.run([BINARY, "pull", "ghcr.io/other/builder:1"], deadline_s=None)
    scene.mac.fill_disk(30 * GB)
    scene.set_layers(a=40 * GB)
    with pytest.raises(failures.NoSpace):
        await scene.tart.pull(IMAGE)
    assert "ghcr.io/other/builder:1" in {row.name for row in await scene.tart.list()}


@pytest.mark.parametrize("start", ["run", "exec_session"])
async def test_a_command_that_goes_on_does_not_clean_away_a_pull_that_can_go_on(scene: Scene, start: str) -> None:
    """It cleans after its start has returned, so a guard that ended with the start was none."""
    vm = await scene.vm()
    if start == "exec_session":
        await scene.tart.run(vm, RunOptions(), **scene.place(vm))
        await scene.tart.ip(vm, wait_s=30)
    scene.offer(OTHER, OTHER_DIGEST, b=10 * GB, c=10**15)
    with pytest.raises(failures.PullStalled):
        await scene.tart.pull(OTHER)
    partial = scene.home / "tmp" / partial_name(OTHER)
    await elapse(2 * HELD_S)
    if start == "run":
        await scene.tart.run(vm, RunOptions(), **scene.place(vm))
    else:
        session = await scene.tart.exec_session(vm, ["true"], stdin=False, tty=False)
        await session.wait()
    await elapse(10)
    assert partial.exists()


async def test_progress_is_told_in_percent(scene: Scene) -> None:
    seen: list[PullProgress] = []
    scene.set_layers(a=10 * GB)
    await scene.tart.pull(IMAGE, on_progress=seen.append)
    percents = [it.percent for it in seen if it.percent is not None]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (0, 100)
    assert "pulling manifest..." in {it.line for it in seen}


async def test_a_push_is_judged_by_progress_too(scene: Scene) -> None:
    await scene.golden()
    scene.go_wrong("push", "slow", bytes_per_s=10**5)  # 1 GB in almost three hours
    await scene.tart.push("golden", "ghcr.io/acme/runner:new")
    scene.go_wrong("push", "hang")
    with pytest.raises(failures.TartHung, match="the push of VM golden stood still for 900 s"):
        await scene.tart.push("golden", "ghcr.io/acme/runner:new")


async def test_every_command_is_told_with_its_outcome_and_its_time(scene: Scene) -> None:
    told: list[tuple[str, str, float]] = []
    tart = Tart(scene.mac, BINARY, scene.home, scene.clock, on_call=lambda *call: told.append(call))
    scene.set_layers(a=GB)
    await tart.pull(IMAGE)
    await tart.delete("nothing")
    scene.go_wrong("list", "hang")
    with pytest.raises(failures.TartHung):
        await tart.list()
    scene.go_wrong("pull", "hang")
    with pytest.raises(failures.PullStalled):
        await tart.pull("ghcr.io/acme/other:1")
    scene.go_wrong("pull", "fail")
    with pytest.raises(failures.TartFailed):
        await tart.pull("ghcr.io/acme/other:1")
    outcomes = [("pull", "ok"), ("delete", "failed"), ("list", "hung"), ("pull", "hung"), ("pull", "failed")]
    assert [(op, outcome) for op, outcome, _ in told] == outcomes
    assert [round(took_s, -1) for _, _, took_s in told] == [10, 0, 30, 300, 0]


async def test_a_missing_binary_is_a_fault_of_the_host(scene: Scene) -> None:
    """It may be installed any moment, so no Pod fails of it for good."""
    tart = Tart(scene.mac, "/no/such/program", scene.home, scene.clock)
    for call in (tart.list(), tart.pull(IMAGE), tart.run("vm-1", RunOptions(), **scene.place("vm-1"))):
        with pytest.raises(failures.TartFailed, match="Tart cannot be run on this host: /no/such/program cannot be started"):
            await call
