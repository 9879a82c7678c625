"""Files that only their owner may read.

Keys and kubeconfigs are written through here. The file is never readable by others, not even for the moment between its
creation and a chmod, and a reader sees the old content or the new one, never half of it.
"""

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Put content at path with mode 0600, replacing what was there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def make_private_folder(path: Path) -> None:
    """A folder that only its owner may enter; one that exists is narrowed."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
