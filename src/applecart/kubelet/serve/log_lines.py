"""Lines of a log: cut out of what was read, chosen, cleaned of what nobody may see (I9). Pure.

A secret is recognised only in one piece, so a line is cleaned before it is shown, and before it is cut when it is too long.
Lines carry no time of their own: theirs is when they were first seen.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from applecart.kubelet.guest.guest_files import LONGEST_SECRET_BYTES
from applecart.kubelet.guest.printed import fit_to_show

LONGEST_LINE_BYTES = 64 << 10
BLOCK_BYTES = 64 << 10  # read at once


class LineCutter:
    """Bytes in, lines out, cleaned and each with its end."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_inside_line = False

    def begin_inside_a_line(self) -> None:
        """The next bytes are from the middle of a line: what is left of it, perhaps half a secret, is dropped."""
        self._rest = b""
        self._is_inside_line = True

    def feed(self, data: bytes) -> list[bytes]:
        if self._is_inside_line:
            _, end, data = data.partition(b"\n")
            self._is_inside_line = not end
        *whole, self._rest = (self._rest + data).split(b"\n")
        lines = [piece for line in whole for piece in _pieces(cleaned(line))]
        # An endless line is cut only when what follows the cut would show a secret that crosses it. Masks are shorter than what
        # they hide, and the end of what came so far may be half a secret.
        if len(self._rest) > LONGEST_LINE_BYTES + LONGEST_SECRET_BYTES:
            self._rest = cleaned(self._rest)
            cut = min(LONGEST_LINE_BYTES, len(self._rest) - LONGEST_SECRET_BYTES)
            if cut > 0:
                lines.append(self._rest[:cut] + b"\n")
                self._rest = self._rest[cut:]
        return lines

    def rest(self) -> list[bytes]:
        """What was begun and not ended; it gets the end of a line."""
        rest, self._rest = self._rest, b""
        return _pieces(cleaned(rest)) if rest else []


def _pieces(line: bytes) -> list[bytes]:
    cuts = range(0, max(len(line), 1), LONGEST_LINE_BYTES)
    return [line[cut : cut + LONGEST_LINE_BYTES] + b"\n" for cut in cuts]


def cleaned(line: bytes) -> bytes:
    return fit_to_show(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def stamped(line: bytes, at: datetime) -> bytes:
    """As a kubelet writes it: nanoseconds, UTC."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode() + line


def last_lines_start(read: Callable[[int, int], bytes], begin: int, end: int, lines: int) -> tuple[int, int]:
    """Where the last `lines` lines between two positions begin, and how many there are. Reads from the end, in blocks."""
    if lines <= 0 or end <= begin:
        return end, 0
    found = 0
    position = end
    last = end - 1  # a line that ends here begins no other
    while position > begin:
        start = max(begin, position - BLOCK_BYTES)
        block = read(start, position - start)[: last - start]
        ends = block.count(b"\n")
        if found + ends >= lines:
            at = len(block)
            for _ in range(lines - found):
                at = block.rfind(b"\n", 0, at)
            return start + at + 1, lines
        found += ends
        position = start
    return begin, found + 1


def starts(
    logs: Sequence[tuple[Callable[[int, int], bytes], int, int]], tail_lines: int | None, is_wanted: Sequence[bool]
) -> list[int]:
    """Where to begin in each log (`read`, first and last position) so that together they show the last lines."""
    begins = [begin if wanted else end for (_, begin, end), wanted in zip(logs, is_wanted, strict=True)]
    if tail_lines is None:
        return begins
    left = tail_lines
    for index in reversed(range(len(logs))):
        read, _, end = logs[index]
        begins[index], found = last_lines_start(read, begins[index], end, left)
        left -= found
    return begins
