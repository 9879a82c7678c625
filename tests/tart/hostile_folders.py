"""Folders as a guest may leave them, and an agent that has no more rights and means than it has on a host."""

import inspect
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

DEEP = 200
SPARE_HANDLES = 16
SPARE_FRAMES = 100
NOBODY = 65534


@contextmanager
def as_ordinary_user(folder: Path) -> Iterator[Path]:
    """In a folder of its own, as the agent is on a host: root may do anything, also what is forbidden."""
    is_root = os.geteuid() == 0
    with chdir(folder):  # its parents may be closed to this user
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path()
        finally:
            if is_root:
                os.seteuid(0)


def nest(top: Path, depth: int, name: str = "d") -> None:
    """Folders in folders, one by one: their path is longer than any call takes."""
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@contextmanager
def few_handles_and_frames() -> Iterator[None]:
    """Makes of those folders what thousands are elsewhere, which would take a test seconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/dev/fd"))
    frames = sys.getrecursionlimit()
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + SPARE_HANDLES, hard))
    sys.setrecursionlimit(len(inspect.stack(0)) + SPARE_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(frames)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
