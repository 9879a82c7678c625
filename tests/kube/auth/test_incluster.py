"""Reaching the API server from inside a Pod."""

from pathlib import Path

import pytest

from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput
from applecart.kube.auth.context import in_cluster, is_in_cluster
from applecart.kube.auth.credentials import REREAD_AFTER_S
from tests.virtual_time import elapse

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the kubelet mounts: every file is a link into a folder that is swapped as a whole."""
    swap(tmp_path, "first", "first-projected-token")
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    return tmp_path


def swap(folder: Path, version: str, token: str) -> None:
    (folder / version).mkdir()
    (folder / version / "token").write_text(token)
    (folder / version / "ca.crt").write_text(CA)
    (folder / version / "namespace").write_text("runners\n")
    (folder / "..new").symlink_to(version)
    (folder / "..new").rename(folder / "..data")


def test_a_pod_knows_its_server_ca_and_namespace(folder: Path) -> None:
    endpoint = in_cluster(ENVIRON, SystemClock(), folder).endpoint
    assert endpoint.server == "https://10.96.0.1:443"
    assert endpoint.ca_pem == CA
    assert endpoint.namespace == "runners"


@pytest.mark.parametrize(
    ("host", "server"),
    [("fd00::1", "https://[fd00::1]:443"), ("kubernetes.default", "https://kubernetes.default:443")],
)
def test_the_host_may_be_an_ipv6_address_or_a_name(folder: Path, host: str, server: str) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_HOST": host}
    assert in_cluster(environ, SystemClock(), folder).endpoint.server == server


@pytest.mark.parametrize("environ", [{}, {**ENVIRON, "KUBERNETES_SERVICE_HOST": ""}, {"KUBERNETES_SERVICE_HOST": "a"}])
def test_without_both_variables_this_is_no_pod(environ: dict[str, str]) -> None:
    assert not is_in_cluster(environ)
    assert is_in_cluster(ENVIRON)


async def test_a_rotated_token_is_presented_within_a_minute(folder: Path, clock: Clock) -> None:
    credentials = in_cluster(ENVIRON, clock, folder).credentials
    assert (await credentials.get()).authorization() == "Bearer first-projected-token"
    swap(folder, "second", "second-projected-token")
    assert (await credentials.get()).authorization() == "Bearer first-projected-token"
    await elapse(REREAD_AFTER_S)
    assert (await credentials.get()).authorization() == "Bearer second-projected-token"


async def test_a_refused_token_is_read_again_at_once(folder: Path, clock: Clock) -> None:
    credentials = in_cluster(ENVIRON, clock, folder).credentials
    refused = await credentials.get()
    swap(folder, "second", "second-projected-token")
    assert (await credentials.get(rejected=refused)).authorization() == "Bearer second-projected-token"


def test_a_pod_without_a_mounted_token_is_told_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"the service account token file {tmp_path}/token cannot be read"):
        in_cluster(ENVIRON, SystemClock(), tmp_path)


def test_a_pod_without_a_ca_is_told_which_file_is_missing(folder: Path) -> None:
    (folder / "ca.crt").unlink()
    with pytest.raises(BadInput, match=f"the file {folder}/ca.crt cannot be read; mount the service account"):
        in_cluster(ENVIRON, SystemClock(), folder)


def test_a_pod_without_a_namespace_file_works_in_default(folder: Path) -> None:
    (folder / "namespace").unlink()
    assert in_cluster(ENVIRON, SystemClock(), folder).endpoint.namespace == "default"


def test_a_port_that_is_no_number_is_told_with_its_variable(folder: Path) -> None:
    with pytest.raises(BadInput, match="variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT is no URL"):
        in_cluster({**ENVIRON, "KUBERNETES_SERVICE_PORT": "https"}, SystemClock(), folder)
