"""What is true of the simulated host beyond Tart's own files: `sim/host.json` in the home, so that both ways in agree on it."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from applecart.sim.tart.json_file import load, save

DISK_BYTES = 494 * 10**9  # a Mac mini with 512 GB
SYSTEM_BYTES = 60 * 10**9  # macOS and tools

Seconds = Annotated[float, Meta(ge=0, le=10**9)]  # 30 years; a clock ends somewhere
Period = Annotated[float, Meta(ge=0.001, le=10**9)]  # whoever does something again at once does nothing else
Rate = Annotated[int, Meta(ge=1)]


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long things take."""

    boot_s: Seconds = 6.0  # clone to address takes 5 to 9 s on real hosts
    shutdown_s: Seconds = 2.0
    power_off_s: Seconds = 0.2
    command_s: Seconds = 0.02
    exec_s: Seconds = 0.05
    clone_s: Seconds = 0.3
    delete_file_s: Seconds = 0.02  # each of the files of a VM
    manifest_s: Seconds = 0.3
    start_failure_s: Seconds = 0.5
    pull_bytes_per_s: Rate = 100 * 10**6
    push_bytes_per_s: Rate = 60 * 10**6  # an image of 40 GB takes ten minutes
    log_every_s: Period = 30.0
    look_every_s: Period = 1.0  # of `ip --wait`


IN_A_HURRY = Pace(
    boot_s=0.3,
    shutdown_s=0.1,
    power_off_s=0.02,
    command_s=0.0,
    exec_s=0.0,
    clone_s=0.01,
    delete_file_s=0.0,
    manifest_s=0.01,
    start_failure_s=0.05,
    pull_bytes_per_s=100 * 10**9,
    push_bytes_per_s=100 * 10**9,
    log_every_s=2.0,
    look_every_s=0.05,
)


class HostFacts(msgspec.Struct, forbid_unknown_fields=True):
    has_gui_session: bool = True
    disk_bytes: int = DISK_BYTES
    other_bytes: int = SYSTEM_BYTES  # whatever is not in Tart's home
    pace: Pace | None = None

    @classmethod
    def read(cls, sim: Path) -> "HostFacts":
        return load(sim / "host.json", cls) or cls()

    def write(self, sim: Path) -> None:
        save(sim / "host.json", self)
