"""CPU and memory in use, from `ps -A -o pcpu=,rss=`: the same program on the host and in a guest. Pure.

A guest may print what it likes, so only as much is read as a machine has processes.
"""

from io import BytesIO
from itertools import islice

import msgspec

PS = ("/bin/ps", "-A", "-o", "pcpu=,rss=")
LARGEST = (1 << 63) - 1  # of a quantity
MOST_PERCENT = 1e6  # of one process: ten thousand cores
MOST_PROCESSES = 8192  # macOS allows a few thousand
LONGEST_LINE_BYTES = 64
MOST_DIGITS = 15  # of the KiB of one process: an exabyte


class Usage(msgspec.Struct, frozen=True):
    cpu_nanocores: int
    memory_bytes: int


def read_usage(printed: bytes) -> Usage | None:
    """The sum over all processes; None when there is not one line that makes sense. A decimal comma is one of a locale."""
    percent, kibibytes, lines = 0.0, 0, 0
    for line in islice(BytesIO(printed), MOST_PROCESSES):
        words = line.replace(b",", b".").split() if len(line) <= LONGEST_LINE_BYTES else []
        if len(words) != 2 or not words[1].isdigit():
            continue
        try:
            share = float(words[0])
        except ValueError:
            continue
        if not 0 <= share <= MOST_PERCENT or len(words[1]) > MOST_DIGITS:
            continue
        percent += share
        kibibytes += int(words[1])
        lines += 1
    if not lines:
        return None
    return Usage(min(round(percent * 1e7), LARGEST), min(kibibytes * 1024, LARGEST))
