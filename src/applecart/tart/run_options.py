"""How a VM is run, as words of `tart run`. Pure.

Wrong words here once stopped every VM of a fleet at its start, so they are exact: a share is never given `:rw` (Tart knows only
`:ro`), and caching is an option of the root disk. `CI=1` makes Tart print a VNC address instead of opening a viewer.
"""

from pathlib import Path

import msgspec

from applecart.errors import BadInput

ROOT_DISK_OPTIONS = "caching=cached"  # measured by others: warm reads nearly twice as fast, and nothing lost with one-job VMs


class Share(msgspec.Struct, frozen=True):
    """A folder of the host that the guest sees as `/Volumes/My Shared Files/<name>`."""

    name: str
    path: Path
    read_only: bool = True

    @property
    def word(self) -> str:
        if not self.name or ":" in self.name or ":" in str(self.path):
            raise BadInput(f"the share {self.name!r} of {self.path} cannot be named to Tart: a colon separates its parts")
        return f"{self.name}:{self.path}" + (":ro" if self.read_only else "")


class RunOptions(msgspec.Struct, frozen=True):
    shares: tuple[Share, ...] = ()
    is_vnc: bool = False

    def words(self) -> list[str]:
        screen = ["--vnc-experimental", "--graphics"] if self.is_vnc else ["--no-graphics"]
        shares = [word for share in self.shares for word in ("--dir", share.word)]
        return [*screen, "--root-disk-opts", ROOT_DISK_OPTIONS, *shares]

    def environment(self) -> dict[str, str]:
        return {"CI": "1"} if self.is_vnc else {}
