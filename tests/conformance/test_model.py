"""Random sequences of steps leave our server in the state of a real one, by the same answers and the same events.

Each sequence has a namespace of its own on both servers and takes its steps in the same order on both. A failure prints the
seed, the steps and the first answer that differs.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.conformance.caller import Watch, open_session
from tests.conformance.conftest import Servers
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, pod, widget
from tests.conformance.model_steps import RESOURCES, path_of, steps_of
from tests.conformance.normal import normalise
from tests.conformance.servers import Server
from tests.conformance.verdict import difference
from tests.soak import seeds

pytestmark = pytest.mark.kubernetes

SEQUENCES = 200
AT_ONCE = 8
LAST = "zz-last"  # an object whose appearance ends every watch; it sorts behind the others


@dataclass
class Course:
    """What one server did in one sequence, ready to be compared."""

    answers: list[Any]
    final: dict[str, Any]
    events: dict[str, list[Any]]

    def plain(self) -> dict[str, Any]:
        return {"answers": self.answers, "final": self.final, "events": self.events}


async def take_course(server: Server, session: aiohttp.ClientSession, seed: int) -> dict[str, Any]:
    context = await Context.prepared(server, session, f"m{seed}")
    begins = {one: must(await context.admin.get(path_of(context, one)))["metadata"]["resourceVersion"] for one in RESOURCES}
    answers = [await step(context) for _, step in steps_of(seed)]
    final = {one: must(await context.admin.get(path_of(context, one)))["items"] for one in RESOURCES}
    for last, resource in ((config_map(LAST), "configmaps"), (pod(LAST), "pods"), (widget(LAST), "widgets")):
        await context.make(path_of(context, resource), last)
    events = {one: await told_since(context, one, begins[one]) for one in RESOURCES}
    course = normalise(Course(answers, final, events).plain(), context.aliases)
    assert isinstance(course, dict)
    return course


async def told_since(context: Context, resource: str, revision: str) -> list[Any]:
    """Every event up to the last object's."""

    def is_over(seen: list[Any]) -> bool:
        return bool(seen) and seen[-1]["object"]["metadata"]["name"] == LAST

    watch: Watch
    async with context.admin.watch(path_of(context, resource), resourceVersion=revision) as watch:
        return await watch.until(is_over)


def story(seed: int, real: dict[str, Any], ours: dict[str, Any]) -> str:
    """Where two courses part."""
    told = [line for line, _ in steps_of(seed)]
    for number, (wanted, got) in enumerate(zip(real["answers"], ours["answers"], strict=True)):
        if wanted != got:
            return "\n".join([f"sequence {seed} parts at step {number}:", *told[: number + 1], difference(wanted, got)])
    return "\n".join([f"sequence {seed} parts after its steps:", *told, difference(real, ours)])


@pytest.fixture
def both(real_servers: Servers, embedded_servers: Servers) -> tuple[Server, Server]:
    """Not async: servers are started outside the test's loop."""
    return real_servers(False), embedded_servers(False)


@pytest.mark.usefixtures("words_of_the_default_minor")
@pytest.mark.timeout(300)
async def test_random_sequences_end_in_the_same_state_by_the_same_answers_and_events(both: tuple[Server, Server]) -> None:
    differing: list[str] = []
    ahead = iter(seeds(SEQUENCES, soak=SEQUENCES))

    async def work(sessions: list[aiohttp.ClientSession]) -> None:
        for seed in ahead:
            pairs = zip(both, sessions, strict=True)
            real, ours = await asyncio.gather(*(take_course(server, session, seed) for server, session in pairs))
            if real != ours:
                differing.append(story(seed, real, ours))

    async with open_session() as first, open_session() as second, asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work([first, second]))
    assert not differing, f"{len(differing)} of {SEQUENCES}:\n" + "\n\n".join(differing[:5])
