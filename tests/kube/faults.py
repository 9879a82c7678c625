"""A network that misbehaves on purpose, between a client and any transport, on the loop's time.

A `Plan` decides per request which fault strikes, if any. `sever`, `end` and `freeze` strike the streams that are already open.
A fault that makes sense for streams only (a cut after so many bytes) strikes a plain call at its answer: the server did the
work and the client does not learn it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random

import msgspec

from applecart.embedded.refusals import Refusal
from applecart.errors import DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.transport import JSON, Request, Response, Stream, Transport
from tests.virtual_time import elapse

REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


class Fault(msgspec.Struct, frozen=True, tag=True):
    """Something that goes wrong with one request."""


class Refused(Fault, frozen=True):
    """No connection: the request surely did nothing."""


class Lost(Fault, frozen=True):
    """The request was carried out and its answer did not come back."""


class Slow(Fault, frozen=True):
    """The request arrives late."""

    by_s: float


class Late(Fault, frozen=True):
    """The request is carried out at once and its answer takes a while: watches overtake it."""

    by_s: float


class Hung(Fault, frozen=True):
    """Nothing happens until the deadline."""


class Says(Fault, frozen=True):
    """The server answers this status instead of doing anything."""

    status: int
    retry_after_s: int | None = None


class StreamFault(Fault, frozen=True):
    after_bytes: int = 0


class Cut(StreamFault, frozen=True):
    """The connection breaks."""


class Ends(StreamFault, frozen=True):
    """The body ends as if it were complete."""


class Stalls(StreamFault, frozen=True):
    """The connection stays open and nothing comes any more."""


class Repeats(StreamFault, frozen=True):
    """The last bytes come twice."""

    count_bytes: int = 1


class RepeatsLines(StreamFault, frozen=True):
    """Whole lines come again: the ones before the place, once the line that is on its way there is complete."""

    count_lines: int = 1


class LosesLine(StreamFault, frozen=True):
    """A whole line never comes, and nobody says so: the first one that begins after so many bytes."""


Plan = Callable[[Request], Fault | None]


def in_turn(faults: Iterable[Fault | None]) -> Plan:
    """One entry per request; after the last one all is well."""
    left: Iterator[Fault | None] = iter(faults)
    return lambda _request: next(left, None)


def always(fault: Fault) -> Plan:
    return lambda _request: fault


class FaultyTransport:
    def __init__(self, inner: Transport, plan: Plan | None = None) -> None:
        self.plan = plan
        self.calls: list[Request] = []  # what the client tried, in order
        self.called_at_s: list[float] = []  # when, on the loop's time
        self._inner = inner
        self._streams: dict[FaultyStream, None] = {}  # in the order in which they were opened

    def heal(self) -> None:
        """No more faults. Streams that stalled stay so: nobody tells a client that its connection died."""
        self.plan = None

    def sever(self) -> None:
        """Break every open stream."""
        self._strike(Cut())

    def end(self) -> None:
        """End every open stream as if it were complete."""
        self._strike(Ends())

    def freeze(self) -> None:
        """Let nothing more through any open stream."""
        self._strike(Stalls())

    def _strike(self, fault: StreamFault) -> None:
        for stream in tuple(self._streams):
            stream.strike(fault)
        self._streams.clear()

    async def send(self, request: Request) -> Response:
        match self._fault_for(request):
            case Refused():
                raise NeverSent(f"{request}: connection refused")
            case Hung() | Stalls():
                await self._until_deadline(request, request.deadline_s)
            case Slow(by_s):
                await self._until_deadline(request, by_s)
            case Late(by_s):
                response = await self._inner.send(request)
                await self._until_deadline(request, by_s)
                return response
            case Says(status, retry_after_s):
                return refusal(status, retry_after_s)
            case Lost() | StreamFault():
                await self._inner.send(request)
                raise Unreachable(f"{request}: connection reset while waiting for the answer")
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        strikes: StreamFault | None = None
        match self._fault_for(request):
            case Refused():
                raise NeverSent(f"{request}: connection refused")
            case Lost():
                raise Unreachable(f"{request}: connection reset while waiting for the answer")
            case Hung():
                await self._until_deadline(request, request.deadline_s)
            case Slow(by_s) | Late(by_s):
                await self._until_deadline(request, by_s)
            case Says(status, retry_after_s):
                return Whole(refusal(status, retry_after_s))
            case StreamFault() as fault:
                strikes = fault
        stream = FaultyStream(await self._inner.open(request), strikes)
        self._streams[stream] = None
        return stream

    async def aclose(self) -> None:
        self.sever()
        await self._inner.aclose()

    def _fault_for(self, request: Request) -> Fault | None:
        self.calls.append(request)
        self.called_at_s.append(asyncio.get_running_loop().time())
        return self.plan(request) if self.plan else None

    async def _until_deadline(self, request: Request, wait_s: float) -> None:
        await elapse(min(wait_s, request.deadline_s))
        if wait_s >= request.deadline_s:
            raise DeadlineExceeded(f"{request}: no answer within {request.patience}")


class FaultyStream:
    """A stream that is struck after so many bytes, or whenever `strike` says."""

    def __init__(self, inner: Stream, fault: StreamFault | None) -> None:
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self._inner = inner
        self._fault = fault
        self._left_bytes = fault.after_bytes if fault else 0
        self._seen = b""
        self._struck: asyncio.Future[StreamFault] = asyncio.get_running_loop().create_future()

    def strike(self, fault: StreamFault) -> None:
        if not self._struck.done():
            self._struck.set_result(fault)

    async def read(self) -> bytes:
        if self._fault and not self._left_bytes and not isinstance(self._fault, Repeats | RepeatsLines | LosesLine):
            self.strike(self._fault)
        if self._struck.done():
            return await self._suffer(self._struck.result())
        reading = asyncio.ensure_future(self._inner.read())
        try:
            await asyncio.wait((reading, self._struck), return_when=asyncio.FIRST_COMPLETED)
            if self._struck.done():
                return await self._suffer(self._struck.result())
            chunk = reading.result()
            return self._let_through(chunk) or (await self.read() if chunk else b"")
        finally:
            reading.cancel()

    async def aclose(self) -> None:
        self.strike(Cut())
        await self._inner.aclose()

    def _let_through(self, chunk: bytes) -> bytes:
        if self._fault is None:
            return chunk
        if isinstance(self._fault, RepeatsLines):
            return self._with_lines_again(chunk, self._fault)
        if isinstance(self._fault, LosesLine):
            return self._without_line(chunk, self._fault)
        if len(chunk) < self._left_bytes:
            self._left_bytes -= len(chunk)
            self._seen += chunk
            return chunk
        passed, self._left_bytes = chunk[: self._left_bytes], 0
        if isinstance(self._fault, Repeats):
            again = (self._seen + passed)[-self._fault.count_bytes :]
            rest, self._fault = chunk[len(passed) :], None
            return passed + again + rest
        return passed

    def _with_lines_again(self, chunk: bytes, fault: RepeatsLines) -> bytes:
        self._seen += chunk
        end = self._seen.find(b"\n", fault.after_bytes) + 1
        if not end:
            return chunk
        self._fault = None
        lines = self._seen[:end].splitlines(keepends=True)
        rest_bytes = len(self._seen) - end
        return chunk[: len(chunk) - rest_bytes] + b"".join(lines[-fault.count_lines :]) + chunk[len(chunk) - rest_bytes :]

    def _without_line(self, chunk: bytes, fault: LosesLine) -> bytes:
        passed_bytes = len(self._seen)
        self._seen += chunk
        begin = self._seen.find(b"\n", fault.after_bytes) + 1
        end = self._seen.find(b"\n", begin) + 1
        if not begin:
            return chunk
        if end:
            self._fault = None
        return chunk[: max(begin - passed_bytes, 0)] + (self._seen[max(end, passed_bytes) :] if end else b"")

    async def _suffer(self, fault: StreamFault) -> bytes:
        if isinstance(fault, Ends):
            return b""
        if isinstance(fault, Stalls):
            await asyncio.get_running_loop().create_future()
        raise Unreachable("the connection was reset")


class LaggingStream:
    """A stream that is behind by one of these whiles, each time it brings something."""

    def __init__(self, inner: Stream, lags_s: Sequence[float], chance: Random) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._lags_s, self._chance = inner, lags_s, chance

    async def read(self) -> bytes:
        chunk = await self._inner.read()
        await elapse(self._chance.choice(self._lags_s))
        return chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class Whole:
    """A refusal as a stream."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._rest = response.body

    async def read(self) -> bytes:
        chunk, self._rest = self._rest, b""
        return chunk

    async def aclose(self) -> None:
        self._rest = b""


def refusal(status: int, retry_after_s: int | None = None) -> Response:
    headers = {"retry-after": str(retry_after_s)} if retry_after_s is not None else {}
    document = Refusal(status, REASONS.get(status, ""), "the network says so").document()
    return Response(status, msgspec.json.encode(document), {"content-type": JSON, **headers})
