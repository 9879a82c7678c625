"""What a host tells about itself."""

import pytest

from applecart.errors import DeadlineExceeded
from applecart.kubelet.node.facts import SW_VERS_ARGV, UNAME_ARGV, read_facts
from applecart.tart.mac import Ended
from tests.kubelet.node.host import Host


async def test_a_mac_tells_its_system() -> None:
    host = Host()
    host.programs[SW_VERS_ARGV] = Ended(0, b"15.1.1\n")
    host.programs[UNAME_ARGV] = Ended(0, b"24.5.0\n")
    facts = (await read_facts(host, "10.0.0.7"))()
    assert (facts.address, facts.os_image, facts.disk_bytes) == ("10.0.0.7", "macOS 15.1.1", host.total_bytes)
    assert facts.kernel_version == "24.5.0"


@pytest.mark.parametrize("answer", [None, Ended(1), Ended(0, b"\xff\x00"), DeadlineExceeded("no end")])
async def test_what_cannot_be_told_is_left_out(answer: Ended | Exception | None) -> None:
    host = Host()
    if answer is not None:
        host.programs[SW_VERS_ARGV] = answer
    assert (await read_facts(host, ""))().os_image == ""


async def test_a_disk_that_cannot_be_read_keeps_the_size_it_had() -> None:
    host = Host()
    facts = await read_facts(host, "")
    host.disk_fault = OSError("input/output error")
    assert facts().disk_bytes == 0
    host.disk_fault = None
    assert facts().disk_bytes == host.total_bytes
    host.disk_fault = OSError("input/output error")
    assert facts().disk_bytes == host.total_bytes
