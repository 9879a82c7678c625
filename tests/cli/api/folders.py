"""Data folders with something in them, made by a real server without a socket."""

from pathlib import Path
from typing import Any

import msgspec

from applecart.clock import Clock, SystemClock
from applecart.embedded.server.data_folder import DataFolder, make_data_folder
from applecart.embedded.server.server import RunningApi, offline_api
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.transport import Request

SECRET_VALUE = "aHVzaA=="  # "hush"
OBJECTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ci"}}),
    (
        "/api/v1/namespaces/ci/secrets",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"token": SECRET_VALUE}},
    ),
    (
        "/api/v1/namespaces/ci/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "green"}},
    ),
)


async def make_folder(path: Path, *objects: tuple[str, dict[str, Any]]) -> DataFolder:
    """A folder in which a server ran once and objects were created."""
    clock = SystemClock()
    folder = make_data_folder(path)
    folder.authority(clock.now())
    async with offline_api(folder, clock) as running:
        for where, document in objects or OBJECTS:
            await create(running, clock, where, document)
    return folder


async def create(running: RunningApi, clock: Clock, path: str, document: dict[str, Any]) -> dict[str, Any]:
    client = Client(running.transport(), clock)
    answer = await client.call(Request("POST", path, body=msgspec.json.encode(document)))
    created: dict[str, Any] = msgspec.json.decode(answer.body)
    return created


async def read(folder: DataFolder, path: str) -> dict[str, Any] | None:
    """One object, read by a server that is started for it."""
    clock = SystemClock()
    async with offline_api(folder, clock) as running:
        try:
            answer = await Client(running.transport(), clock).call(Request("GET", path))
        except NotFound:
            return None
        found: dict[str, Any] = msgspec.json.decode(answer.body)
        return found
