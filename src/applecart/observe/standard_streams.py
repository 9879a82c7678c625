"""Standard input, output and errors that whoever started us has closed.

The next file to be opened would get the number of the closed one, and what is printed would be written into it: a database, a
socket. Python has no stream at all in its place.
"""

import os
import sys


def replace_closed_streams() -> None:
    """What is closed is /dev/null from now on."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            os.set_inheritable(opened, True)  # or the first file of a child would get it
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
