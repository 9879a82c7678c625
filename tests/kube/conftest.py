"""The API that a test of the client runs on, once per backend.

`api` gives a connected client and a namespace of the test's own: in memory on virtual time, and on a real kube-apiserver
(marked `kubernetes`). The same test must hold on both. Another backend is one more line in BACKENDS and a function here.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from applecart.clock import Clock, VirtualLoop
from applecart.kube.client import Client
from tests.kube.backends import Backend, MemoryBackend

MEMORY = "memory"
KUBERNETES = "kubernetes"
BACKENDS = (MEMORY, pytest.param(KUBERNETES, marks=pytest.mark.kubernetes))

_loop_of_running_test: Callable[[], asyncio.AbstractEventLoop] = VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _loop_of_running_test
    _loop_of_running_test = asyncio.new_event_loop if item.get_closest_marker("kubernetes") else VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Callable[[], asyncio.AbstractEventLoop]] | None:
    """A test on both backends needs both loops, and which one is known only when the parametrized test starts."""
    if "api" not in item.fixturenames:
        return None
    return {"of-the-backend": lambda: _loop_of_running_test()}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Callable[[Clock], AsyncIterator[Backend]]:
    """How to reach the backend. Not async: the real cluster is started outside the test's loop."""
    if request.param == MEMORY:
        return MemoryBackend.connected
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
