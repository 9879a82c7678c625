"""The image side of an agent on a simulated Mac, and a disk whose writer can be killed."""

import json
from collections.abc import Callable
from pathlib import Path

from applecart.clock import Clock
from applecart.kubelet.goldens import Golden, Goldens
from applecart.sim.mac import SimulatedMac
from applecart.tart.driver import Tart
from applecart.tart.files import FILE_MODE, Files
from applecart.tart.home import Home
from applecart.tart.marks import GoldenMark

IMAGE = "ghcr.io/acme/macos:15"


class Killed(BaseException):
    """The agent is dead: nothing of it runs any further, not even what tidies up after errors."""


class MortalFiles(Files):
    """Tells before and after every change, and changes nothing once its agent is dead."""

    def __init__(self, moment: Callable[[str], None], is_dead: Callable[[], bool]) -> None:
        self._moment = moment
        self._is_dead = is_dead

    def write(self, path: Path, data: bytes, mode: int = FILE_MODE) -> None:
        self._around(f"write {path.name}", lambda: Files.write(self, path, data, mode))

    def remove(self, path: Path) -> None:
        self._around(f"remove {path.name}", lambda: Files.remove(self, path))

    def _around(self, what: str, change: Callable[[], None]) -> None:
        if self._is_dead():
            raise Killed
        self._moment(f"before {what}")
        change()
        self._moment(f"after {what}")


class Agent:
    """Made anew for every start of the agent; the Mac and the folders stay."""

    def __init__(self, mac: SimulatedMac, clock: Clock, folder: Path, files: Files | None = None) -> None:
        self.mac = mac
        self.clock = clock
        self.state = folder / "state"
        self.files = files or Files()
        self.tart = Tart(mac, "/usr/local/bin/tart", mac.home, clock)
        self.home = Home(mac.home)
        self.goldens = Goldens(self.tart, self.home, self.files, clock, self.state)

    def tart_calls(self, *verbs: str) -> list[str]:
        """What was asked of Tart, without the binary."""
        return [" ".join(call.argv[1:]) for call in self.mac.calls if call.tart and (not verbs or call.tart in verbs)]


def fault(mac: SimulatedMac, **fault: object) -> None:
    (mac.home / "faults.json").write_text(json.dumps({"faults": [fault]}))


def mark_of(agent: Agent, golden: Golden) -> GoldenMark:
    mark = agent.home.mark(golden.vm)
    assert isinstance(mark, GoldenMark)
    return mark
