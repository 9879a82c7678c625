"""What the Node tells about its host that the host itself knows: address, disk, system.

Read once at the start, except the disk, whose size is asked for each time; a disk that cannot be read keeps the size it had.
"""

import os
import sys
from pathlib import Path

import msgspec

from applecart.errors import ApplecartError
from applecart.tart.mac import Mac

SW_VERS_ARGV = ("/usr/bin/sw_vers", "-productVersion")
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


async def read_facts(mac: Mac, address: str, *, platform: str = sys.platform) -> HostFacts:
    """What can be told without waiting long; what cannot is left out."""
    os_image = ""
    if platform == "darwin":
        try:
            ended = await mac.run(SW_VERS_ARGV, deadline_s=DEADLINE_S)
            version = ended.out.decode("utf-8", "replace").strip() if ended.code == 0 else ""
            os_image = f"macOS {version}" if version.isprintable() and version else ""
        except ApplecartError:
            pass
    return HostFacts(mac, Facts(address=address, os_image=os_image, kernel_version=os.uname().release))
