"""The servers of the differential tests: a real one, and every other one that must answer like it.

Each is started when a test first needs it, outside any test's loop, and has its own data: checks compact and restart servers,
which no other test shall notice.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from applecart.embedded.binaries.cluster import Options
from applecart.errors import ApplecartError
from tests.conformance.servers import RealServer, Server, StoppableServer
from tests.conformance.suite import start_embedded
from tests.kubernetes.cluster import FullCluster

Servers = Callable[[bool], Server]


@pytest.fixture(scope="session")
def real_servers(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The real server: without controllers, or (True) with a kube-controller-manager beside it."""
    started: dict[bool, FullCluster] = {}

    async def start(cluster: FullCluster, has_controllers: bool) -> None:
        await cluster.start()
        if has_controllers:
            await cluster.start_controller_manager()

    def server(has_controllers: bool) -> Server:
        if has_controllers not in started:
            options = Options(durable=False, with_controller_manager=has_controllers)
            started[has_controllers] = FullCluster(kube_programs, tmp_path_factory.mktemp("conformance"), options)
            try:
                asyncio.run(start(started[has_controllers], has_controllers))
            except ApplecartError as error:
                pytest.fail(str(error), pytrace=False)
        return RealServer(started[has_controllers], has_controllers=has_controllers)

    yield server
    for cluster in started.values():
        asyncio.run(cluster.stop())


@pytest.fixture(scope="session")
def embedded_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The embedded server: without controllers, or (True) with applecart's own beside it."""
    started: dict[bool, StoppableServer] = {}

    def server(has_controllers: bool) -> Server:
        if has_controllers not in started:
            folder = tmp_path_factory.mktemp("embedded")
            started[has_controllers] = asyncio.run(start_embedded(folder, has_controllers=has_controllers))
        return started[has_controllers]

    yield server
    for one in started.values():
        asyncio.run(one.stop())
