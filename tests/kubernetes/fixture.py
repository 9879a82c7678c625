"""The pytest fixtures of tests that run on a real Kubernetes (marked `kubernetes`).

One cluster per test session, etcd and API server only; a test that needs controllers starts them on it. Without the
programs a test fails, it never skips: a suite that silently did not run looks like one that passed. Tests share the cluster,
so each works in a namespace of its own and leaves cluster-wide objects under names that are its own.
"""

import asyncio
import itertools
import json
import os
import re
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes.recipe import DEFAULT_KUBE, BuildFailed, folder, missing

from applecart.embedded.binaries.cluster import Options
from tests.kubernetes.cluster import FullCluster
from applecart.errors import ApplecartError

NAME_LENGTH = 50  # of a namespace: leaves room below the limit of 63 for what a test appends
CREATE_TIMEOUT_S = 30

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kube() -> str:
    """The minor under test."""
    return os.environ.get("KUBE") or DEFAULT_KUBE


@pytest.fixture(scope="session")
def words_of_the_default_minor(kube: str) -> None:
    """For comparisons of texts: real minors word some of them differently, and ours are those of the newest one we follow."""
    if kube != DEFAULT_KUBE:
        pytest.skip(f"the words compared here are those of Kubernetes {DEFAULT_KUBE}")


@pytest.fixture(scope="session")
def kube_programs(kube: str) -> Path:
    """The folder of programs that `make kube-binaries` built."""
    try:
        lacking = missing(kube)
    except BuildFailed as error:
        pytest.fail(f"run make kube-binaries: {error}", pytrace=False)
    if lacking:
        pytest.fail(f"run make kube-binaries KUBE={kube}: {folder(kube)} has no {', '.join(lacking)}", pytrace=False)
    return folder(kube)


@pytest.fixture(scope="session")
def real_cluster(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    cluster = FullCluster(kube_programs, tmp_path_factory.mktemp("cluster"), Options(durable=False))
    # The processes belong to no event loop, so each test may use the cluster from its own.
    try:
        asyncio.run(cluster.start())
    except ApplecartError as error:
        pytest.fail(str(error), pytrace=False)
    yield cluster
    asyncio.run(cluster.stop())


@pytest.fixture
def namespace_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test of this session has, made from the test's."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))
    number = next(_numbers)
    return f"t{number}-{words}"[:NAME_LENGTH].strip("-")


@pytest.fixture
def namespace(real_cluster: FullCluster, namespace_name: str) -> str:
    """A namespace that exists and is this test's alone. It stays: without a controller-manager none can be removed."""
    context = ssl.create_default_context(cadata=real_cluster.ca_pem.decode("ascii"))
    context.load_cert_chain(real_cluster.admin.certificate, real_cluster.admin.key)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name}}
    request = urllib.request.Request(
        f"{real_cluster.url}/api/v1/namespaces",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    # No proxy of the environment stands between two processes of one machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=CREATE_TIMEOUT_S):
        return namespace_name
