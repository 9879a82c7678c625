"""What the simulated Tart does on its command line.

Here it runs inside this process; `test_executable.py` proves a good part of the same of the program.
"""

import signal
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.sim.tart.guest_life import read_running
from applecart.sim.tart.host_facts import HostFacts
from applecart.sim.tart.store import Store, read_config
from applecart.tart.mac import Ended, RunEnd
from applecart.tart.running import running_vms
from tests.sim.tart.sim_tart import IMAGE, SimTart, in_process

REFUSED = [
    # argv, code, what it says
    (["delete", "nobody"], 2, 'the specified VM "nobody" does not exist'),
    (["get", "nobody"], 2, 'the specified VM "nobody" does not exist'),
    (["get", "ghcr.io/nobody/here:1"], 2, 'the specified VM "ghcr.io/nobody/here:1" does not exist'),
    (["run", "nobody"], 1, 'Error: the specified VM "nobody" does not exist'),
    (["clone", "nobody", "w"], 2, 'the specified VM "nobody" does not exist'),
    (["stop", "nobody"], 2, 'the specified VM "nobody" does not exist'),
    (["suspend", "v"], 2, 'VM "v" is not running'),
    (["exec", "v", "true"], 2, 'VM "v" is not running'),
    (["ip", "v"], 1, "no IP address found, is your VM running?"),
    (["set", "v", "--cpu", "1"], 1, "4 CPU cores at minimum"),
    (["set", "v", "--memory", "12"], 1, "4096 MB of memory at minimum"),
    (["pull", "UPPER/../x"], 1, "failed to parse remote name"),
    (["push", "v", "not-remote"], 1, "failed to parse remote name"),
    (["run", "v", "--dir", "a:/nowhere:ro"], 1, "it doesn't exist or is not a directory"),
    (["clone", "v", "a/b"], 64, "should be a local name"),
    (["run", "v", "--graphics", "--no-graphics"], 64, "mutually exclusive"),
    (["run", "v", "--root-disk-opts", "caching=maybe"], 64, 'invalid root disk option: "caching=maybe"'),
    (["list", "--format", "xml"], 64, "The value 'xml' is invalid for '--format <value>'"),
    (["ip", "v", "--wait", "soon"], 64, "The value 'soon' is invalid for '--wait'"),
    (["pull", "ghcr.io/a/b:1", "--concurrency", "abc"], 64, "The value 'abc' is invalid for '--concurrency'"),
    (["clone", "v", "w", "--concurrency", "0"], 64, "network concurrency cannot be less than 1"),
    (["stop", "v", "--timeout", "-1"], 64, "The value '-1' is invalid for '--timeout'"),
    (["prune"], 64, "at least one pruning criteria"),
    (["delete"], 64, "Missing expected argument"),
    (["set", "v", "--cpu"], 64, "Missing value for '--cpu <value>'"),
    (["list", "v"], 64, "Unexpected argument 'v'"),
    (["explode"], 64, "Unexpected argument 'explode'"),
    (["run", "v", "--warp"], 64, "Unknown option '--warp'"),
]


@pytest.fixture
async def tart(tmp_path: Path, clock: Clock) -> SimTart:
    return in_process(tmp_path, clock)


async def test_what_tart_refuses_is_refused_with_its_code_and_words(tart: SimTart) -> None:
    await tart.out("create", "v")
    for argv, code, words in REFUSED[:: tart.step]:
        ended = await tart.run(*argv)
        assert ended.code == code, (argv, ended)
        assert words in ended.err.decode(), argv
        assert "Traceback" not in ended.err.decode()
    assert (await tart.run("--version")).out == b"2.32.1\n"
    assert (await tart.run("run", "--help")).code == 0


async def test_a_vm_is_pulled_cloned_run_asked_stopped_and_deleted(tart: SimTart) -> None:
    await tart.out("pull", IMAGE)
    await tart.out("clone", IMAGE, "golden")
    await tart.out("clone", "golden", "v")
    run, _, address = await tart.boot("v")
    assert address == "192.168.64.2"
    assert (await tart.run("exec", "v", "/bin/sh", "-c", "echo hello; exit 7")).code == 7
    assert "hello" in await tart.out("exec", "v", "echo", "hello")
    assert [row["State"] for row in await tart.rows() if row["Name"] == "v"] == ["running"]
    assert (await tart.run("run", "v")).err == b'VM "v" is already running!\n'
    refused = await tart.run("delete", "v")
    assert (refused.code, refused.err) == (1, b'VM "v" is running\n')
    await tart.out("stop", "v")
    assert (await run.wait()).code == 0
    await tart.out("delete", "v")
    assert [row["Name"] for row in await tart.rows() if row["Source"] == "local"] == ["golden"]


async def test_sizes_are_a_number_in_list_and_a_text_in_get(tart: SimTart) -> None:
    """Incident 24: one command says 40, the other "40.000", and a reader of one shape found no VM."""
    await tart.out("pull", IMAGE)
    await tart.out("clone", IMAGE, "v")
    got = msgspec.json.decode(await tart.out("get", "v", "--format", "json"))
    assert got == {
        "OS": "darwin",
        "CPU": 4,
        "Memory": 8192,
        "Disk": 50,
        "DiskFormat": "raw",
        "Size": "40.000",
        "Display": "1024x768",
        "Running": False,
        "State": "stopped",
    }
    local, tag, digest = await tart.rows()
    assert (local["Source"], local["Name"], local["Size"], local["Running"]) == ("local", "v", 40, False)
    assert (tag["Source"], tag["Name"]) == ("OCI", IMAGE)
    assert str(digest["Name"]).startswith("ghcr.io/acme/macos@sha256:")
    assert await tart.out("fqn", IMAGE) == f"{digest['Name']}\n"
    assert (await tart.out("list", "-q")).splitlines() == ["v", tag["Name"], digest["Name"]]


async def test_a_clone_copies_three_files_and_asks_nobody(tart: SimTart) -> None:
    store = Store(tart.home)
    await tart.out("create", "golden")
    (store.vms / "golden" / "applecart.json").write_text("mark")
    await tart.out("clone", "golden", "v")
    assert sorted(path.name for path in (store.vms / "v").iterdir()) == ["config.json", "disk.img", "nvram.bin"]
    golden, v = read_config(store.vms / "golden"), read_config(store.vms / "v")
    assert (v.ecid, v.serial) == (golden.ecid, golden.serial)  # incident 32: clones share a device identity
    assert v.mac_address != golden.mac_address  # it would clash
    await tart.out("set", "v", "--random-serial", "--cpu", "6", "--memory", "6144")
    changed = read_config(store.vms / "v")
    assert (changed.cpu, changed.memory, changed.mac_address) == (6, 6 << 30, v.mac_address)
    assert changed.serial != golden.serial
    (store.vms / "v" / "applecart.json").write_text("mark")
    await tart.out("clone", "golden", "v")  # weakness 4: what had the name is gone without a word
    assert not (store.vms / "v" / "applecart.json").exists()


async def test_every_command_but_pull_and_clone_deletes_what_nobody_holds_in_tmp(tart: SimTart) -> None:
    """Weakness 2: looking at VMs deleted the half of an image that a killed pull had left."""
    await tart.out("create", "golden")
    half = tart.home / "tmp" / "half"
    for argv in (["clone", "golden", "v"], ["pull", "golden"]):
        half.mkdir(exist_ok=True)
        await tart.out(*argv)
        assert half.exists()
    await tart.out("get", "golden")
    assert not half.exists()


async def test_what_cannot_be_cleaned_is_said_and_the_command_goes_on(tart: SimTart) -> None:
    await tart.out("create", "v")
    (tart.home / "tmp" / "link").symlink_to("nowhere")  # nothing that could be locked
    ended = await tart.run("list", "-q")
    assert (ended.code, ended.out) == (0, b"v\n")
    assert ended.err.startswith(b"Failed to perform garbage collection!\n")


async def test_a_vm_that_does_not_run_is_stopped_without_a_word(tart: SimTart) -> None:
    await tart.out("create", "v")
    assert await tart.run("stop", "v") == Ended(0)


async def test_a_halted_vm_still_has_its_address(tart: SimTart) -> None:
    """Incident 3: the address of a halted VM made it look alive."""
    tart.rules({"vm": "v", "runs_s": 0.2})
    await tart.out("create", "v")
    run, log, address = await tart.boot("v")
    assert (await run.wait()).code == 0
    assert log.read_text() == "guest has stopped the virtual machine\n"
    assert (await tart.out("ip", "v")).strip() == address


async def test_a_crash_of_the_guest_is_told_by_words_only(tart: SimTart) -> None:
    """Weakness 10: `tart run` ends with 0 either way."""
    tart.rules({"crashes_after_s": 0.1, "crash_text": "it broke"})
    await tart.out("create", "v")
    run, log = await tart.start("v")
    assert (await run.wait()).code == 0
    assert log.read_text() == "guest has stopped the virtual machine due to error: it broke\n"


async def test_a_third_macos_guest_is_refused(tart: SimTart) -> None:
    for name in ("a", "b", "c", "linux"):
        await tart.out("create", name, *(["--linux"] if name == "linux" else []))
    for name in ("a", "b"):
        await tart.boot(name)
    run, log = await tart.start("c")
    assert (await run.wait()).code == 1
    assert log.read_text() == "The number of VMs exceeds the system limit (other running VMs: a, b)\n"
    await tart.boot("linux")


async def test_without_a_session_on_the_screen_no_vm_starts(tart: SimTart) -> None:
    """Incident 38: `tart run` dies within a second."""
    await tart.out("create", "v")
    HostFacts(has_gui_session=False).write(tart.home / "sim")
    ended = await tart.run("run", "v", "--no-graphics")
    assert ended.code == 1
    assert b"VZErrorDomain Code=-9" in ended.err
    assert b"Failed to create new HostKey" in ended.err
    assert not Store(tart.home).is_running("v")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGUSR2, 0), (signal.SIGTERM, 143), (signal.SIGKILL, 137)]
)
async def test_a_vm_ends_with_its_process(tart: SimTart, number: int, code: int) -> None:
    await tart.out("create", "v")
    run, _, _ = await tart.boot("v")
    running = read_running(Store(tart.home), "v")
    assert running is not None
    assert tart.mac.signal(running.pid, number)
    assert (await run.wait()).code == code
    assert not Store(tart.home).is_running("v")
    assert (await tart.run("exec", "v", "true")).code == 2


async def test_a_guest_that_ignores_a_request_is_powered_off_by_stop(tart: SimTart) -> None:
    tart.rules({"ignores_shutdown": True})
    await tart.out("create", "v")
    run, _, _ = await tart.boot("v")
    running = read_running(Store(tart.home), "v")
    assert running is not None
    assert tart.mac.signal(running.pid, signal.SIGUSR2)
    await tart.out("exec", "v", "true")
    assert Store(tart.home).is_running("v")
    await tart.out("stop", "v", "--timeout", "5")
    assert (await run.wait()).code == 0


async def test_a_guest_reads_its_environment_and_leaves_its_exit_code_and_log(tart: SimTart, tmp_path: Path) -> None:
    env, status = tmp_path / "userdata", tmp_path / "userdata" / "status"
    status.mkdir(parents=True)
    (env / "tuist.env").write_text(
        "APPLECART_SIM_RUN_SECONDS=0.3\nAPPLECART_SIM_EXIT_CODE=3\nAPPLECART_SIM_LOG=building\\ntesting\nBROKEN\n"
    )
    await tart.out("create", "v")
    run, _, address = await tart.boot("v", "--dir", f"env:{env}:ro", "--dir", f"status:{status}")
    assert (await run.wait()).code == 0
    assert (status / "runner-rc").read_text() == "3\n"
    assert (status / "runner.log").read_text() == f"v is up at {address}\nbuilding\ntesting\nthe work is done\n"


async def test_shutdown_inside_the_guest_halts_it(tart: SimTart) -> None:
    tart.rules({"ignores_shutdown": True})  # of others; it obeys itself
    await tart.out("create", "v")
    run, _, _ = await tart.boot("v")
    await tart.out("exec", "v", "/sbin/shutdown", "-h", "now")
    assert (await run.wait()).code == 0


async def test_a_guest_without_an_agent_cannot_be_asked(tart: SimTart) -> None:
    tart.rules({"no_agent": True})
    await tart.out("create", "v")
    await tart.boot("v")
    ended = await tart.run("exec", "v", "true")
    assert (ended.code, b"is the Tart Guest Agent running?" in ended.err) == (1, True)


async def test_a_guest_that_never_gets_an_address_runs_without_one(tart: SimTart) -> None:
    tart.rules({"never_gets_ip": True})
    await tart.out("create", "v")
    run, _ = await tart.start("v")
    assert (await tart.run("ip", "v", "--wait", "1")).err == b"no IP address found, is your VM running?\n"
    assert Store(tart.home).is_running("v")
    await tart.out("stop", "v")
    assert isinstance(await run.wait(), RunEnd)


async def test_rename_moves_a_vm_and_never_over_another(tart: SimTart) -> None:
    await tart.out("create", "a")
    await tart.out("rename", "a", "b")
    await tart.out("create", "a")
    taken, missing = await tart.run("rename", "a", "b"), await tart.run("rename", "c", "d")
    assert (taken.code, missing.code) == (64, 64)
    assert b"Error: failed to rename VM a, target VM b already exists, delete it first!" in taken.err
    assert b"Error: failed to rename a non-existent local VM: c" in missing.err
    assert (await tart.out("list", "-q")).split() == ["a", "b"]
    (tart.home / "vms" / "half" / "sub").mkdir(parents=True)
    await tart.out("rename", "a", "half")
    assert (await tart.out("list", "-q")).split() == ["b", "half"]


async def test_a_running_vm_that_is_renamed_runs_on_under_its_new_name(tart: SimTart) -> None:
    """Tart moves the folder and asks nobody; the process keeps the name that it was started with."""
    tart.rules({"log_every_s": 0.1})
    await tart.out("create", "v")
    run, _, address = await tart.boot("v")
    await tart.out("rename", "v", "w")
    assert [(row["Name"], row["State"]) for row in await tart.rows()] == [("w", "running")]
    assert (await tart.out("ip", "w")).strip() == address
    await tart.out("exec", "w", "true")
    assert "v" in running_vms(await tart.mac.processes(), "tart")
    await tart.out("stop", "w")
    assert isinstance(await run.wait(), RunEnd)
    assert list((Store(tart.home).sim / "running").iterdir()) == []
