"""Becomes another program that does not outlive the process which asked for it.

Run as a file: `python die_with_parent.py PARENT_PID PROGRAM ARGUMENT...`. On Linux the kernel is told to kill this process
when its parent is gone, however the parent went; then this process becomes PROGRAM, which keeps that promise. Elsewhere it
only becomes PROGRAM. A fork hook in the parent would do the same, but can deadlock a parent that has threads.

Imports only what it needs: it runs once before every start of a program.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from Linux's sys/prctl.h
NOT_STARTED = 127  # what a shell answers when a program cannot be run


def main() -> None:
    parent, program, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):  # it was gone before the kernel knew
            sys.exit(NOT_STARTED)
    try:
        os.execv(program, [program, *arguments])
    except OSError as error:
        sys.exit(f"{program} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
