"""The goldens on disk: which there are, which image references lead to them, and what the Node may say about them.

A reference belongs to one golden at a time: when a tag moves, the old golden loses it before the new one gets it, so a crash
between the two costs a look at the registry and never an old image under a new name.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from applecart.api.names import golden_label, golden_vm
from applecart.clock import Clock
from applecart.kubelet.golden_marks import golden_mark
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.images import parse
from applecart.tart.marks import GoldenMark

REMEMBERED_IMAGES = 16  # references per golden; each becomes a label of the Node
LABELS_AGE_S = 10.0  # others may delete a golden; the heartbeat notices within this time

log = logger(__name__)


class Shelf:
    def __init__(self, home: Home, files: Files, clock: Clock) -> None:
        self._home = home
        self._files = files
        self._clock = clock
        self._marks: tuple[GoldenMark, ...] = ()
        self._read_at_s: float | None = None

    def find(self, digest: str) -> GoldenMark | None:
        """The mark of a golden that can be cloned from."""
        found = self._home.vm(golden_vm(digest))
        return golden_mark(found) if found is not None and found.is_whole else None

    def digest_of(self, image: str) -> str | None:
        return next((mark.digest for mark in self._all() if image in mark.images), None)

    def put(self, digest: str, image: str, made_at: datetime) -> None:
        """Mark a VM that was just cloned."""
        self._move(image, digest)
        self._write(GoldenMark(digest, (image,), made_at, self._clock.now()))

    def use(self, mark: GoldenMark, image: str | None = None) -> None:
        """A Pod wants it, by this name."""
        images = mark.images
        if image is not None and images[:1] != (image,):
            self._move(image, mark.digest)
            images = (image, *(other for other in images if other != image))[:REMEMBERED_IMAGES]
        self._write(msgspec.structs.replace(mark, images=images, used_at=self._clock.now()))

    def images_here(self) -> frozenset[str]:
        """Every reference that a VM can be made of without a pull."""
        self._refresh()
        return frozenset(image for mark in self._marks for image in (mark.digest, *mark.images))

    def labels(self) -> dict[str, str]:
        return {golden_label(image): "true" for image in sorted(self.images_here())}

    def changed(self) -> None:
        self._read_at_s = None

    def _move(self, image: str, digest: str) -> None:
        if parse(image).digest:
            return  # content never moves
        for mark in list(self._all()):
            if mark.digest != digest and image in mark.images:
                rest = tuple(other for other in mark.images if other != image)
                self._write(msgspec.structs.replace(mark, images=rest))

    def _write(self, mark: GoldenMark) -> None:
        self._home.write_mark(golden_vm(mark.digest), mark, self._files)
        self.changed()

    def _all(self) -> Iterator[GoldenMark]:
        for vm in self._home.vms():
            if (mark := golden_mark(vm)) is not None:
                yield mark

    def _refresh(self) -> None:
        now_s = self._clock.monotonic()
        if self._read_at_s is not None and now_s - self._read_at_s < LABELS_AGE_S:
            return
        try:
            self._marks = tuple(self._all())
        except OSError as error:
            # What was here a moment ago most likely still is; without the labels Pods would go to hosts that must pull.
            log.warning("the goldens on disk cannot be read; the last known ones are kept", why=str(error))
        self._read_at_s = now_s
