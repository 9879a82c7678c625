"""The folders a guest sees: `env`, which it only reads, and `status`, through which it reports its end.

Both are always there, whatever else a VM gets: without `status` no guest could say how its job went. They are made anew for
every VM, because what an earlier VM of the same name left in `status` would be taken for the end of this one. Once the guest
runs, `status` is the guest's: this module then replaces single files in it and reads none (`guest_files.py` does).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from applecart.errors import BadInput
from applecart.kubelet.guest.env_file import env_file
from applecart.kubelet.guest.expansion import Value
from applecart.kubelet.guest.staged_secrets import ENV_FILE, TOKEN_FILE, StagedSecrets
from applecart.secrets import Secret
from applecart.tart.files import Files
from applecart.tart.run_options import Share

STATUS_FOLDER = "status"
NODE_NAME_FILE = "node-name"
STATUS_MODE = 0o777  # the guest's user is another one than ours
STATUS_FILE_MODE = 0o644
_WORDS_OF_TART = ":,"  # what ends a path in `--dir name:path:options`


class GuestShare:
    def __init__(self, userdata: Path, vm: str, files: Files) -> None:
        if Path(vm).name != vm or vm in ("", ".", ".."):
            raise ValueError(f"{vm!r} is not the name of a VM")
        if any(word in str(userdata) for word in _WORDS_OF_TART):
            raise BadInput(f"--userdata-dir {userdata} cannot be shared with guests: use a path without ':' and ','")
        self._userdata = userdata
        self._files = files
        self._tokens: list[Secret] = []  # those written through this object: masked for as long as it is used
        self.folder = userdata / vm
        self.status_folder = self.folder / STATUS_FOLDER

    def stage(self, values: Mapping[str, Value], node: str) -> None:
        """Everything but the token, for a VM that was never started; whatever lay there before is gone. What a guest filled is
        better removed before, beside the event loop."""
        content = env_file(values)
        self._files.remove(self.folder)
        if not self._userdata.is_dir():
            self._files.make_folder(self._userdata)
        self._files.make_folder(self.folder)
        self._files.write(self.folder / ENV_FILE, content)
        self._files.make_folder(self.status_folder, STATUS_MODE)
        self.tell(NODE_NAME_FILE, node.encode())

    def write_token(self, token: Secret) -> None:
        """A reader in the guest sees the old one or the new one, whole."""
        self._tokens.append(token)
        self._files.write(self.folder / TOKEN_FILE, token.reveal().encode())

    @contextmanager
    def masked(self, names: Iterable[str]) -> Iterator[None]:
        """Whatever is logged, recorded or shown in the block shows neither these variables nor the token: a guest may have
        printed them (I9)."""
        secrets = StagedSecrets(self.folder, names)
        yield
        del secrets

    def tell(self, name: str, data: bytes) -> None:
        """A file for the guest in the folder it may write to; it replaces whatever the guest made of that name."""
        self._files.write(self.status_folder / name, data, STATUS_FILE_MODE)

    def shares(self) -> tuple[Share, ...]:
        return (Share("env", self.folder), Share(STATUS_FOLDER, self.status_folder, read_only=False))

    async def remove(self) -> None:
        await self._files.remove_aside(self.folder)
