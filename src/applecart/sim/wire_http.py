"""Just enough HTTP/1.1 for a proxy that looks at requests and never at answers."""

import asyncio
from http import HTTPStatus

import msgspec

HOP_HEADERS = ("connection", "host", "keep-alive", "proxy-connection")
REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Head(msgspec.Struct, frozen=True):
    """The start of a request."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    @property
    def body_bytes(self) -> int:
        return next((int(value) for name, value in self.headers if name.lower() == "content-length"), 0)

    def for_upstream(self, address: str) -> bytes:
        """The same request, over a connection that ends with its answer: its end then needs no parsing."""
        kept = [(name, value) for name, value in self.headers if name.lower() not in HOP_HEADERS]
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {address}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in kept]
        return "\r\n".join((*lines, "", "")).encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next request, None when the client has no more."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *rest = raw.decode("latin-1").split("\r\n")[:-2]
    method, _, target = first.partition(" ")
    pairs = (line.partition(":") for line in rest)
    return Head(method, target.rpartition(" ")[0], tuple((name, value.strip()) for name, _, value in pairs))


async def read_body(reader: asyncio.StreamReader, head: Head) -> bytes:
    return await reader.readexactly(head.body_bytes)


def canned_answer(status: int, retry_after_s: int | None = None) -> bytes:
    """An API server's refusal."""
    reason = REASONS.get(status, "")
    body = msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "message": "the network between us says so",
            "code": status,
        }
    )
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "Content-Type: application/json", "Connection: close"]
    lines.append(f"Content-Length: {len(body)}")
    if retry_after_s is not None:
        lines.append(f"Retry-After: {retry_after_s}")
    return "\r\n".join((*lines, "", "")).encode() + body
