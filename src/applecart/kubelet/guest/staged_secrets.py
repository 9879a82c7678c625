"""What a guest was given and nobody else may see, known to `redact` for as long as this object lives (I9).

What was staged for a guest is long forgotten here when the guest prints it: hours later, or to another agent. So it is read
again from where it was staged. The token there is replaced while the guest runs; every one that was seen stays known.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from applecart.kubelet.guest.env_file import read_env_file
from applecart.secrets import Secret

ENV_FILE = "tuist.env"
TOKEN_FILE = "sa_token"


class StagedSecrets:
    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """Of the variables with these names, and of the token."""
        self._folder = folder
        self._known = {Secret(value) for value in self._variables(names)}
        self.look()

    def look(self) -> None:
        """Also at the token of now. Once the folder is gone, what was known stays known."""
        with suppress(OSError):
            self._known.add(Secret((self._folder / TOKEN_FILE).read_text("utf-8", "replace")))

    def _variables(self, names: Iterable[str]) -> Iterator[str]:
        with suppress(OSError):
            values = read_env_file((self._folder / ENV_FILE).read_bytes())
            yield from (values[name] for name in names if name in values)
