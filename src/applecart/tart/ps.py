"""What `ps` says, as values. Pure.

The same words serve macOS and Linux. Whatever does not look like a line of ours (a command line with a newline in it) is
skipped: a process may be missing from the list, but none is invented.
"""

import re
from datetime import datetime, timedelta

from applecart.tart.mac import Process

PS_ARGV = ("ps", "-axww", "-o", "pid=,lstart=,command=")
PS_ENV = {"LC_ALL": "C", "TZ": "UTC"}  # the same instant reads the same to every agent, also after the clocks changed
STARTED = "%a %b %d %H:%M:%S %Y"
START_JITTER = timedelta(seconds=2)  # Linux computes it from the uptime, so it may differ by one between two looks
_LINE = re.compile(r"\s*(\d{1,10})\s+(\w{3}\s+\w{3}\s+\d{1,2}\s+\d\d:\d\d:\d\d\s+\d{4})\s+(\S.*)")


def parse_processes(text: str) -> list[Process]:
    found = map(_LINE.fullmatch, text.splitlines())
    return [Process(int(it[1]), normal(it[2]), it[3].rstrip()) for it in found if it]


def normal(began: str) -> str:
    """Single-digit days are padded in columns."""
    return " ".join(began.split())


def is_same_start(one: str, other: str) -> bool:
    """No two processes get the same pid within seconds, so about the same start is the same process."""
    try:
        return abs(datetime.strptime(one, STARTED) - datetime.strptime(other, STARTED)) <= START_JITTER  # noqa: DTZ007
    except ValueError:
        return one == other
