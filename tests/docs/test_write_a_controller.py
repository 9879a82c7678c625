"""The controller of the how-to page runs as it stands there, and so does its program."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap, Namespace
from applecart.api.events import Event
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.informer import Informer
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from tests.cli.commands import WAIT_S, environment, running_api
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-controller.md"
LEASE = Key("kube-system", "notes")
EMBEDDED, KUBERNETES = "embedded", "kubernetes"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


async def test_the_controller_of_the_page_runs(clock: Clock) -> None:
    names: dict[str, Any] = {"__name__": "the_page"}
    for block in blocks():
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


def test_what_is_wrong_with_its_surroundings_ends_the_program_in_a_sentence(tmp_path: Path) -> None:
    program = tmp_path / "notes.py"
    program.write_text("\n".join(blocks()))
    away = {"KUBECONFIG": str(tmp_path / "none")}
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment() | away)
    assert ended.returncode == 1
    assert re.fullmatch(rf"notes: .*{tmp_path}/none.*\n", ended.stderr)


@pytest.fixture(params=[EMBEDDED, pytest.param(KUBERNETES, marks=pytest.mark.kubernetes)])
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Not async: servers of a whole session are started outside the test's loop."""
    if request.param == KUBERNETES:
        yield str(request.getfixturevalue("real_cluster").kubeconfig)
        return
    with running_api(tmp_path / "api", "--no-controllers"):
        yield str(tmp_path / "api" / "admin.kubeconfig")


@pytest.mark.real_time
async def test_the_program_of_the_page_works_under_its_lease_and_gives_it_back(
    kubeconfig: str, namespace_name: str, tmp_path: Path, clock: Clock
) -> None:
    program = tmp_path / "notes.py"
    program.write_text("\n".join(blocks()).replace("port=8322", "port=0"))
    client = Client(connect(kubeconfig, None, clock), clock)
    notes = Informer(client, ConfigMap, namespace_name, labels="example.com/kind=note")
    following = asyncio.create_task(notes.run())
    wanted = ObjectMeta(name=namespace_name, annotations={"example.com/notes": "2"})
    await client.create(Namespace(metadata=wanted))
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), env=environment() | {"KUBECONFIG": kubeconfig})
    try:
        await notes.wait_until(lambda: len(notes) == 2, WAIT_S)
        held = await client.get(Lease, LEASE)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), WAIT_S) == 0
        given_back = await client.get(Lease, LEASE)
        assert (bool(held.holder), given_back.holder) == (True, "")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        following.cancel()
        await asyncio.wait([following])
        await client.aclose()
