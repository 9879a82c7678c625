"""Run a command while no other one runs under the same lock: `python tools/alone.py LOCK COMMAND...`

Of two makes at once only one makes the environment, and the other waits. The lock is the command's and of what it started: it
ends with the last of them, however that ends.
"""

import fcntl
import os
import signal
import sys


def main(file: str, *command: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever waits may give up without a traceback
    lock = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"waiting for another make, which works in {os.path.dirname(file)}\n")
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
