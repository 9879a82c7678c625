"""A Mac that has a disk, runs processes and answers a few programs, for tests of what the Node says about it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from applecart.errors import BadInput
from applecart.tart.mac import Disk, Ended, Process


class Host:
    def __init__(self) -> None:
        self.total_bytes = 494_384_795_648
        self.free_percent = 50.0
        self.disk_fault: OSError | None = None
        self.commands: list[str] = ["/sbin/launchd", "/usr/libexec/logd"]
        self.ps_fault: Exception | None = None
        self.programs: dict[tuple[str, ...], Ended | Exception] = {}
        self.asked: list[tuple[str, ...]] = []

    def disk(self, path: Path) -> Disk:
        if self.disk_fault:
            raise self.disk_fault
        return Disk(self.total_bytes, int(self.total_bytes * self.free_percent / 100))

    async def processes(self) -> list[Process]:
        if self.ps_fault:
            raise self.ps_fault
        return [Process(100 + index, "Mon", command) for index, command in enumerate(self.commands)]

    async def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float | None,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        folder: Path | None = None,
    ) -> Ended:
        self.asked.append(tuple(argv))
        answer = self.programs.get(tuple(argv))
        if answer is None:
            raise BadInput(f"{argv[0]} is not a program on this host")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def signal(self, pid: int, number: int) -> bool:
        return False

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("the Node's side of the agent starts nothing and connects to nobody")

    start = adopt = open = connect = _refuse
