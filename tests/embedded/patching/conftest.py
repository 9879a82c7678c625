"""A real API server that serves the custom kind of `shapes.py`."""

from collections.abc import Iterator

import pytest

from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import GROUP, PROBE_CRD
from tests.kubernetes.cluster import FullCluster


@pytest.fixture(scope="module")
def real_api(real_cluster: FullCluster) -> Iterator[RealApi]:
    api = RealApi(real_cluster)
    api.ensure("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", PROBE_CRD)
    api.wait_until_served(f"/apis/{GROUP}/v1/probes")
    yield api
    api.close()
