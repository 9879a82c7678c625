"""VMs being deleted: `<state>/deleting/<vm>.json`, written before the first file goes and removed after the last.

Deleting a folder is many steps, and the mark may be the first to go. Whoever is killed then leaves half a VM that nobody owns,
with most of its disk. The tombstone remembers which folder it was, by its number in the file system and not by its name: a new
VM of the same name is another folder and is left alone (I3). Every VM of ours is deleted with one.
"""

from pathlib import Path

import msgspec

from applecart.observe.logs import logger
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home, is_vm_name

SUFFIX = ".json"

log = logger(__name__)


class Tombstone(msgspec.Struct, frozen=True):
    vm: str
    folder_number: int


class Tombstones:
    def __init__(self, state: Path, home: Home, files: Files) -> None:
        self._folder = state / "deleting"
        self._home = home
        self._files = files
        files.make_folder(self._folder)

    async def delete(self, tart: Tart, vm: str) -> None:
        """Nothing of a VM of ours is left when this returns, however much of it an earlier deletion had removed."""
        self.put(vm)
        await tart.delete(vm)
        if (rest := self._home.vm(vm)) is not None and not rest.is_whole:
            self._files.remove(rest.path)  # Tart does not know it as a VM
        self.lift(vm)

    def put(self, vm: str) -> None:
        if (number := self._number(vm)) is None:
            return
        try:
            self._files.write(self._path(vm), msgspec.json.encode(Tombstone(vm, number)))
        except OSError as error:
            # A disk too full for a tombstone needs the deletion more than the record of it.
            log.warning("a deletion begins without being written down", vm=vm, why=str(error))

    def lift(self, vm: str) -> None:
        self._files.remove(self._path(vm))

    def is_rest(self, vm: str) -> bool:
        """Whether the folder of that name is one whose deletion was begun: ours, also without its mark."""
        stone = _read(self._path(vm))
        return stone is not None and stone.vm == vm and stone.folder_number == self._number(vm)

    def half_deleted(self) -> list[str]:
        """VMs whose folder is still there, without the mark it was deleted by. Forgets those that are gone."""
        found = []
        for path in sorted(self._folder.iterdir()):
            stone = _read(path)
            if stone is None or self._path(stone.vm) != path or self._number(stone.vm) != stone.folder_number:
                self._files.remove(path)  # it is gone, or another VM
            elif self._home.mark(stone.vm) is None:  # else it is judged like any other, or is being deleted right now
                found.append(stone.vm)
        return found

    def _number(self, vm: str) -> int | None:
        folder = self._home.vm(vm)
        try:
            return folder.path.lstat().st_ino if folder else None
        except OSError:
            return None

    def _path(self, vm: str) -> Path:
        return self._folder / f"{vm}{SUFFIX}"


def _read(path: Path) -> Tombstone | None:
    try:
        stone = msgspec.json.decode(path.read_bytes(), type=Tombstone)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return stone if is_vm_name(stone.vm) else None
