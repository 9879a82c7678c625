"""The cluster that every other test marked `kubernetes` relies on."""

import json
import os
from pathlib import Path

import pytest
from tests.kubernetes.recipe import assets_folder, kube_version

from applecart.embedded.binaries import flags
from applecart.embedded.binaries.cluster import API_SERVER, ETCD, Options
from tests.kubernetes.cluster import FullCluster
from applecart.errors import ControlPlaneFault

pytestmark = pytest.mark.kubernetes


def processes_of(folder: Path) -> dict[int, str]:
    """Every live process of this machine whose command line mentions the folder."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found


def test_the_session_cluster_has_the_pinned_version_on_both_ends(real_cluster: FullCluster, kube: str) -> None:
    said = json.loads(real_cluster.kubectl("version", "--output=json"))
    if assets_folder() is None:
        assert said["serverVersion"]["gitVersion"] == said["clientVersion"]["gitVersion"] == kube_version(kube)
    assert said["serverVersion"]["minor"] == kube.split(".")[1]


def test_a_test_gets_a_namespace_that_exists(real_cluster: FullCluster, namespace: str) -> None:
    assert real_cluster.kubectl("get", "namespace", namespace, "--output=name").strip() == f"namespace/{namespace}"


def test_a_pod_needs_no_service_account_where_no_controller_manager_runs(real_cluster: FullCluster, namespace: str) -> None:
    said = real_cluster.kubectl("run", "a", "--image=none", f"--namespace={namespace}", "--output=name")
    assert said.strip() == "pod/a"


def test_a_user_of_no_group_may_not_read_secrets(real_cluster: FullCluster) -> None:
    stranger = real_cluster.issue_client("stranger", "stranger")
    with pytest.raises(ControlPlaneFault, match=r"User \"stranger\" cannot list resource \"secrets\""):
        real_cluster.kubectl("get", "secrets", f"--kubeconfig={stranger.kubeconfig}")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the processes of a machine can be listed on Linux only")
async def test_stopping_ends_exactly_the_processes_it_started(
    real_cluster: FullCluster, kube_programs: Path, tmp_path: Path
) -> None:
    async with FullCluster(kube_programs, tmp_path, Options(durable=False)) as cluster:
        started = cluster.pids
        assert set(started) == {ETCD, API_SERVER}
        assert set(processes_of(tmp_path)) == set(started.values())
    assert processes_of(tmp_path) == {}
    assert cluster.pids == {}
    real_cluster.check()
    assert real_cluster.kubectl("get", "--raw", "/readyz") == "ok"


async def test_a_stopped_cluster_starts_again_with_its_data_and_its_old_credentials(
    kube_programs: Path, tmp_path: Path
) -> None:
    first = FullCluster(kube_programs, tmp_path)
    async with first:
        first.kubectl("create", "configmap", "kept", "--from-literal=a=b")
        old = tmp_path / "old.kubeconfig"
        old.write_bytes(first.kubeconfig.read_bytes())
    async with FullCluster(kube_programs, tmp_path) as second:
        as_before = (f"--kubeconfig={old}", f"--server={second.url}")
        assert second.kubectl("get", "configmap", "kept", *as_before, "--output=jsonpath={.data.a}") == "b"


async def test_an_api_outage_keeps_the_address_and_the_objects(kube_programs: Path, tmp_path: Path) -> None:
    async with FullCluster(kube_programs, tmp_path, Options(durable=False)) as cluster:
        cluster.kubectl("create", "configmap", "kept")
        await cluster.stop_program(API_SERVER, grace_s=0)
        with pytest.raises(ControlPlaneFault, match="refused"):
            cluster.kubectl("get", "configmap", "kept")
        await cluster.start_api_server()
        assert cluster.kubectl("get", "configmap", "kept", "--output=name").strip() == "configmap/kept"


async def test_controllers_join_and_cluster_api_serves_its_kinds(kube_programs: Path, tmp_path: Path) -> None:
    options = Options(durable=False, with_controller_manager=True)
    async with FullCluster(kube_programs, tmp_path, options) as cluster:
        await cluster.start_controller_manager()
        await cluster.start_scheduler()
        await cluster.start_cluster_api()
        await cluster.start_cluster_api()  # a second call changes nothing
        cluster.kubectl("run", "a", "--image=none")
        cluster.kubectl("wait", "--for=condition=PodScheduled=False", "pod/a", "--timeout=60s")  # no Node to run it on
        kinds = cluster.kubectl("api-resources", "--api-group=cluster.x-k8s.io", "--output=name").split()
        assert "machinedeployments.cluster.x-k8s.io" in kinds
        cluster.check()


async def test_a_flag_that_the_api_server_does_not_know_is_named_and_etcd_is_stopped_too(
    kube_programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "api_server_flags", lambda *_, **__: ["--no-such-flag"])
    cluster = FullCluster(kube_programs, tmp_path, Options(durable=False))
    with pytest.raises(ControlPlaneFault, match=r"kube-apiserver ended with exit code 1; .*unknown flag: --no-such-flag"):
        await cluster.start()
    assert cluster.pids == {}
    assert processes_of(tmp_path) == {}
