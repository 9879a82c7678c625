"""What the Node tells about its host that the host itself knows: address, disk, system.

Read once at the start, except the disk, whose size is asked for each time; a disk that cannot be read keeps the size it had.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from applecart.errors import ApplecartError
from applecart.tart.mac import Mac

SW_VERS_ARGV = ("/usr/bin/sw_vers", "-productVersion")
UNAME_ARGV = ("uname", "-r")
DEADLINE_S = 10.0
ROOT = Path("/")


class Facts(msgspec.Struct, frozen=True):
    address: str = ""
    disk_bytes: int = 0  # 0: not known
    os_image: str = ""
    kernel_version: str = ""


class HostFacts:
    """Call it for the facts as they are now."""

    def __init__(self, mac: Mac, facts: Facts) -> None:
        self._mac = mac
        self._facts = facts

    def __call__(self) -> Facts:
        try:
            total_bytes = self._mac.disk(ROOT).total_bytes
        except OSError:
            total_bytes = 0
        if total_bytes and total_bytes != self._facts.disk_bytes:
            self._facts = msgspec.structs.replace(self._facts, disk_bytes=total_bytes)
        return self._facts


async def read_facts(mac: Mac, address: str) -> HostFacts:
    """What can be told without waiting long; what cannot is left out."""
    version = await _said(mac, SW_VERS_ARGV)
    kernel = await _said(mac, UNAME_ARGV)
    return HostFacts(mac, Facts(address=address, os_image=f"macOS {version}" if version else "", kernel_version=kernel))


async def _said(mac: Mac, argv: Sequence[str]) -> str:
    try:
        ended = await mac.run(argv, deadline_s=DEADLINE_S)
    except ApplecartError:  # also where there is no such program
        return ""
    text = ended.out.decode("utf-8", "replace").strip() if ended.code == 0 else ""
    return text if text.isprintable() else ""
