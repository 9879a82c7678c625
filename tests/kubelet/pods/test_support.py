"""A Pod that can never be a VM is refused with a sentence; what changes nothing is told."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Container, ExecAction, Lifecycle, LifecycleHandler, SecurityContext, VolumeMount
from applecart.api.meta import ObjectMeta, OwnerReference
from applecart.api.pods import HostAlias, Pod, PodOS, PodSecurityContext, PodSpec
from applecart.api.scheduling import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from applecart.api.volumes import (
    ConfigMapVolume,
    EmptyDirVolume,
    HostPathVolume,
    ProjectedVolume,
    Projection,
    SecretVolume,
    TokenProjection,
    Volume,
)
from applecart.kubelet.pods.support import UnsupportedPod, ignored, refusal, unsupported
from applecart.tart.failures import BadImage

RUNNER = Container(name="runner", image="registry.example/macos:15")
TOKEN = ProjectedVolume(sources=(Projection(service_account_token=TokenProjection(path="token")),))
API_ACCESS = Volume(name="kube-api-access-x7k2p", projected=TOKEN)
DAEMON_SET = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="node-exporter", uid="d1", controller=True)
REPLICA_SET = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="xcresult", uid="r1", controller=True)


def pod(owner: OwnerReference | None = None, **spec: Any) -> Pod:
    metadata = ObjectMeta(name="runner-1", namespace="ci", owner_references=(owner,) if owner else ())
    return Pod(metadata=metadata, spec=PodSpec(**{"containers": (RUNNER,), **spec}))


def mounting(volume: Volume) -> Pod:
    mount = VolumeMount(name=volume.name, mount_path="/mnt")
    return pod(containers=(msgspec.structs.replace(RUNNER, volume_mounts=(mount,)),), volumes=(volume,))


def requiring(*terms: NodeSelectorTerm) -> Affinity:
    required = NodeSelector(node_selector_terms=terms)
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


def term(key: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator="In", values=values),))


@pytest.mark.parametrize(
    "fine",
    [
        pod(),
        pod(automount_service_account_token=True, restart_policy="Always", dns_policy="ClusterFirst"),
        pod(volumes=(Volume(name="unused", empty_dir=EmptyDirVolume()),)),
        pod(REPLICA_SET),
        mounting(API_ACCESS),
        pod(DAEMON_SET, node_selector={"kubernetes.io/os": "darwin"}),
        pod(DAEMON_SET, node_selector={"tuist.dev/runtime": "tart"}),
        pod(DAEMON_SET, affinity=requiring(term("kubernetes.io/os", "darwin"))),
        pod(security_context=PodSecurityContext()),
    ],
    ids=str,
)
def test_a_pod_of_one_container_is_a_vm(fine: Pod) -> None:
    assert unsupported(fine) is None


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (pod(containers=()), "0 containers"),
        (pod(containers=(RUNNER, Container(name="sidecar"))), r"2 containers \(runner, sidecar\)"),
        (pod(init_containers=(Container(name="setup"),)), r"init containers \(setup\)"),
        (pod(ephemeral_containers=(Container(name="debugger"),)), "ephemeral containers"),
        (pod(os=PodOS(name="linux")), "spec.os.name is linux"),
        (pod(runtime_class_name="kata-qemu"), "runtimeClassName kata-qemu"),
        (pod(host_network=True), "hostNetwork"),
        (pod(host_pid=True), "hostPID"),
        (pod(host_ipc=True), "hostIPC"),
        (mounting(Volume(name="password", secret=SecretVolume(secret_name="login"))), "mounts volume password at /mnt"),
        (mounting(Volume(name="config", config_map=ConfigMapVolume(name="settings"))), "mounts volume config"),
        (mounting(Volume(name="scratch", empty_dir=EmptyDirVolume())), "mounts volume scratch"),
        (mounting(Volume(name="host", host_path=HostPathVolume(path="/"))), "mounts volume host"),
        (mounting(Volume(name="disk")), "mounts volume disk"),
        (mounting(Volume(name="own-token", projected=TOKEN)), "mounts volume own-token"),
        (mounting(Volume(name="kube-api-access-fake", host_path=HostPathVolume(path="/"))), "kube-api-access-fake"),
    ],
)
def test_what_a_user_would_miss_is_refused_with_a_sentence(refused: Pod, why: str) -> None:
    sentence = unsupported(refused)
    assert sentence is not None
    assert sentence.startswith("Pod ci/runner-1 cannot run as a VM: ")
    with pytest.raises(UnsupportedPod, match=why):
        raise refusal(refused) or AssertionError


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"node_selector": {"kubernetes.io/os": "linux"}},
        {"affinity": requiring(term("kubernetes.io/os", "darwin", "linux"))},
        {"affinity": requiring(term("kubernetes.io/os", "darwin"), term("kubernetes.io/hostname", "mac-7"))},
        {"affinity": requiring()},
        {"affinity": Affinity()},
    ],
)
def test_the_pod_of_a_daemon_set_that_is_not_for_macs_is_refused_once(spec: dict[str, Any]) -> None:
    """Incident 16, weakness 18: Pods of node agents tolerate every taint; they were tried every 30 s, or ignored for ever."""
    sentence = unsupported(pod(DAEMON_SET, **spec))
    assert sentence is not None
    assert "DaemonSet node-exporter" in sentence


@pytest.mark.parametrize("image", ["", "macos", "registry.example/Macos:15", "registry.example/macos:", "a b/c:d"])
def test_a_bad_image_is_refused_as_one(image: str) -> None:
    refused = refusal(pod(containers=(Container(name="runner", image=image),)))
    assert isinstance(refused, BadImage)
    assert unsupported(pod(containers=(Container(name="runner", image=image),))) == str(refused)


def test_fields_without_effect_are_named_once() -> None:
    busy = Container(
        name="runner",
        image=RUNNER.image,
        command=("/bin/sh",),
        args=("-c", "true"),
        working_dir="/tmp",
        lifecycle=Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("true",)))),
        security_context=SecurityContext(privileged=True),
    )
    told = ignored(
        pod(
            containers=(busy,),
            security_context=PodSecurityContext(run_as_user=501),
            host_aliases=(HostAlias(ip="10.0.0.1", hostnames=("db",)),),
            volumes=(Volume(name="unused", empty_dir=EmptyDirVolume()),),
        )
    )
    assert told == (
        "command",
        "args",
        "workingDir",
        "lifecycle",
        "container securityContext",
        "securityContext",
        "hostAliases",
        "volumes",
    )


def test_nothing_is_told_of_a_pod_as_the_api_defaults_it() -> None:
    plain = pod(
        security_context=PodSecurityContext(),
        restart_policy="Always",
        dns_policy="ClusterFirst",
        enable_service_links=True,
        termination_grace_period_seconds=30,
        volumes=(API_ACCESS,),
    )
    assert ignored(plain) == ()


NAMES = st.text("abc-", max_size=5)


@given(
    st.lists(st.builds(Container, name=NAMES, image=st.text(max_size=20)), max_size=3),
    st.lists(st.builds(Container, name=NAMES), max_size=1),
    st.none() | st.builds(PodOS, name=NAMES),
    st.booleans(),
)
def test_any_pod_is_a_vm_or_refused_in_one_sentence(
    containers: list[Container], init: list[Container], os: PodOS | None, host_network: bool
) -> None:
    odd = pod(containers=tuple(containers), init_containers=tuple(init), os=os, host_network=host_network)
    sentence = unsupported(odd)
    assert isinstance(ignored(odd), tuple)
    if sentence is None:
        assert len(containers) == 1
        assert not init
        assert not host_network
