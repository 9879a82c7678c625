"""What a bad network does to one request, and who decides it.

Plain values: a `Fault` says what happens, a `Plan` picks one per request. Offsets count the bytes of the answer as they go over
the wire, its head included. A `RandomPlan` draws everything from one seed, so the same requests meet the same faults.
"""

import random
from collections.abc import Callable, Iterable, Iterator

import msgspec

LONGEST_OFFSET_BYTES = 1 << 14  # beyond the first page of a list and the first dozens of watch events
STATUSES = (409, 410, 429, 500, 503)


class RequestLine(msgspec.Struct, frozen=True):
    """What the proxy knows of a request when it decides."""

    number: int  # of this proxy, from 1
    method: str
    target: str  # path and query

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.target

    def __str__(self) -> str:
        """Without the query: it is long, and nobody looks for it."""
        return f"#{self.number} {'WATCH' if self.is_watch else self.method} {self.target.partition('?')[0]}"


class Fault(msgspec.Struct, frozen=True):
    """Something that happens to one request or its answer."""


class Answer(Fault, frozen=True):
    """Answer this status and do not forward."""

    status: int
    retry_after_s: int | None = None


class Delay(Fault, frozen=True):
    """Forward nothing until released."""


class LoseAnswer(Fault, frozen=True):
    """Forward, wait until the server answers, then reset the connection instead of handing the answer on."""


class AnswerFault(Fault, frozen=True):
    """Strikes inside the answer."""

    after_bytes: int = 0


class Cut(AnswerFault, frozen=True):
    """Reset the connection (RST)."""


class HalfClose(AnswerFault, frozen=True):
    """End our direction (FIN) as if the answer were complete."""


class Stall(AnswerFault, frozen=True):
    """Hand on nothing more until released, or until a side gives up."""


class Duplicate(AnswerFault, frozen=True):
    """Send the last bytes again, then go on."""

    count_bytes: int = 1


Plan = Callable[[RequestLine], Fault | None]


def in_turn(faults: Iterable[Fault | None]) -> Plan:
    """One entry per request; after the last one all is well."""
    left: Iterator[Fault | None] = iter(faults)
    return lambda _line: next(left, None)


class RandomPlan:
    """Strikes a share of the requests with faults drawn from a seed."""

    def __init__(self, seed: int, share: float = 0.5, kinds: Iterable[type[Fault]] | None = None) -> None:
        self._chance = random.Random(seed)
        self._share = share
        self._kinds = tuple(kinds or (Answer, LoseAnswer, Cut, HalfClose, Stall, Duplicate))

    def __call__(self, line: RequestLine) -> Fault | None:
        return draw_fault(self._chance, self._kinds) if self._chance.random() < self._share else None


def draw_fault(chance: random.Random, kinds: tuple[type[Fault], ...]) -> Fault:
    kind = chance.choice(kinds)
    if kind is Answer:
        return Answer(chance.choice(STATUSES), chance.choice((None, 0, 1)))
    if not issubclass(kind, AnswerFault):
        return kind()
    # Powers of two: most answers are small, and the interesting offsets are early.
    after_bytes = chance.randrange(2 ** chance.randrange(LONGEST_OFFSET_BYTES.bit_length()))
    if kind is Duplicate:
        return Duplicate(after_bytes, count_bytes=chance.randint(1, 200))
    return kind(after_bytes)


class Passage:
    """The bytes of one answer on their way past a fault."""

    def __init__(self, fault: AnswerFault | None) -> None:
        self.fault = fault
        self.struck = False  # whether the fault's place was reached
        self.held_back = b""  # what had arrived beyond that place
        self._seen = bytearray()

    def forgive(self) -> None:
        """A place that was not reached yet is no special place any more."""
        if not self.struck:
            self.fault = None

    def let_through(self, chunk: bytes) -> bytes:
        """The part of a chunk that goes on."""
        if self.fault is None or self.struck:
            return chunk
        left_bytes = self.fault.after_bytes - len(self._seen)
        self._seen += chunk[:left_bytes]
        if len(chunk) < left_bytes:
            return chunk
        self.struck = True
        before, after = chunk[:left_bytes], chunk[left_bytes:]
        if isinstance(self.fault, Duplicate):
            return before + bytes(self._seen[-self.fault.count_bytes :]) + after
        self.held_back = after
        return before
