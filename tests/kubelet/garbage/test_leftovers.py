"""Files beside the VMs: staged secrets do not stay, logs do not grow for ever."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given

from applecart.kubelet.garbage.leftovers import (
    ALL_LOGS_BYTES,
    LARGEST_LOG_BYTES,
    Leftover,
    RemoveLog,
    RemoveUserdata,
    RotateLog,
    plan_leftovers,
    vm_of_log,
)
from applecart.kubelet.garbage.scene import Found, Scene
from tests.kubelet.garbage.scenes import NOW, scene, scenes, vm


def staged(name: str, minutes: float = 60) -> Found:
    return Found(Path("/userdata") / name, NOW - timedelta(minutes=minutes))


def log(name: str, days: float = 0, size_bytes: int = 1000) -> Found:
    return Found(Path("/logs") / name, NOW - timedelta(days=days), size_bytes)


def paths(plan: list[Leftover]) -> list[str]:
    return [step.path.name for step in plan]


def test_files_staged_for_a_pod_that_never_started_go() -> None:
    """Weakness 15: only folders of VMs were looked at, so secrets of a Pod that never got one stayed for ever."""
    assert paths(plan_leftovers(scene(userdata=(staged("ci-never"),)))) == ["ci-never"]


@pytest.mark.parametrize(
    "parts",
    [
        {"entry_vms": frozenset({"ci-a"})},
        {"vms": (vm("ci-a"),)},
        {"named_by_processes": frozenset({"ci-a"})},
        {"named_by_processes": None},
        {"userdata": (staged("ci-a", minutes=5),)},
    ],
)
def test_staged_files_stay_while_anybody_may_need_them(parts: dict[str, object]) -> None:
    assert plan_leftovers(scene(**{"userdata": (staged("ci-a"),), **parts})) == []


def test_a_log_goes_a_week_after_its_last_line() -> None:
    """Weakness 19: logs were never removed."""
    plan = plan_leftovers(scene(logs=(log("old.log", 8), log("young.log", 6), log("old.log.1", 8), log("note.txt", 900))))
    assert paths(plan) == ["old.log", "old.log.1"]
    assert all(isinstance(step, RemoveLog) for step in plan)


def test_logs_of_vms_that_are_gone_share_a_limit_and_the_oldest_go_first() -> None:
    """Weakness 19: nothing limited all logs together, and a busy host writes gigabytes of them in a week."""
    logs = [log(f"ci-{day}.log", days=day, size_bytes=ALL_LOGS_BYTES // 40) for day in range(6)]
    logs += [log(f"ci-{number}.guest.log", days=6, size_bytes=ALL_LOGS_BYTES // 40) for number in range(40)]
    going = plan_leftovers(scene(logs=tuple(logs)))
    assert len(going) == 6
    assert all(name.endswith(".guest.log") for name in paths(going))
    kept = scene(logs=tuple(logs), vms=tuple(vm(f"ci-{number}") for number in range(40)))
    assert plan_leftovers(kept) == []


def test_the_log_of_a_vm_that_is_still_there_stays() -> None:
    assert plan_leftovers(scene(logs=(log("ci-a.log", 30),), vms=(vm("ci-a"),))) == []


def test_a_log_that_grows_without_end_is_cut_even_while_its_vm_runs() -> None:
    """Weakness 19: a log was never rotated."""
    big = log("ci-a.log", 0, LARGEST_LOG_BYTES + 1)
    plan = plan_leftovers(scene(logs=(big, log("b.log", 0, LARGEST_LOG_BYTES)), named_by_processes=frozenset({"ci-a"})))
    assert plan == [RotateLog(big.path, Path("/logs/ci-a.log.1"))]


def test_an_older_part_is_never_cut_again() -> None:
    assert plan_leftovers(scene(logs=(log("ci-a.log.1", 0, LARGEST_LOG_BYTES * 2),))) == []


@pytest.mark.parametrize(
    ("name", "vm"), [("a.log", "a"), ("a.log.1", "a"), ("a.b.log", "a.b"), (".log", None), (".a.log", None), ("a.txt", None)]
)
def test_the_vm_of_a_log_is_told_by_its_name(name: str, vm: str | None) -> None:
    assert vm_of_log(name) == vm


@given(scenes)
def test_no_plan_removes_staged_files_of_anything_that_exists_or_runs(state: Scene) -> None:
    names = {vm.name for vm in state.vms} | state.entry_vms | (state.named_by_processes or frozenset())
    for step in plan_leftovers(state):
        if isinstance(step, RemoveUserdata):
            assert step.path.name not in names
            assert state.named_by_processes is not None
