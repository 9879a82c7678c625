"""The folder on the host where operators ask for screens and find them: `requests/` and `state/`, for the agent's user only.

A state file says where a screen can be seen, never how to get in. It speaks of a relay of this agent, so those that an earlier
one left are removed at the start. A note that cannot be written or removed is told, and holds up nothing.
"""

from pathlib import Path

import msgspec

from applecart.api.meta import Key
from applecart.errors import BadInput
from applecart.kubelet.screen.request import Shown, file_stem, timestamp
from applecart.observe.logs import logger
from applecart.tart.files import Files

log = logger(__name__)


class ControlFolder:
    def __init__(self, folder: Path, files: Files) -> None:
        """Raises BadInput when it cannot be made."""
        self.requests = folder / "requests"
        self._state = folder / "state"
        self._files = files
        try:
            for part in (folder, self.requests, self._state):
                files.make_folder(part)
            for stale in sorted(self._state.glob("*.json")):
                files.remove(stale)
        except OSError as error:
            raise BadInput(
                f"the folder {folder} for screens cannot be used ({error.strerror}); make it for the agent's user, or switch "
                "screens off with an empty --vnc-control-dir"
            ) from None

    def note(self, pod: Key, vm: str, shown: Shown) -> None:
        state = {
            "pod": str(pod),
            "vm_name": vm,
            "relay_url": f"vnc://{_bracketed(shown.host)}:{shown.port}",
            "relay_host": shown.host,
            "relay_port": shown.port,
            "updated_at": timestamp(shown.ready_at),
        }
        try:
            self._files.write(self._file(pod), msgspec.json.encode(state))
        except OSError as error:
            log.warning("where a screen can be seen was not noted", object=pod, exc_info=error)

    def forget(self, pod: Key) -> None:
        try:
            self._files.remove(self._file(pod))
        except OSError as error:
            log.warning("a note about a screen stays", object=pod, exc_info=error)

    def _file(self, pod: Key) -> Path:
        return self._state / f"{file_stem(pod)}.json"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
