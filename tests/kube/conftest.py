"""The API that a test of the client runs on, once per backend.

`api` gives a connected client and a namespace of the test's own: on the embedded API in memory (virtual time), on the embedded
API on disk behind HTTPS (marked `real_time`), and on a real kube-apiserver (marked `kubernetes`). The same test must hold on
all of them. Another backend is one more line in BACKENDS and a few in `backend`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from applecart.api.crd import DEFINITIONS
from applecart.api.runners import RunnerPool
from applecart.clock import Clock, VirtualLoop
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from tests.kube.backends import Backend
from tests.kube.embedded_api import define, serving
from tests.kube.embedded_backend import HttpsBackend, InMemoryBackend, ServerThread
from tests.virtual_time import needs_real_loop

EMBEDDED = "embedded"
EMBEDDED_SQLITE = "embedded-sqlite"
KUBERNETES = "kubernetes"
BACKENDS = (
    EMBEDDED,
    pytest.param(EMBEDDED_SQLITE, marks=pytest.mark.real_time),
    pytest.param(KUBERNETES, marks=pytest.mark.kubernetes),
)

_loop_of_running_test: Callable[[], asyncio.AbstractEventLoop] = VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _loop_of_running_test
    _loop_of_running_test = asyncio.new_event_loop if needs_real_loop(item) else VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Callable[[], asyncio.AbstractEventLoop]] | None:
    """A test on all backends needs both loops, and which one is known only when the parametrized test starts."""
    if "api" not in item.fixturenames:
        return None
    return {"of-the-backend": lambda: _loop_of_running_test()}


@pytest.fixture(scope="session")
def server_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    thread = ServerThread(tmp_path_factory.mktemp("embedded"))
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Callable[[Clock], AsyncIterator[Backend]]:
    """How to reach the backend. Not async: servers of a whole session are started outside the test's loop."""
    if request.param == EMBEDDED:
        return InMemoryBackend.connected
    if request.param == EMBEDDED_SQLITE:
        thread = request.getfixturevalue("server_on_disk")
        name = request.getfixturevalue("namespace_name")
        return lambda clock: HttpsBackend.connected(clock, thread, name)
    from tests.kube.kubernetes_backend import KubernetesBackend

    cluster = request.getfixturevalue("real_cluster")
    namespace = request.getfixturevalue("namespace")
    return lambda clock: KubernetesBackend.connected(clock, cluster, namespace)


@pytest.fixture
async def api(backend: Callable[[Clock], AsyncIterator[Backend]], clock: Clock) -> AsyncIterator[Backend]:
    async for connected in backend(clock):
        yield connected


@pytest.fixture
def client(api: Backend) -> Client:
    return api.client


@pytest.fixture
async def pools(api: Backend) -> None:
    """The API serves RunnerPools."""
    await define(api.client, *(one for one in DEFINITIONS if one.kind is RunnerPool))


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    """The embedded API in memory, for tests that need powers over it; with the namespaces `ci` and `test`."""
    async with serving(clock) as running:
        yield running
