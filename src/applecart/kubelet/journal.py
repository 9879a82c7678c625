"""The agent's memory on disk: one folder per Pod, `<state>/pods/<uid>/entry.json`, and its run folders beside it.

Writing is durable before it returns. On a full disk the end of a Pod can still be written, at the cost of the ballast, because
what comes after it frees the disk; everything else waits, and the error says which folder has no room. A file that cannot be
read (a full disk cut it, a person edited it) is set aside and told, never guessed at: the Pod is then treated as one the agent
never met, and the mark in its VM decides.
"""

import errno
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from applecart.errors import Transient
from applecart.kubelet.ballast import Ballast
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.observe.logs import logger
from applecart.tart.files import Files

ENTRY_FILE = "entry.json"
SET_ASIDE = "unreadable-"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")  # becomes a folder's name, so nothing else may

log = logger(__name__)
_decode = msgspec.json.Decoder(JournalEntry).decode
_encode = msgspec.json.Encoder().encode


class JournalFull(Transient, OSError):
    """There is no room for an entry. Also an OSError, as of any write that failed for this reason."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = errno.ENOSPC


class Journal:
    def __init__(self, state: Path, files: Files) -> None:
        self._folder = state / "pods"
        self._files = files
        self._entries: dict[str, JournalEntry] = {}
        files.make_folder(self._folder)
        for found in sorted(self._folder.iterdir()):
            self._read(found)
        self._ballast = Ballast(state, files)

    def __iter__(self) -> Iterator[JournalEntry]:
        return iter(list(self._entries.values()))

    def get(self, uid: str) -> JournalEntry | None:
        return self._entries.get(uid)

    def write(self, entry: JournalEntry) -> JournalEntry:
        if self._entries.get(entry.uid) == entry:
            return entry
        try:
            self._store(entry)
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            if not _leads_to_room(entry) or not self._ballast.drop():
                raise self._full(entry) from None
            self._store_without_ballast(entry)
        self._entries[entry.uid] = entry
        self._ballast.take()
        return entry

    def forget(self, uid: str) -> None:
        """The Pod is gone and nothing of it is left."""
        self._files.remove(self.folder(uid))
        self._entries.pop(uid, None)

    def folder(self, uid: str) -> Path:
        if not _UID.fullmatch(uid):
            raise ValueError(f"{uid!r} is not the uid of a Pod")
        return self._folder / uid

    def run_folder(self, entry: JournalEntry) -> Path:
        return self.folder(entry.uid) / f"run-{entry.run}"

    def _store_without_ballast(self, entry: JournalEntry) -> None:
        log.warning("the disk is full: the ballast was given up to write down the end of a Pod", object=entry.key)
        try:
            self._store(entry)
        except OSError as error:
            raise (self._full(entry) if error.errno in _DISK_FULL else error) from None

    def _store(self, entry: JournalEntry) -> None:
        folder = self.folder(entry.uid)
        if not folder.is_dir():  # a new Pod, or somebody removed it: that must not keep the end of a Pod from being told
            self._files.make_folder(folder)
        self._files.write(folder / ENTRY_FILE, _encode(entry))

    def _full(self, entry: JournalEntry) -> JournalFull:
        return JournalFull(
            f"the disk with {self._folder} is full, so what becomes of Pod {entry.key} cannot be written down and it waits; "
            "free some space there, for example by deleting VMs and images that nobody needs"
        )

    def _read(self, folder: Path) -> None:
        file = folder / ENTRY_FILE
        if folder.name.startswith(SET_ASIDE) or not folder.is_dir():
            return
        try:
            entry = _decode(file.read_bytes())
            if entry.uid != folder.name:
                raise msgspec.ValidationError(f"it is about Pod uid {entry.uid}")
        except FileNotFoundError:
            self._files.remove(folder)  # an agent died before its first entry: nothing was made yet
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            aside = folder.with_name(SET_ASIDE + folder.name)
            self._files.remove(aside)
            self._files.move(folder, aside)
            log.error("a journal entry cannot be read and was set aside", folder=str(aside), why=str(error))
        else:
            self._entries[entry.uid] = entry


def _leads_to_room(entry: JournalEntry) -> bool:
    """Whether the VM may go once this is written."""
    return entry.exit is not None or entry.stage is Stage.REMOVED
