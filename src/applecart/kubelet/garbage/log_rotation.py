"""Cutting a log that its writer holds open.

`tart run` appends to the file as long as its VM lives, and would go on writing into a renamed or replaced one. So the end is
copied aside and the file itself is emptied: an appending writer goes on at its new beginning. What is written between the two
is lost, which is cheaper than a full disk.
"""

import os
import stat
from pathlib import Path

from applecart.tart.files import Files

KEPT_BYTES = 4 << 20  # the end of a log that ran wild: enough to see how it ended


def rotate(log: Path, older: Path, files: Files) -> None:
    handle = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return
        tail = os.pread(handle, KEPT_BYTES, max(0, about.st_size - KEPT_BYTES))
        files.write(older, tail)
    finally:
        os.close(handle)
    files.empty(log)
