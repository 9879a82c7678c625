"""What a Pod tells its guest about itself, and what it cannot."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Container, ResourceFieldSelector, Resources
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.errors import ApplecartError, BadInput
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.guest.downward import field_value, resource_value

META = ObjectMeta(
    name="runner-1", namespace="ci", uid="7f0c", labels={"tuist.dev/runner-pool": "xcode"}, annotations={"note": "a\nb"}
)
SIZED = Resources(limits={"cpu": "3500m", "memory": "14Gi"}, requests={"cpu": "2", "memory": "1G"})


def pod(resources: Resources | None = SIZED, account: str = "") -> Pod:
    container = Container(name="runner", image="registry.example/macos:15", resources=resources)
    return Pod(metadata=META, spec=PodSpec(containers=(container,), service_account_name=account))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "runner-1"),
        ("metadata.namespace", "ci"),
        ("metadata.uid", "7f0c"),
        ("spec.nodeName", "mac-7"),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "10.0.0.7"),
        ("metadata.labels['tuist.dev/runner-pool']", "xcode"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations['note']", "a\nb"),
    ],
)
def test_a_field_of_the_pod_becomes_a_value(path: str, expected: str) -> None:
    assert field_value(pod(), path, "mac-7", "10.0.0.7", "X") == expected


def test_the_account_is_the_one_the_pod_names() -> None:
    assert field_value(pod(account="robot"), "spec.serviceAccountName", "mac-7", "", "X") == "robot"


@pytest.mark.parametrize("path", ["status.podIP", "status.podIPs", "spec.restartPolicy", "metadata.labels", "", "nonsense"])
def test_a_field_that_no_guest_can_be_told_is_refused_by_name(path: str) -> None:
    with pytest.raises(BadInput, match=r"variable ADDRESS of Pod ci/runner-1 refers to"):
        field_value(pod(), path, "mac-7", "10.0.0.7", "ADDRESS")


def test_an_unknown_host_address_does_not_fail_the_pod_at_once() -> None:
    with pytest.raises(MissingConfig, match="node mac-7 knows no address"):
        field_value(pod(), "status.hostIP", "mac-7", "", "HOST")


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", "", "4"),
        ("limits.cpu", "0", "4"),
        ("limits.cpu", "1m", "3500"),
        ("requests.cpu", "1", "2"),
        ("limits.memory", "", str(14 << 30)),
        ("limits.memory", "1Gi", "14"),
        ("requests.memory", "1Mi", "954"),
    ],
)
def test_an_amount_is_told_in_units_of_its_divisor_rounded_up(resource: str, divisor: str, expected: str) -> None:
    assert resource_value(pod(), ResourceFieldSelector(resource=resource, divisor=divisor), "X") == expected


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (ResourceFieldSelector(resource="limits.ephemeral-storage"), "a VM has only"),
        (ResourceFieldSelector(resource="limits.cpu", container_name="other"), "container 'other'"),
        (ResourceFieldSelector(resource="limits.cpu", divisor="many"), "limits.cpu"),
    ],
)
def test_an_amount_that_is_not_there_is_refused_by_name(selector: ResourceFieldSelector, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        resource_value(pod(), selector, "X")


def test_an_amount_that_the_container_does_not_set_is_refused() -> None:
    with pytest.raises(BadInput, match="does not set"):
        resource_value(pod(None), ResourceFieldSelector(resource="limits.cpu"), "X")


@given(st.text(max_size=30), st.text("0123456789.mkMGiEe+-", max_size=8), st.text("0123456789.mkMGiEe+-", max_size=8))
def test_whatever_a_pod_refers_to_never_ends_in_a_traceback(path: str, amount: str, divisor: str) -> None:
    odd = pod(Resources(limits={"cpu": amount}))
    with suppress(ApplecartError):
        field_value(odd, path, "mac-7", "", "X")
    with suppress(ApplecartError):
        resource_value(odd, ResourceFieldSelector(resource="limits.cpu", divisor=divisor), "X")
