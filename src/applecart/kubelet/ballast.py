"""Room on the disk that is given up when nothing else is left, so that what makes room can still be written down.

A VM may go only once its end is in the journal, and on a disk that the VM filled there is no block left for that. The ballast
is a plain file; it is taken again as soon as there is room. It never stops anything: a host too full for it works without.
"""

from pathlib import Path

from applecart.observe.logs import logger
from applecart.tart.files import Files

BALLAST_FILE = "ballast"
_LINE = b"Room for the journal of tart-kubelet on a full disk.\n"
_CONTENT = _LINE * ((1 << 20) // len(_LINE))  # some hundred entries; written out, because a hole would take no room

log = logger(__name__)


class Ballast:
    def __init__(self, folder: Path, files: Files) -> None:
        self._path = folder / BALLAST_FILE
        self._files = files
        self._is_taken = self._path.exists()
        self.take()

    def take(self) -> None:
        """Harmless when it is there, and when there is no room for it."""
        if self._is_taken:
            return
        try:
            self._files.write(self._path, _CONTENT)
        except OSError as error:
            log.debug("there is no room for the ballast", path=str(self._path), why=str(error))
        else:
            self._is_taken = True

    def drop(self) -> bool:
        """Whether there is more room now."""
        was_taken, self._is_taken = self._is_taken, False
        self._files.remove(self._path)
        return was_taken
