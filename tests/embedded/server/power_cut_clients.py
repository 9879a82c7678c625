"""Those who use a server while it is cut off: writers that never repeat a write, and one that follows the watch.

They end when the server does; what they were told goes into the ledger.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec

from applecart.errors import ApplecartError
from applecart.kube.transport import Request, Response, Transport
from tests.embedded.server.power_cut_ledger import GONE, Ledger

NAMESPACE = "default"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MERGE = "application/merge-patch+json"
CALL_S = 60.0
NAMES_PER_WRITER = 3


class Writer:
    """Owns a few objects, so that it alone knows what they must be."""

    def __init__(self, transport: Transport, ledger: Ledger, number: int, acknowledged: Callable[[], None]) -> None:
        self._transport = transport
        self._ledger = ledger
        self._names = [f"w{number}-{letter}" for letter in "abcdef"[:NAMES_PER_WRITER]]
        self._chance = random.Random(number)
        self._acknowledged = acknowledged
        self._count = 0

    async def write_until_cut(self) -> None:
        try:
            while True:
                await self._write()
        except ApplecartError:  # an answer that did not come
            return

    async def _write(self) -> None:
        name = self._chance.choice(self._names)
        self._count += 1
        content = f"{name} {self._count} {self._chance.random()}"
        if self._ledger.story(name).acknowledged == GONE:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"content": content}}
            await self._send(name, content, "POST", PATH, body)
        elif self._chance.random() < 0.3:
            await self._send(name, GONE, "DELETE", f"{PATH}/{name}", None)
        else:
            await self._send(name, content, "PATCH", f"{PATH}/{name}", {"data": {"content": content}}, MERGE)

    async def _send(
        self, name: str, content: str, method: str, path: str, body: Any, content_type: str = "application/json"
    ) -> None:
        self._ledger.attempt(name, content)
        sent = msgspec.json.encode(body) if body is not None else None
        response = await self._transport.send(Request(method, path, (), sent, content_type, deadline_s=CALL_S))
        # A server that is on its way down may refuse; then nothing was acknowledged. All else would be a defect.
        if response.status >= 500:
            raise ApplecartError(f"{method} {path}: {response.status}")
        assert response.status < 300, f"{method} {path}: {response.status} {response.body!r}"
        answered = msgspec.json.decode(response.body)
        revision = 0 if content == GONE else int(answered["metadata"]["resourceVersion"])
        self._ledger.acknowledge(name, content, revision)
        self._acknowledged()


async def listed(transport: Transport) -> tuple[str, dict[str, tuple[int, str]]]:
    """The revision of a list, and by name the revision and content of each object."""
    response: Response = await transport.send(Request("GET", PATH, deadline_s=CALL_S))
    assert response.status == 200, response.body
    answered = msgspec.json.decode(response.body)
    items = {item["metadata"]["name"]: state_of(item) for item in answered["items"] if "data" in item}
    return answered["metadata"]["resourceVersion"], {name: state for name, state in items.items() if name.startswith("w")}


def state_of(item: dict[str, Any]) -> tuple[int, str]:
    return int(item["metadata"]["resourceVersion"]), item["data"].get("content", "")


async def follow(transport: Transport, ledger: Ledger, revision: str) -> None:
    """Tell the ledger of every event, until the server goes away."""
    query = (("watch", "true"), ("resourceVersion", revision))
    try:
        stream = await transport.open(Request("GET", PATH, query, deadline_s=CALL_S))
        async with aclosing(stream):
            rest = b""
            while chunk := await stream.read():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    _note_event(ledger, msgspec.json.decode(line))
    except (ApplecartError, asyncio.CancelledError):
        return


def _note_event(ledger: Ledger, event: dict[str, Any]) -> None:
    item = event["object"]
    name = item["metadata"]["name"]
    if name.startswith("w"):
        revision, content = state_of(item)
        ledger.note(revision, name, GONE if event["type"] == "DELETED" else content)
