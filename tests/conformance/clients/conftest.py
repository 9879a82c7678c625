"""The two servers that clients run on, as kubeconfigs of administrators: the embedded one and a real one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.clients.connection import Connection, shared_widgets
from tests.conformance.clients.script import document
from tests.conformance.suite import start_embedded
from tests.kubernetes.cluster import FullCluster

SERVERS = ("embedded", "real")
SLOW_TO_IMPORT = ("test_official.py", "test_kubernetes_asyncio.py", "test_lightkube.py", "test_kr8s.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Four client libraries take five seconds to import; a run that leaves their tests out shall not pay for them."""
    leaves_out = config.getoption("markexpr") == "not kubernetes"
    return True if leaves_out and collection_path.name in SLOW_TO_IMPORT else None


@pytest.fixture(scope="session")
def embedded_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("clients")
    server = asyncio.run(start_embedded(folder, has_controllers=False))
    yield folder / "admin.kubeconfig"
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def kubeconfigs(embedded_kubeconfig: Path, real_cluster: FullCluster) -> dict[str, Path]:
    """By the names of SERVERS."""
    return {"embedded": embedded_kubeconfig, "real": real_cluster.kubeconfig}


@pytest.fixture(params=SERVERS)
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Of one server after the other: what holds on the real one is what the embedded one is held to."""
    kubeconfigs: dict[str, Path] = request.getfixturevalue("kubeconfigs")
    return kubeconfigs[request.param]


@pytest.fixture
def place(kubeconfig: Path, namespace_name: str) -> str:
    """A namespace that is this test's alone, on a server that serves Widgets."""
    connection = Connection(kubeconfig)
    connection.post("/api/v1/namespaces", document("Namespace", namespace_name))
    if not connection.serves_widgets():
        connection.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", shared_widgets())
        connection.until_widgets_are_served()
    return namespace_name
