"""Pods that can never work, and Pods that wait for something: each says so, and nothing is retried for ever in silence."""

import base64
from pathlib import Path

import msgspec
import pytest

from applecart.api.core import Secret
from applecart.api.meta import Key, ObjectMeta, OwnerReference
from applecart.api.pods import FAILED, PENDING, RUNNING, Pod, PodSpec
from applecart.clock import Clock
from applecart.kube.patch import Merge
from applecart.kubelet.main import run
from tests.kubelet.incidents.scene import calls, delete, events, scene, told, waiting_reason
from tests.kubelet.world import IMAGE, NAMESPACE, NODE, World, vm_pod
from tests.virtual_time import elapse

LONG_S = 180  # six times the pace at which such Pods were retried once


def _pod(spec: dict[str, object]) -> Pod:
    container = {"name": "runner", "image": IMAGE}
    return Pod(
        metadata=ObjectMeta(name="job-1", namespace=NAMESPACE),
        spec=msgspec.convert({"containers": [container], "nodeName": NODE} | spec, PodSpec),
    )


DAEMON_SET = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="node-exporter", uid="u", controller=True)
UNSUPPORTED: dict[str, tuple[dict[str, object], str]] = {
    "two containers": ({"containers": [{"name": "a", "image": IMAGE}, {"name": "b", "image": IMAGE}]}, "exactly one"),
    "init container": ({"initContainers": [{"name": "a", "image": IMAGE}]}, "init containers"),
    "another system": ({"os": {"name": "linux"}}, "spec.os.name is linux"),
    "host network": ({"hostNetwork": True}, "hostNetwork"),
    "mount": (
        {
            "containers": [{"name": "a", "image": IMAGE, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
        "mounts volume data",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
async def test_a_pod_that_asks_for_what_no_vm_has_fails_once_with_a_sentence(case: str, tmp_path: Path, clock: Clock) -> None:
    """Incident 16 and weakness 18: such Pods were retried every 30 s, or ignored without a word, and never let go."""
    spec, sentence = UNSUPPORTED[case]
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(_pod(spec))
        pod = await here.until_phase("job-1", FAILED, within_s=10)
        assert pod.status.reason == "UnsupportedPod"
        assert sentence in pod.status.message
        await _stays_quiet(here, "UnsupportedPod")


async def test_the_pod_of_a_daemon_set_for_other_nodes_is_refused_once(tmp_path: Path, clock: Clock) -> None:
    """Incident 16: one-container DaemonSet Pods tolerate every taint and were taken for VMs."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        metadata = ObjectMeta(name="job-1", namespace=NAMESPACE, owner_references=(DAEMON_SET,))
        await here.create(msgspec.structs.replace(_pod({}), metadata=metadata))
        await here.until_phase("job-1", FAILED, within_s=10)
        await _stays_quiet(here, "UnsupportedPod")


@pytest.mark.parametrize(("resource", "amount", "least"), [("memory", "1Gi", "MB of memory"), ("cpu", "1", "CPU cores")])
async def test_a_pod_that_is_smaller_than_its_image_allows_fails_at_once(
    resource: str, amount: str, least: str, tmp_path: Path, clock: Clock
) -> None:
    """Weakness 5: such a Pod got clone after clone for an hour, and each was refused."""
    container = {"name": "runner", "image": IMAGE, "resources": {"limits": {resource: amount}}}
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(_pod({"containers": [container]}))
        pod = await here.until_phase("job-1", FAILED, within_s=120)
        assert f"{least} at minimum" in pod.status.message
        assert "resources" in pod.status.message
        await elapse(LONG_S)
        assert len(calls(here, "clone", "ci-job-1")) == 1
        assert "ci-job-1" not in here.mac.vms()


async def _stays_quiet(here: World, reason: str) -> None:
    """No VM, no second event, no finalizer; it can be deleted."""
    await elapse(LONG_S)
    assert [call for call in here.mac.calls if call.tart in ("pull", "clone", "run")] == []
    assert told((await events(here))[reason]) == 1
    pod = await here.pod("job-1")
    assert pod is not None
    assert pod.metadata.finalizers == ()
    await delete(here)
    await here.until_gone("job-1", within_s=60)


@pytest.mark.parametrize("image", ["ghcr.io/Acme/Runner:1", "ghcr.io/acme/runner@sha256:abc", "--help", "a b"])
async def test_a_bad_image_reference_fails_at_once(image: str, tmp_path: Path, clock: Clock) -> None:
    """Weakness 5: every failure looked alike and was tried for ever."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(image=image))
        pod = await here.until_phase("job-1", FAILED, within_s=30)
        assert image in pod.status.message
        assert calls(here, "pull") == []
        assert (await events(here)).keys() & {"UnsupportedPod", "InvalidImageName", "TartCreateFailed"}


REGISTRY = {"missing": "MANIFEST_UNKNOWN", "denied": "UNAUTHORIZED"}


@pytest.mark.parametrize("answer", REGISTRY)
async def test_an_image_that_the_registry_does_not_give_out_fails_within_minutes(
    answer: str, tmp_path: Path, clock: Clock
) -> None:
    """Weakness 5: a typing error in a tag kept a host busy for days."""
    async with scene(tmp_path, clock) as here:
        here.mac.registry.edit(lambda content: setattr(content, answer, ["ghcr.io/acme/*"]))
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "ErrImagePull", within_s=60)
        pod = await here.until_phase("job-1", FAILED, within_s=900)
        assert pod.status.reason == "ErrImagePull"
        assert len(calls(here, "pull")) < 20
        assert "TartCreateFailed" in await events(here)


async def test_a_registry_that_is_busy_is_asked_less_and_less_often(tmp_path: Path, clock: Clock) -> None:
    """Weakness 5: asking a rate limit every 30 s makes it last."""
    async with scene(tmp_path, clock) as here:
        here.mac.registry.edit(lambda content: setattr(content, "busy", ["ghcr.io/acme/*"]))
        here.start_agent()
        await here.create(vm_pod())
        await elapse(900)
        assert 3 <= len(calls(here, "pull")) <= 10
        here.mac.registry.edit(lambda content: setattr(content, "busy", []))
        await here.until_phase("job-1", RUNNING, within_s=400)


SECRET_ENV = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "token"}}}]


@pytest.mark.parametrize("there_is_a_secret", [False, True], ids=["no Secret", "no such key"])
async def test_a_pod_waits_for_its_secret_and_says_which(there_is_a_secret: bool, tmp_path: Path, clock: Clock) -> None:
    """Weakness 5: a missing Secret looked like a broken host."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        value = base64.b64encode(b"open sesame").decode()
        if there_is_a_secret:
            await here.client.create(Secret(metadata=ObjectMeta(name="login", namespace=NAMESPACE), data={"other": value}))
        await here.create(_pod({"containers": [{"name": "runner", "image": IMAGE, "env": SECRET_ENV}]}))
        await here.until("job-1", lambda pod: waiting_reason(pod) == "CreateContainerConfigError", within_s=30)
        message = (await events(here))["TartCreateFailed"].message
        assert "ci/login" in message
        assert calls(here, "pull") == []
        if there_is_a_secret:
            assert "'token'" in message
            await here.client.patch(Secret, Key(NAMESPACE, "login"), Merge({"data": {"token": value}}))
        else:
            await here.client.create(Secret(metadata=ObjectMeta(name="login", namespace=NAMESPACE), data={"token": value}))
        await here.until_phase("job-1", RUNNING, within_s=180)


async def test_a_secret_that_never_comes_fails_the_pod_in_the_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(_pod({"containers": [{"name": "runner", "image": IMAGE, "env": SECRET_ENV}]}))
        await elapse(1200)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == PENDING
        pod = await here.until_phase("job-1", FAILED, within_s=1200)
        assert pod.status.reason == "CreateContainerConfigError"
        assert "given up after" in pod.status.message


async def test_a_pod_with_less_memory_than_its_image_needs_repeats_what_tart_said(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(_pod({"containers": [{"name": "a", "image": IMAGE, "resources": {"limits": {"memory": "64Mi"}}}]}))
        await here.until("job-1", lambda pod: pod is not None and pod.status.reason == "TartCreateFailed", within_s=120)
        assert "memory" in (await events(here))["TartCreateFailed"].message
        assert here.mac.boots == []
        await delete(here)
        await here.until_gone("job-1", within_s=120)


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--max-pods=none", "--max-pods"),
        ("--node-ip-source=dns", "--node-ip-source"),
        ("--node-labels=fleet", "--node-labels"),
        ("--vnc-relay-port=70000", "--vnc-relay-port"),
        ("--no-such-flag", "--no-such-flag"),
    ],
)
def test_an_invalid_flag_ends_the_agent_with_one_sentence(flag: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Incident 15: a flag that two parts of the agent claimed ended it in a crash loop."""
    assert run([flag]) != 0
    said = capsys.readouterr().err
    assert named in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
