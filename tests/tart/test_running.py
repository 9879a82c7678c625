import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.tart.mac import Process
from applecart.tart.running import running_vms

TART = "/usr/local/lib/tart.app/Contents/MacOS/tart"
SUPERVISOR = f'/bin/sh -c trap : HUP; mkdir "$f/started" supervise /state/run-0 f=$1 {TART} run vm-1 --no-graphics'


def names(*commands: str, binary: str = "tart") -> dict[str, int]:
    processes = [Process(number, "Mon Jan 05 04:05:06 2026", command) for number, command in enumerate(commands, 1)]
    return {name: process.pid for name, process in running_vms(processes, binary).items()}


def test_a_name_matches_exactly() -> None:
    """Incident 26: `X` counted as running because `X-2` did, and stayed on the disk for ever."""
    assert names(f"{TART} run X-2 --no-graphics") == {"X-2": 1}


@pytest.mark.parametrize(
    "command",
    [
        f"{TART} run vm-1",
        "tart run vm-1 --no-graphics",
        "/bin/sh /usr/local/bin/tart run vm-1 --no-graphics",  # the wrapper, before it becomes Tart
        "/opt/x/bin/python3.12 /opt/x/bin/tart run vm-1",
        f"{TART} run --no-graphics --dir env:/x:ro vm-1 --root-disk-opts caching=cached",
        f"{TART} run --dir=env:/x vm-1",
    ],
)
def test_a_vm_is_found_however_it_was_started(command: str) -> None:
    assert names(command) == {"vm-1": 1}


@pytest.mark.parametrize(
    "command",
    [
        SUPERVISOR,  # it would get the signals meant for the VM
        f"vim notes about {TART} run vm-1",
        "grep -r tart run vm-1",
        "/usr/local/bin/start run vm-1",
        f"{TART} stop vm-1",
        f"{TART} exec vm-1 make run all",
        f"{TART} runner vm-1",
        f"{TART} run",
        f"{TART} run ",
        f"{TART} run --dir",
        "",
    ],
)
def test_what_only_mentions_a_vm_does_not_run_it(command: str) -> None:
    assert names(command) == {}


def test_a_wrapper_of_another_name_that_becomes_tart_is_known_by_either_name() -> None:
    """I7: its VMs were not seen, so loginwindow was started anew under them."""
    wrapper = "/opt/ci/vm-tool"
    assert names(f"{TART} run vm-1", f"/bin/sh {wrapper} run vm-2", f"{wrapper} run vm-3", binary=wrapper) == {
        "vm-1": 1,
        "vm-2": 2,
        "vm-3": 3,
    }
    assert names("/opt/ci/other-tool run vm-1", binary=wrapper) == {}


def test_a_binary_in_a_folder_with_a_blank_is_known_by_its_path() -> None:
    path = "/Applications/My Tools/tart"
    assert names(f"{path} run vm-1", binary=path) == {"vm-1": 1}


@given(st.lists(st.text(max_size=60)))
def test_any_command_line_is_judged(commands: list[str]) -> None:
    assert isinstance(names(*commands), dict)
