"""Requests that nobody would send: each is answered with a Status, and the server serves the next one."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from applecart.clock import Clock
from tests.embedded.relay.stage import OurStage, our_stage

pytestmark = pytest.mark.real_time

ROUNDS = 150
VALUES = ["", "1", "true", "-1", "x", "9" * 30, "é", "\x00", "a b", "%", "../..", "\U0001f980", "0001-01-01T00:00:00Z", "#?&="]
NAMES = ["command", "container", "stdin", "stdout", "stderr", "tty", "follow", "tailLines", "sinceTime", "limitBytes", "stream"]
UPGRADES = ["websocket", "SPDY/3.1", "h2c", "", "WebSocket"]
PATHS = ["job/exec", "job/attach", "job/log", "none/exec", "job/exec/exec", "/exec", "job/portforward", "%2e%2e/exec"]


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[OurStage]:
    async with our_stage(tmp_path, clock) as stage:
        yield stage


async def test_no_request_is_too_odd_for_an_answer(stage: OurStage) -> None:
    await stage.make_pod("job")
    stage.agent.add("default", "job", "vm").end()
    chance = random.Random(7)
    for _ in range(ROUNDS):
        query = "&".join(f"{chance.choice(NAMES)}={quote(chance.choice(VALUES))}" for _ in range(chance.randrange(5)))
        headers = {}
        if chance.random() < 0.7:
            headers = {
                "Connection": chance.choice(["Upgrade", "keep-alive, Upgrade"]),
                "Upgrade": chance.choice(UPGRADES),
                "Sec-WebSocket-Protocol": chance.choice(["v9", "", "channel.k8s.io", ","]),
                "Sec-WebSocket-Key": chance.choice(["", "x", "é"]),
            }
        method = chance.choice(["GET", "POST", "PUT", "DELETE"])
        path = f"{stage.pod_path(chance.choice(PATHS))}?{query}"
        async with stage.session.request(method, path, headers=headers) as answer:
            body = await answer.read()
            assert answer.status in (200, 204, 400, 404, 405, 422), (method, path, headers, body)
    assert await stage.get("/readyz") == (200, "ok")
