"""How full guests are, by their own `df`, when some of them do not answer."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.kubelet.node.guest_disks import DEADLINE_S, GuestDisks, full, in_words, used_percent
from applecart.tart.failures import VmNotRunning
from applecart.tart.mac import Ended

MAC_DF = """\
Filesystem     1024-blocks     Used Available Capacity iused     ifree %iused  Mounted on
/dev/disk3s1s1   488245288 12000000  30000000    94%  404475 300000000    7%   /
"""


@pytest.mark.parametrize(
    ("df", "percent"),
    [
        (MAC_DF, 94),
        ("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/vda1 100 40 60 40% /\n", 40),
        ("", None),
        ("no percentage here", None),
        ("/dev/x 1 1 1 999% /", 100),
    ],
)
def test_the_capacity_is_read_and_not_that_of_inodes(df: str, percent: int | None) -> None:
    assert used_percent(df) == percent


@given(st.text())
def test_whatever_a_guest_prints_is_a_percentage_or_nothing(text: str) -> None:
    found = used_percent(text)
    assert found is None or 0 <= found <= 100


def test_a_guest_is_full_from_ninety_percent() -> None:
    assert full({"b": 90, "a": 97, "c": 89}) == {"a": 97, "b": 90}
    assert in_words({"b": 90, "a": 97, "c": 89}) == "guest root volume(s) near capacity: a at 97%, b at 90%"
    assert in_words({"c": 89}) == ""


async def test_a_guest_that_hangs_or_refuses_is_left_out_and_delays_the_others_by_one_deadline(clock: Clock) -> None:
    async def running() -> list[str]:
        return ["hangs", "hangs-too", "stopped", "fails", "fine"]

    async def execute(vm: str, command: Sequence[str]) -> Ended:
        assert command == ("/bin/df", "-k", "/")
        if vm.startswith("hangs"):
            await asyncio.Event().wait()
        if vm == "stopped":
            raise VmNotRunning("VM stopped is not running")
        return Ended(1) if vm == "fails" else Ended(0, MAC_DF.encode())

    assert await GuestDisks(running, execute)() == {"fine": 94}
    assert clock.monotonic() == DEADLINE_S
