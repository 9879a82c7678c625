"""How soon a host is of use after its agent started, on virtual time; `make bench ROWS='kubelet start*'` has the real one."""

import asyncio
from contextlib import suppress
from pathlib import Path

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.kube.errors import NotFound
from tests.kubelet.world import NODE, World, world

LOOK_EVERY_S = 0.01
SOON_S = 0.5  # a listing by Tart and a look at the GUI session take milliseconds in the simulated world


async def is_ready(here: World) -> bool:
    with suppress(NotFound):
        ready = (await here.client.get(Node, Key("", NODE))).condition("Ready")
        return ready is not None and ready.status == "True"
    return False


async def test_a_host_is_ready_as_soon_as_tart_has_answered(tmp_path: Path, clock: Clock) -> None:
    """The Node is registered before Tart has answered; that it then does must not wait for the next look at the Node."""
    async with world(tmp_path, clock) as here:
        began_s = clock.monotonic()
        here.start_agent()
        async with asyncio.timeout(60):
            while not await is_ready(here):  # noqa: ASYNC110 (as a person does)
                await asyncio.sleep(LOOK_EVERY_S)
        assert clock.monotonic() - began_s < SOON_S
