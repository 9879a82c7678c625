"""A VM is as large as its Pod is allowed to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Container, Resources
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.errors import BadInput
from applecart.kubelet.pods.resources import vm_size


def pod(resources: Resources | None, whole: Resources | None = None) -> Pod:
    container = Container(name="runner", image="registry.example/macos:15", resources=resources)
    return Pod(metadata=ObjectMeta(name="runner-1", namespace="ci"), spec=PodSpec(containers=(container,), resources=whole))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (None, (None, None)),
        (Resources(), (None, None)),
        (Resources(limits={"cpu": "8", "memory": "14Gi"}), (8, 14336)),
        (Resources(limits={"cpu": "8"}, requests={"cpu": "4", "memory": "2Gi"}), (8, 2048)),
        (Resources(requests={"cpu": "3900m", "memory": "1500M"}), (3, 1430)),
        (Resources(limits={"cpu": "100m", "memory": "1"}), (1, 1)),
        (Resources(limits={"cpu": "0", "memory": "0"}, requests={"cpu": "2"}), (2, None)),
        (Resources(limits={"pods": "1"}), (None, None)),
    ],
)
def test_limits_come_before_requests_and_are_cut_to_whole_units(resources: Resources | None, expected: object) -> None:
    assert vm_size(pod(resources)) == expected


def test_amounts_of_the_whole_pod_count_where_the_container_sets_none() -> None:
    whole = Resources(limits={"cpu": "6", "memory": "8Gi"})
    assert vm_size(pod(None, whole)) == (6, 8192)
    assert vm_size(pod(Resources(limits={"cpu": "2"}), whole)) == (2, 8192)
    assert vm_size(pod(Resources(requests={"cpu": "2"}), whole)) == (6, 8192)


def test_an_amount_that_is_no_quantity_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="Pod ci/runner-1 asks for memory 'lots'"):
        vm_size(pod(Resources(limits={"memory": "lots"})))


@given(st.text("0123456789.mkMGTPEinue+- x", max_size=12), st.text("0123456789.mkMGTPEinue+- x", max_size=12))
def test_any_text_is_a_size_of_at_least_one_or_refused(cpu: str, memory: str) -> None:
    try:
        size = vm_size(pod(Resources(limits={"cpu": cpu, "memory": memory})))
    except BadInput:
        return
    assert all(amount is None or amount >= 1 for amount in size)
