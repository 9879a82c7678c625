"""Tart's store, laid out by hand as Tart lays it out."""

from pathlib import Path

from applecart.tart.home import VM_FILES

DIGEST_A = "sha256:" + "a" * 64
DIGEST_B = "sha256:" + "b" * 64


def make_vm(home: Path, name: str, files: tuple[str, ...] = VM_FILES, size_bytes: int = 8192) -> Path:
    folder = home / "vms" / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_bytes(b"x" * size_bytes)
    return folder


def make_image(home: Path, repository: str, digest: str, *tags: str, is_explicit: bool = False) -> Path:
    """As Tart does it: a folder per digest, and a link by full path per tag."""
    folder = home / "cache" / "OCIs" / repository / digest
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*VM_FILES, "manifest.json"):
        (folder / file).write_bytes(b"x" * 4096)
    if is_explicit:
        (folder / ".explicitly-pulled").touch()
    for tag in tags:
        link = folder.parent / tag
        link.unlink(missing_ok=True)
        link.symlink_to(folder.absolute())
    return folder
