"""Waits until a child process answers.

Ready is an answer of the program itself, not a process that exists. Ends in one sentence when the program ends first or does
not answer in time (I10), with the last lines of its log, because that is where a person would look next.
"""

import asyncio
import ssl
from collections.abc import Sequence

import aiohttp

from applecart.embedded.binaries.child import Child
from applecart.embedded.trust.pki import PairFiles
from applecart.errors import ControlPlaneFault, DeadlineExceeded

POLL_S = 0.05  # a start takes seconds; 50 ms more is not felt
ANSWER_TIMEOUT_S = 2.0  # a probe that hangs must not hide that its program ended


def client_context(authority_pem: bytes, client: PairFiles | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority_pem.decode("ascii"))
    if client:
        context.load_cert_chain(client.certificate, client.key)
    return context


async def wait_ready(child: Child, urls: Sequence[str], context: ssl.SSLContext | None, timeout_s: float) -> None:
    """Return once every URL has answered 200."""
    tls = context if context else True
    connector = aiohttp.TCPConnector(ssl=tls)
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(ANSWER_TIMEOUT_S)) as session,
        ):
            for url in urls:
                while not await _answers(session, url):
                    refuse_ended(child)
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise DeadlineExceeded(
            f"{child.name} is not ready after {timeout_s:g} s; its log {child.log} ends with: {child.tail()}"
        ) from None


def refuse_ended(child: Child) -> None:
    if (code := child.exit_code) is not None:
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        raise ControlPlaneFault(f"{child.name} ended with {how}; its log {child.log} ends with: {child.tail()}")


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
