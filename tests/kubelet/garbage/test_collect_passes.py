"""How passes run, and what they do with staged files and logs."""

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kubelet.entry import Stage
from applecart.kubelet.garbage.collect import EVERY_S
from applecart.kubelet.garbage.leftovers import LARGEST_LOG_BYTES
from applecart.sim.mac import Call, SimulatedMac
from tests.kubelet.garbage.hosts import CollectingHost, pod_vms
from tests.virtual_time import elapse

# How passes run


async def test_a_pass_that_cannot_list_pods_deletes_nothing_and_says_so(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async def unreachable() -> Sequence[Pod]:
        raise Unreachable("the API does not answer")

    host = CollectingHost(mac, clock, tmp_path, unreachable)
    await host.make_pod_vm("uid")
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    assert host.collector.last == "the last pass was given up: the API does not answer"


async def test_a_pass_that_cannot_read_the_store_deletes_nothing(host: CollectingHost) -> None:
    await host.make_pod_vm("uid")
    oci = host.mac.home / "cache" / "OCIs"
    oci.rename(host.mac.home / "aside")
    oci.symlink_to(oci)
    pulled = host.goldens.ledger.pulled()
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    assert host.goldens.ledger.pulled() == pulled


async def test_a_pass_runs_at_the_start_and_every_five_minutes(host: CollectingHost) -> None:
    passes = asyncio.create_task(host.collector.run())
    await host.make_pod_vm("early")
    await elapse(1)
    assert pod_vms(host) == ["ci-early"]
    await elapse(EVERY_S)
    assert pod_vms(host) == []
    passes.cancel()


async def test_whatever_a_pass_runs_into_the_next_one_comes(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """The collector's task is one of the agent's: its end would be the agent's, and again at every start."""
    answers: list[Exception] = [RecursionError("maximum recursion depth exceeded"), ZeroDivisionError()]

    async def pods() -> Sequence[Pod]:
        if answers:
            raise answers.pop()
        return ()

    host = CollectingHost(mac, clock, tmp_path, pods)
    await host.make_pod_vm("uid")
    passes = asyncio.create_task(host.collector.run())
    await elapse(1)
    assert host.collector.last == "the last pass was given up: ZeroDivisionError"
    await elapse(EVERY_S)
    assert host.collector.last == "the last pass was given up: maximum recursion depth exceeded"
    await elapse(EVERY_S)
    assert pod_vms(host) == []
    passes.cancel()


async def test_passes_run_one_at_a_time(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    asking = 0

    async def pods() -> Sequence[Pod]:
        nonlocal asking
        asking += 1
        assert asking == 1
        await asyncio.sleep(1)
        asking -= 1
        return ()

    host = CollectingHost(mac, clock, tmp_path, pods)
    await host.make_pod_vm("uid")
    await asyncio.gather(host.collector.collect(), host.collector.reclaim("a test"), host.collector.collect())
    assert host.tart_calls("delete").count("delete ci-uid") == 1
    assert host.counted.count("vm") == 1


# Files


async def test_staged_secrets_of_a_pod_that_never_had_a_vm_go(host: CollectingHost) -> None:
    """Weakness 15: files staged for a VM that never came to be were not looked at by anybody."""
    for name in ("ci-never", "ci-waiting"):
        host.files.make_folder(host.userdata / name)
        host.files.write(host.userdata / name / "tuist.env", b"TOKEN=x\n")
        _age(host, host.userdata / name, timedelta(hours=1))
    host.enter("waiting", Stage.ACCEPTED)
    await host.collector.collect()
    assert [path.name for path in host.userdata.iterdir()] == ["ci-waiting"]


async def test_files_and_logs_that_a_new_pod_needs_by_now_stay(host: CollectingHost) -> None:
    """They were judged when the pass began; while it deleted an orphan, a Pod of that name came."""
    await host.make_pod_vm("orphan")
    staged, log, guests_log = host.userdata / "ci-web", host.logs / "ci-web.log", host.logs / "ci-web.guest.log"
    host.files.make_folder(staged)
    for old in (log, guests_log):
        old.write_text("of a Pod that is gone\n")
        _age(host, old, timedelta(days=8))
    _age(host, staged, timedelta(hours=1))

    async def new_pod(call: Call) -> None:
        if call.tart == "delete":
            host.enter("uid-new", Stage.ACCEPTED, "web")
            host.files.write(staged / "tuist.env", b"OF=the new Pod\n")

    host.mac.after_call = new_pod
    await host.collector.collect()
    assert (staged / "tuist.env").exists()
    assert log.exists()
    assert guests_log.exists()


async def test_a_removal_of_files_that_was_cut_short_is_finished(host: CollectingHost) -> None:
    """Weakness 15: they hold secrets, also under the name they have while they go."""
    going = host.userdata / ".ci-gone.going"
    host.files.make_folder(going / "7")
    host.files.write(going / "7" / "tuist.env", b"TOKEN=x\n")
    _age(host, going, timedelta(hours=1))
    await host.collector.collect()
    assert os.listdir(host.userdata) == []


async def test_old_logs_go_and_a_log_without_end_is_cut_under_its_writer(host: CollectingHost) -> None:
    """Weakness 19: logs were kept for ever, whatever their size."""
    old, wild = host.logs / "ci-old.log", host.logs / "ci-wild.log"
    old.write_text("done\n")
    _age(host, old, timedelta(days=8))
    writer = os.open(wild, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.truncate(wild, LARGEST_LOG_BYTES)
    os.write(writer, b"last words\n")
    await host.collector.collect()
    os.write(writer, b"new words\n")
    os.close(writer)
    assert not old.exists()
    assert wild.read_bytes() == b"new words\n"
    assert (host.logs / "ci-wild.log.1").read_bytes().endswith(b"last words\n")


async def test_a_log_that_is_a_link_is_not_touched(host: CollectingHost, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    os.truncate(precious, LARGEST_LOG_BYTES + 1)
    (host.logs / "ci-a.log").symlink_to(precious)
    await host.collector.collect()
    assert precious.stat().st_size == LARGEST_LOG_BYTES + 1


def _age(host: CollectingHost, path: Path, by: timedelta) -> None:
    at = (host.clock.now() - by).timestamp()
    os.utime(path, (at, at))
