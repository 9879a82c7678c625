"""The two servers that clients run on, as kubeconfigs of administrators: the embedded one and a real one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from applecart.embedded.binaries.cluster import RealCluster
from tests.conformance.suite import start_embedded

SERVERS = ("embedded", "real")


@pytest.fixture(scope="session")
def embedded_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("clients")
    server = asyncio.run(start_embedded(folder, has_controllers=False))
    yield folder / "admin.kubeconfig"
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def kubeconfigs(embedded_kubeconfig: Path, real_cluster: RealCluster) -> dict[str, Path]:
    """By the names of SERVERS."""
    return {"embedded": embedded_kubeconfig, "real": real_cluster.kubeconfig}
