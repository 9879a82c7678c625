"""Runs many checks on one server at the same time, and starts the real servers that checks run on.

Checks that disturb others (a compaction, a restart) run after all others, one by one. A check that breaks does not stop the
rest: its answer says how it broke, which is equal to no answer.
"""

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from applecart.embedded.binaries.cluster import Options
from tests.conformance.caller import open_session
from tests.conformance.checks import COUNT, Check, answer_of
from tests.conformance.servers import CONTROLLERS, RealServer, Server, StoppableServer
from tests.kubernetes.cluster import FullCluster
from tests.kubernetes.recipe import folder

AT_ONCE = 8  # enough to hide waiting; more only queues on a machine with two cores
CHECK_TIMEOUT_S = 120.0


async def answers_of(server: Server, checks: Iterable[Check]) -> dict[str, Any]:
    """By number; a check whose needs the server cannot meet has no answer."""
    runnable = [one for one in checks if one.needs <= server.powers]
    limit = asyncio.Semaphore(AT_ONCE)
    async with open_session() as session:

        async def limited(one: Check) -> Any:
            async with limit:
                return await _attempt(one, server, session)

        together = [one for one in runnable if not one.alone]
        results = await asyncio.gather(*map(limited, together))
        found = {one.number: result for one, result in zip(together, results, strict=True)}
        for one in sorted((one for one in runnable if one.alone), key=lambda one: one.order):
            found[one.number] = await _attempt(one, server, session)
    return found


async def _attempt(one: Check, server: Server, session: aiohttp.ClientSession) -> Any:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await answer_of(one, server, session)
    except Exception as error:
        return {"broke": f"{type(error).__name__}: {error}"}


@asynccontextmanager
async def real_server(kube: str, *, has_controllers: bool = False) -> AsyncIterator[RealServer]:
    """A kube-apiserver of this minor, gone at the end."""
    options = Options(durable=False, with_controller_manager=has_controllers)
    with TemporaryDirectory(prefix="conformance-") as run_folder:
        async with FullCluster(folder(kube), Path(run_folder), options) as cluster:
            if has_controllers:
                await cluster.start_controller_manager()
            yield RealServer(cluster, has_controllers=has_controllers)


async def real_answers(kube: str, checks: Iterable[Check]) -> dict[str, Any]:
    """Of a real server of this minor; checks that need controllers run on a second one that has them."""
    checks = list(checks)
    with_controllers = [one for one in checks if CONTROLLERS in one.needs]
    without = [one for one in checks if CONTROLLERS not in one.needs]
    found: dict[str, Any] = {}
    if without:
        async with real_server(kube) as server:
            found |= await answers_of(server, without)
    if with_controllers:
        async with real_server(kube, has_controllers=True) as server:
            found |= await answers_of(server, with_controllers)
    return found


async def start_embedded(run_folder: Path, *, has_controllers: bool) -> StoppableServer:
    """The server under test, with its data in this folder, as `embedded_server.py` starts it.

    It belongs to no event loop (a process of its own, as `FullCluster`): pytest starts, uses and stops it from different ones.
    """
    module = importlib.import_module("tests.conformance.embedded_server")
    server: StoppableServer = await module.start_embedded(run_folder, has_controllers=has_controllers)
    return server


def chosen(checks: list[Check], only: str) -> list[Check]:
    """Those whose numbers are named, such as `12,30-35,54b`; all when none is."""
    if not only:
        return checks
    wanted: set[str] = set()
    for part in only.split(","):
        first, dash, last = part.partition("-")
        wanted |= set(map(str, range(int(first), int(last) + 1))) if dash else {part}
    unknown = wanted - {one.number for one in checks}
    if unknown:
        sys.exit(f"there is no check {', '.join(sorted(unknown))}; numbers go from 1 to {COUNT - 1}, and 54b")
    return [one for one in checks if one.number in wanted]
