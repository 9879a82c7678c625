"""Small shell programs in the place of etcd and its like, each with one way to misbehave."""

import os
from pathlib import Path

NEVER_READY = "exec sleep 1000"
# What comes out of the pipe is the id of a second process, and says that the trap is set for both.
DEAF = "trap '' TERM; sleep 1000 & echo $! > {pipe}; while :; do wait; done"


def put_program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def named_pipe(path: Path) -> Path:
    """Reading it waits until a program has written to it."""
    os.mkfifo(path)
    return path


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
