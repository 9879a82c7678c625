"""Asking a guest once: run a command in it, connect to a port of it, or fetch a page from it.

Always ends with an `Answer`, and never with an error. What the guest did wrong or did not do within the probe's timeout is a
failure. Whatever Tart or this host could not do, or took long for, is `UNKNOWN`: three failures end a job, and none of them may
be the host's (I7, I12). An answer quotes the guest, so it is redacted and cut.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from applecart.errors import DeadlineExceeded, Unreachable
from applecart.kubelet.probes.checks import HTTP_SUCCESS, Check, ExecCheck, HttpCheck, Plan, TcpCheck
from applecart.kubelet.probes.state import Answer, ProbeResult
from applecart.kubelet.serve.guest_http import NoAnswer, get
from applecart.secrets import current_registry, redact
from applecart.tart.mac import Ended, Mac

LONGEST_ANSWER_CHARS = 300  # becomes part of an Event and of a status; a line or two tells what is wrong
LOOKED_AT_CHARS = 4 << 10  # of what a guest says: the line to be shown, however much of it is blank
LONGEST_SECRET_CHARS = 16 << 10  # of one that begins in there; redacting all that a guest may say would stop the agent
LONGEST_SAID_BYTES = 4 * (LOOKED_AT_CHARS + LONGEST_SECRET_CHARS)  # a character has at most four
LONGEST_BODY_BYTES = 10 << 10  # the status decides; the page is read only so that the guest can finish writing it
HOST_WAIT_S = 10.0  # for what this host does before it can connect, which takes it milliseconds
TART_WAIT_S = 30.0  # a command may first wait for a pull that is handed over; longer than that is a fault of the host


class GuestExec(Protocol):
    """The part of the Tart driver that is needed here."""

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended: ...


class Asker:
    def __init__(self, mac: Mac, tart: GuestExec) -> None:
        self._mac = mac
        self._tart = tart

    async def ask(self, plan: Plan, vm: str, address: str) -> Answer:
        try:
            outcome, text = await self._ask(plan.check, plan.timeout_s, vm, address)
        except Exception as error:  # a probe must go on asking, whatever went wrong once
            outcome, text = ProbeResult.UNKNOWN, str(error) or type(error).__name__
        return Answer(outcome, shown(text))

    async def _ask(self, check: Check, timeout_s: float, vm: str, address: str) -> tuple[ProbeResult, str]:
        if isinstance(check, ExecCheck):
            return await self._run(check, timeout_s, vm)
        try:
            async with asyncio.timeout(HOST_WAIT_S + 2 * timeout_s):  # the guest may take its time to accept, and to answer
                if isinstance(check, TcpCheck):
                    return await self._connect(check, timeout_s, address)
                return await self._fetch(check, timeout_s, address)
        except DeadlineExceeded:
            return ProbeResult.FAILED, f"{address}:{check.port} did not answer within {timeout_s} s"
        except (Unreachable, NoAnswer) as error:
            return ProbeResult.FAILED, str(error)
        except TimeoutError:
            return ProbeResult.UNKNOWN, f"this host did not connect to {address}:{check.port} within {HOST_WAIT_S:.0f} s"

    async def _run(self, check: ExecCheck, timeout_s: float, vm: str) -> tuple[ProbeResult, str]:
        try:
            async with asyncio.timeout(timeout_s + TART_WAIT_S):
                ended = await self._tart.exec(vm, check.command, deadline_s=timeout_s)
        except DeadlineExceeded:
            return ProbeResult.FAILED, f"the command {' '.join(check.command)} did not end within {timeout_s} s"
        except TimeoutError:
            return ProbeResult.UNKNOWN, f"Tart did not begin the command within {TART_WAIT_S:.0f} s"
        if ended.code == 0:
            return ProbeResult.PASSED, ""
        said = (ended.out + ended.err).lstrip()[:LONGEST_SAID_BYTES].decode(errors="replace").strip()
        return ProbeResult.FAILED, said or f"the command {' '.join(check.command)} ended with code {ended.code}"

    async def _connect(self, check: TcpCheck, timeout_s: float, address: str) -> tuple[ProbeResult, str]:
        connection = await self._mac.connect(address, check.port, deadline_s=timeout_s)
        await connection.aclose()
        return ProbeResult.PASSED, ""

    async def _fetch(self, check: HttpCheck, timeout_s: float, address: str) -> tuple[ProbeResult, str]:
        answer = await get(
            self._mac,
            address,
            check.port,
            check.path,
            dict(check.headers),
            deadline_s=timeout_s,
            limit_bytes=LONGEST_BODY_BYTES,
        )
        if answer.status in HTTP_SUCCESS:
            return ProbeResult.PASSED, ""
        return ProbeResult.FAILED, f"HTTP probe failed with statuscode: {answer.status}"


def shown(text: str) -> str:
    """One bounded line without secrets: masked before it is cut, because half a secret is not recognised any more."""
    text = text[: LOOKED_AT_CHARS + LONGEST_SECRET_CHARS]
    crossing = (end for start, end in current_registry().spans(text) if start < LOOKED_AT_CHARS < end)
    masked = redact(text[: next(crossing, LOOKED_AT_CHARS)])
    line = " ".join("".join(char if char.isprintable() else " " for char in masked).split())
    return line if len(line) <= LONGEST_ANSWER_CHARS else f"{line[: LONGEST_ANSWER_CHARS - 3]}..."
