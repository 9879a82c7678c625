"""Goldens being made: `<state>/goldens/<vm>.json`, written before the clone and removed after the mark.

A clone and its mark are two steps. An agent that dies between them leaves a VM without a mark, which would be somebody else's
for ever; the intent says that it is ours (I3). Reading never fails: an intent that cannot be read proves nothing and is
removed.
"""

from datetime import datetime
from pathlib import Path

import msgspec

from applecart.api.names import golden_vm, is_golden_vm
from applecart.errors import Permanent
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.images import parse

SUFFIX = ".json"

log = logger(__name__)


class Intent(msgspec.Struct, frozen=True):
    digest: str  # repository@sha256:... that is cloned
    image: str  # as the Pod spells it
    began_at: datetime

    @property
    def vm(self) -> str:
        return golden_vm(self.digest)


class Intents:
    def __init__(self, state: Path, files: Files) -> None:
        self._folder = state / "goldens"
        self._files = files
        files.make_folder(self._folder)

    def write(self, intent: Intent) -> None:
        self._files.write(self._path(intent.vm), msgspec.json.encode(intent))

    def remove(self, vm: str) -> None:
        self._files.remove(self._path(vm))

    def get(self, vm: str) -> Intent | None:
        try:
            intent = msgspec.json.decode(self._path(vm).read_bytes(), type=Intent)
            return intent if parse(intent.image) and parse(intent.digest).digest and intent.vm == vm else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, Permanent):
            return None

    def all(self) -> list[Intent]:
        found = []
        for path in sorted(self._folder.iterdir()):
            vm = path.name.removesuffix(SUFFIX)
            if (intent := self.get(vm) if is_golden_vm(vm) else None) is not None:
                found.append(intent)
            else:
                log.warning("an intent to make a golden cannot be read and was removed", file=str(path))
                self._files.remove(path)
        return found

    def _path(self, vm: str) -> Path:
        return self._folder / f"{vm}{SUFFIX}"
