"""The wall clock of the machine jumps a year ahead and back: identities are judged by it, writes and revisions are not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from applecart.clock import SystemClock
from applecart.embedded.server.server import EmbeddedServer
from applecart.errors import BadInput
from applecart.kube.connect import connect
from applecart.kube.transport import Request, Response, Transport

pytestmark = pytest.mark.real_time

CALL_S = 60.0
YEAR = timedelta(days=366)
DAY = timedelta(days=1)
MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


class JumpingClock(SystemClock):
    def __init__(self) -> None:
        super().__init__()
        self.skew = timedelta()

    def now(self) -> datetime:
        return super().now() + self.skew


async def call(transport: Transport, method: str, path: str, body: Any = None) -> Response:
    sent = None if body is None else msgspec.json.encode(body)
    return await transport.send(Request(method, path, (), sent, deadline_s=CALL_S))


async def created(transport: Transport, path: str, kind: str, name: str) -> dict[str, Any]:
    response = await call(transport, "POST", path, {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    assert response.status == 201, response.body
    document: dict[str, Any] = msgspec.json.decode(response.body)
    return document


async def reviewed(transport: Transport, token: str) -> bool:
    """Whether the server takes a token for somebody's."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    response = await call(transport, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    return bool(msgspec.json.decode(response.body)["status"].get("authenticated", False))


async def test_writes_go_on_and_revisions_grow_whatever_the_clock_says(tmp_path: Path) -> None:
    clock = JumpingClock()
    revisions: list[int] = []
    async with EmbeddedServer(tmp_path / "data", clock) as server:
        inside = server.running.transport()
        for number, skew in enumerate((timedelta(), YEAR, timedelta(), -YEAR, DAY)):
            clock.skew = skew
            metadata = (await created(inside, MAPS, "ConfigMap", f"c{number}"))["metadata"]
            revisions.append(int(metadata["resourceVersion"]))
            at = datetime.fromisoformat(metadata["creationTimestamp"])
            assert abs(at - (datetime.now(UTC) + skew)) < timedelta(minutes=5)
    clock.skew = -YEAR
    with pytest.raises(BadInput, match="correct the clock"):  # whoever trusts its authority would not yet
        await EmbeddedServer(tmp_path / "data", clock).__aenter__()
    clock.skew = YEAR
    async with EmbeddedServer(tmp_path / "data", clock) as server:  # a start in the future finds the same and goes on
        listed = msgspec.json.decode((await call(server.running.transport(), "GET", MAPS)).body)["items"]
        assert [int(item["metadata"]["resourceVersion"]) for item in listed] == revisions
        revisions.append(
            int((await created(server.running.transport(), MAPS, "ConfigMap", "last"))["metadata"]["resourceVersion"])
        )
    assert revisions == sorted(set(revisions))


async def test_tokens_and_certificates_end_and_begin_by_the_clock(tmp_path: Path) -> None:
    clock = JumpingClock()
    async with EmbeddedServer(tmp_path / "data", clock) as server:
        inside = server.running.transport()
        await created(inside, ACCOUNTS, "ServiceAccount", "agent")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = msgspec.json.decode((await call(inside, "POST", f"{ACCOUNTS}/agent/token", request)).body)["status"]["token"]
        outside = connect(str(tmp_path / "data" / "admin.kubeconfig"), None, SystemClock(), environ={})
        statuses = []
        for skew in (timedelta(), YEAR, timedelta(), -DAY, timedelta()):
            clock.skew = skew
            statuses.append(((await call(outside, "GET", MAPS)).status, await reviewed(inside, token)))
        await outside.aclose()
    assert statuses == [(200, True), (401, False), (200, True), (401, False), (200, True)]
