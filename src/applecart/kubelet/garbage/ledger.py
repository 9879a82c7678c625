"""Which images this agent pulled: `<state>/images.json`. Only those are ever deleted; the rest of the cache is somebody else's.

A pull is written down before it begins, together with what the store held of that repository. So an agent that was killed in
the middle still knows that whatever the reference leads to now, and was not there before, is its own.
"""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from applecart.clock import Clock
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.images import ImageRef, parse

LEDGER_FILE = "images.json"
SET_ASIDE_SUFFIX = ".unreadable"
PULL_REMEMBERED = timedelta(hours=24)  # as long as the driver keeps what a killed pull fetched

log = logger(__name__)


class Pull(msgspec.Struct, frozen=True):
    """A pull that began and whose end is not written down."""

    image: str
    known: tuple[str, ...]  # digests of the repository that were there before
    began_at: datetime


class _Book(msgspec.Struct, frozen=True):
    pulled: tuple[str, ...] = ()
    pulls: tuple[Pull, ...] = ()


class Ledger:
    def __init__(self, state: Path, home: Home, files: Files, clock: Clock) -> None:
        self._path = state / LEDGER_FILE
        self._home = home
        self._files = files
        self._clock = clock
        files.make_folder(state)
        self._book = self._read()

    def begin(self, image: ImageRef) -> None:
        known = tuple(
            cached.name
            for cached in self._home.images()
            if cached.repository == image.repository_name and cached.name not in self.pulled()
        )
        now = self._clock.now()
        others = tuple(
            pull for pull in self._book.pulls if pull.image != image.pull_name and now - pull.began_at < PULL_REMEMBERED
        )
        self._write(_Book(self._book.pulled, (*others, Pull(image.pull_name, known, now))))

    def end(self, image: ImageRef) -> None:
        """The pull is over, however it ended, and no process of it is left. Never hides how: a disk without room for it leaves
        a pull in the book, and what that brought counts the same."""
        pulls = tuple(pull for pull in self._book.pulls if pull.image != image.pull_name)
        try:
            self._write(_Book(tuple(sorted(self.pulled())), pulls))
        except OSError as error:
            log.warning("the end of a pull could not be written down", image=image.pull_name, why=str(error))

    def pulled(self) -> frozenset[str]:
        found = set(self._book.pulled)
        for pull in self._book.pulls:
            digest = self._home.digest_of(parse(pull.image))
            if digest is not None and digest not in pull.known:
                found.add(digest)
        return frozenset(found)

    def forget_gone(self) -> None:
        """Forget what the store no longer holds: if it comes back by another hand, it is not ours.

        The store is read here: in a list from a moment ago the pull that ended since would be missing, and be forgotten.
        """
        here = {image.name for image in self._home.images()}
        kept = tuple(name for name in self._book.pulled if name in here)
        if kept != self._book.pulled:
            self._write(_Book(kept, self._book.pulls))

    def _write(self, book: _Book) -> None:
        self._files.write(self._path, msgspec.json.encode(book))
        self._book = book

    def _read(self) -> _Book:
        try:
            book = msgspec.json.decode(self._path.read_bytes(), type=_Book)
            for pull in book.pulls:
                parse(pull.image)
        except FileNotFoundError:
            return _Book()
        except Exception as error:  # whatever stands there, the agent must start; it then deletes fewer images, not more
            aside = self._path.with_name(LEDGER_FILE + SET_ASIDE_SUFFIX)
            self._files.move(self._path, aside)
            log.error("the ledger of pulled images cannot be read and was set aside", file=str(aside), why=str(error))
            return _Book()
        return book
