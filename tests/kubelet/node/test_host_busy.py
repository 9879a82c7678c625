"""What on a host a reboot would kill, by the command lines that run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.node.host_busy import busy_with, in_words
from applecart.tart.mac import Process


def busy(*commands: str, tart_name: str = "tart") -> list[str]:
    return busy_with((Process(pid, "Mon", command) for pid, command in enumerate(commands, 1)), tart_name)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/usr/local/lib/tart.app/Contents/MacOS/tart run ci-job-1 --no-graphics", ["VM ci-job-1 runs"]),
        ("tart run --no-graphics ci-job-1", ["VM ci-job-1 runs"]),
        ("/bin/sh -c supervise /usr/local/bin/tart run ci-job-1", ["VM ci-job-1 runs"]),
        ("/opt/homebrew/bin/tart push base registry.example.com/team/base:1", ["VM base is being pushed"]),
        ("/Users/m1/actions-runner/bin/Runner.Worker spawnclient 1 2", ["a job of the host's own runner"]),
        ("/Users/m1/actions-runner/bin/Runner.Listener run", []),
        ("tart list --format json", []),
        ("/usr/bin/start running", []),
        ("tart runner", []),
    ],
)
def test_vms_pushes_and_jobs_count_and_nothing_else_does(command: str, expected: list[str]) -> None:
    assert busy("/sbin/launchd", command) == expected


def test_another_tart_program_counts_under_its_own_name() -> None:
    assert busy("python3 /opt/bin/sim-tart run vm-1", tart_name="sim-tart") == ["VM vm-1 runs"]
    assert busy("python3 /opt/bin/sim-tart run vm-1") == []


def test_a_supervisor_and_its_vm_are_one() -> None:
    assert busy("/bin/sh -c x tart run a", "tart run a") == ["VM a runs"]


def test_a_vm_that_is_disregarded_may_run_but_not_be_pushed() -> None:
    processes = [Process(1, "Mon", "tart run scratch"), Process(2, "Mon", "tart run scratch-2")]
    assert busy_with(processes, disregarding=["scratch"]) == ["VM scratch-2 runs"]
    assert busy_with([Process(1, "Mon", "tart push scratch x")], disregarding=["scratch"]) == ["VM scratch is being pushed"]


def test_many_are_counted_and_few_are_named() -> None:
    assert in_words(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@given(st.lists(st.text(max_size=40)), st.text(max_size=8))
def test_any_command_line_can_be_read(commands: list[str], tart_name: str) -> None:
    assert busy(*commands, tart_name=tart_name) == sorted(set(busy(*commands, tart_name=tart_name)))
