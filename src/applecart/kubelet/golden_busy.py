"""What goldens and images are being worked with right now, so that garbage collection keeps away, and the other way round."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Busy:
    def __init__(self) -> None:
        self._vms: Counter[str] = Counter()
        self._repositories: Counter[str] = Counter()
        self._going: dict[str, asyncio.Event] = {}

    @property
    def vms(self) -> frozenset[str]:
        return frozenset(vm for vm, uses in self._vms.items() if uses)

    @property
    def repositories(self) -> frozenset[str]:
        return frozenset(name for name, uses in self._repositories.items() if uses)

    @contextmanager
    def vm(self, name: str) -> Iterator[None]:
        with _counted(self._vms, name):
            yield

    @contextmanager
    def repository(self, name: str) -> Iterator[None]:
        with _counted(self._repositories, name):
            yield

    @contextmanager
    def going(self, vm: str) -> Iterator[bool]:
        """Around a removal. False: somebody works with the VM, or it goes already; keep away."""
        if self._vms[vm] or vm in self._going:
            yield False
            return
        gone = self._going[vm] = asyncio.Event()
        try:
            yield True
        finally:
            del self._going[vm]
            gone.set()

    async def settled(self, vm: str) -> None:
        """Returns when nobody is removing the VM. Take it with `vm` before anything else runs."""
        while (going := self._going.get(vm)) is not None:
            await going.wait()


@contextmanager
def _counted(uses: Counter[str], name: str) -> Iterator[None]:
    uses[name] += 1
    try:
        yield
    finally:
        uses[name] -= 1
        if not uses[name]:
            del uses[name]
