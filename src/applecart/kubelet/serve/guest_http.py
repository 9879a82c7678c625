"""One HTTP/1.1 GET to a guest, over the Mac's own connections: for scrapes and probes.

A guest is not trusted: its answer is bounded in size and in time, and an answer that is none is a sentence, never a traceback.
The connection is not reused, so a guest that keeps it open holds nobody. The time that the host needs to make one is not the
guest's.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from applecart.errors import BadInput, DeadlineExceeded, Transient
from applecart.kubelet.serve.http_answer import AnswerReader, BadAnswer
from applecart.tart.mac import Connection, Mac

CONNECT_S = 5.0  # a guest on the same machine answers in milliseconds
_PATH = re.compile(r"/[!-~]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t -~]*")


class GuestAnswer(NamedTuple):
    status: int
    headers: dict[str, str]  # by lower-case name; of a repeated one the last
    body: bytes


class NoAnswer(Transient):
    """The guest said something that is no answer, or ended the connection before it had answered."""


async def get(
    mac: Mac,
    address: str,
    port: int,
    path: str,
    headers: Mapping[str, str],
    deadline_s: float,
    limit_bytes: int,
) -> GuestAnswer:
    """The answer, its body cut at the limit; the deadline counts from the moment that there is a connection.

    Of the guest's doing are Unreachable, DeadlineExceeded and NoAnswer; what the host cannot do is Transient, and a bad path
    BadInput.
    """
    request = request_bytes(address, port, path, headers)
    where = f"http://{address}:{port}{path}"
    connection = await mac.connect(address, port, deadline_s=min(CONNECT_S, deadline_s))
    try:
        async with asyncio.timeout(deadline_s):
            return await _exchange(connection, request, limit_bytes)
    except TimeoutError:
        raise DeadlineExceeded(f"{where} did not answer within {deadline_s:g} s") from None
    except (BadAnswer, OSError) as error:
        raise NoAnswer(f"{where}: {error}") from None
    finally:
        with suppress(OSError):
            await connection.aclose()


async def _exchange(connection: Connection, request: bytes, limit_bytes: int) -> GuestAnswer:
    await connection.write(request)
    reader = AnswerReader(limit_bytes)
    while not reader.is_done:
        data = await connection.read()
        if data:
            reader.feed(data)
        else:
            reader.end()
    return GuestAnswer(reader.status, reader.headers, reader.body)


def request_bytes(address: str, port: int, path: str, headers: Mapping[str, str]) -> bytes:
    if not _PATH.fullmatch(path):
        raise BadInput(f"{path!r} is not a path of a request: begin it with / and percent-encode what is not plain ASCII")
    host = f"[{address}]" if ":" in address else address
    lines = [f"GET {path} HTTP/1.1"]
    sent = {"Host": f"{host}:{port}", "User-Agent": "tart-kubelet", "Accept": "*/*"}
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadInput(f"the header {name!r} of a request to a guest has a name or a value that HTTP does not allow")
        if name.lower() in ("connection", "transfer-encoding", "content-length"):
            continue
        sent = {key: kept for key, kept in sent.items() if key.lower() != name.lower()} | {name: value}
    lines += [f"{name}: {value}" for name, value in sent.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("ascii")
