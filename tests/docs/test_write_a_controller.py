"""The controller of the how-to page runs as it stands there."""

import asyncio
import re
from pathlib import Path
from typing import Any

from applecart.api.core import ConfigMap, Namespace
from applecart.api.events import Event
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-controller.md"


async def test_the_controller_of_the_page_runs(clock: Clock) -> None:
    names: dict[str, Any] = {"__name__": "the_page"}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    async with serving(clock, ["ci"]) as running:
        client = Client(running.transport(), clock)
        manager = Manager(client)
        names["Notes"](manager)
        task = asyncio.create_task(manager.run())
        await client.patch(Namespace, Key("", "ci"), Merge({"metadata": {"annotations": {names["WANTED"]: "2"}}}))
        await elapse(1)
        await client.delete(ConfigMap, Key("ci", "note-0"))
        await elapse(1)
        assert sorted(note.name for note in await client.list(ConfigMap, "ci")) == ["note-0", "note-1"]
        assert [event.count for event in await client.list(Event)] != []
        task.cancel()
        await asyncio.wait([task])
