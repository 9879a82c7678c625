"""Which VMs and images are being worked with right now, so that garbage collection keeps away, and the other way round."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from applecart.tart.images import ImageRef

T = TypeVar("T")


class Busy:
    def __init__(self) -> None:
        self._vms: Counter[str] = Counter()
        self._images: Counter[ImageRef] = Counter()
        self._going: dict[str, asyncio.Event] = {}  # names of VMs and of images

    @property
    def vms(self) -> frozenset[str]:
        """Goldens being made or cloned from, and VMs being cloned."""
        return frozenset(self._vms)

    @property
    def images(self) -> frozenset[ImageRef]:
        """Being pulled, or cloned from; what they lead to may change meanwhile."""
        return frozenset(self._images)

    @contextmanager
    def vm(self, name: str) -> Iterator[None]:
        with _counted(self._vms, name):
            yield

    @contextmanager
    def image(self, ref: ImageRef) -> Iterator[None]:
        with _counted(self._images, ref):
            yield

    @contextmanager
    def going(self, name: str) -> Iterator[bool]:
        """Around a removal. False: somebody works with the VM, or it goes already; keep away. Of an image, which has many
        names, the caller knows whether somebody works with it."""
        if name in self._vms or name in self._going:
            yield False
            return
        gone = self._going[name] = asyncio.Event()
        try:
            yield True
        finally:
            del self._going[name]
            gone.set()

    async def settled(self, name: str) -> None:
        """Returns when nobody is removing it. Take it with `vm` before anything else runs."""
        while (going := self._going.get(name)) is not None:
            await going.wait()


@contextmanager
def _counted(uses: Counter[T], name: T) -> Iterator[None]:
    uses[name] += 1
    try:
        yield
    finally:
        uses[name] -= 1
        if not uses[name]:
            del uses[name]
