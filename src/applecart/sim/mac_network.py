"""TCP to the guests of a simulated Mac: what answers at an address and a port.

Every guest that is up serves a few metrics on 9091, and whatever its rules say. An address that no running guest has leads
nowhere: packets vanish until the caller's deadline.
"""

import asyncio

from applecart.errors import DeadlineExceeded, Unreachable
from applecart.sim.mac_streams import Pipe
from applecart.sim.tart.guest_life import Running, read_running
from applecart.sim.tart.store import Store

METRICS_PORT = 9091
LONGEST_REQUEST_BYTES = 64 << 10
ROUND_TRIP_S = 0.001


class GuestConnection:
    """The host's end of a connection to a guest's small HTTP server."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._request = bytearray()
        self._answer = Pipe()

    async def read(self) -> bytes:
        return await self._answer.read()

    async def write(self, data: bytes) -> None:
        self._request += data
        if b"\r\n\r\n" in self._request or len(self._request) > LONGEST_REQUEST_BYTES:
            await self._reply()

    async def aclose(self) -> None:
        self._answer.break_off()

    async def _reply(self) -> None:
        line = bytes(self._request).split(b"\r\n", 1)[0].decode("latin-1")
        status, body = ("200 OK", self._body) if line.startswith(("GET ", "HEAD ")) else ("405 Method Not Allowed", "")
        head = [f"HTTP/1.1 {status}", "Content-Type: text/plain", f"Content-Length: {len(body.encode())}", "Connection: close"]
        await self._answer.write("\r\n".join([*head, "", "" if line.startswith("HEAD ") else body]).encode())
        self._answer.end()


async def connect(store: Store, address: str, port: int, deadline_s: float) -> GuestConnection:
    vm, running = _guest_at(store, address)
    if running is None or running.behaviour is None or running.behaviour.network_is_dead:
        await asyncio.sleep(deadline_s)
        raise DeadlineExceeded(f"{address}:{port} did not answer within {deadline_s:g} s")
    await asyncio.sleep(ROUND_TRIP_S)
    served = {str(METRICS_PORT): _metrics(vm), **running.behaviour.serves}
    if str(port) not in served:
        raise Unreachable(f"{address}:{port} refused the connection")
    return GuestConnection(served[str(port)])


def _guest_at(store: Store, address: str) -> tuple[str, Running | None]:
    for vm in store.running_names():
        running = read_running(store, vm)
        if running is not None and running.address == address:
            return vm, running
    return "", None


def _metrics(vm: str) -> str:
    return f'# TYPE guest_up gauge\nguest_up{{vm="{vm}"}} 1\n# TYPE guest_jobs_total counter\nguest_jobs_total 3\n'
