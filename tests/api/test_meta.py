"""Identity, metadata, conditions and the two kinds of time."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import Condition, Key, ObjectMeta, OwnerReference, Resource, instant, micro_time
from applecart.api.pods import Pod
from tests.api.strategies import INSTANTS

OFFSETS = st.integers(min_value=-12, max_value=12).map(lambda hours: timezone(timedelta(hours=hours)))


def test_a_key_reads_as_kubectl_writes_it() -> None:
    assert str(Key("runners", "mac-1")) == "runners/mac-1"
    assert str(Key("", "mac-1")) == "mac-1"


def test_a_resource_knows_its_api_version_and_its_name_for_kubectl() -> None:
    lease, pod = Resource("coordination.k8s.io", "v1", "Lease", "leases"), Resource("", "v1", "Pod", "pods")
    assert (lease.api_version, lease.label) == ("coordination.k8s.io/v1", "leases.coordination.k8s.io")
    assert (pod.api_version, pod.label) == ("v1", "pods")


def test_an_object_answers_for_its_metadata() -> None:
    pod = msgspec.json.decode(
        b"""{"metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7", "labels": {"l": "1"},
        "annotations": {"x": "2"}, "creationTimestamp": null, "deletionTimestamp": "2026-01-01T00:00:00Z"}}""",
        type=Pod,
    )
    assert (pod.key, pod.uid, pod.revision) == (Key("b", "a"), "c", "7")
    assert (pod.labels, pod.annotations) == ({"l": "1"}, {"x": "2"})
    assert pod.is_being_deleted


def test_the_controller_is_the_owner_that_says_so() -> None:
    bystander = OwnerReference(api_version="v1", kind="Node", name="n", uid="1")
    manager = OwnerReference(api_version="tuist.dev/v1alpha1", kind="RunnerPool", name="p", uid="2", controller=True)
    assert Pod(metadata=ObjectMeta(owner_references=(bystander, manager))).controller == manager
    assert Pod(metadata=ObjectMeta(owner_references=(bystander,))).controller is None


def test_a_condition_sends_an_empty_message_because_the_api_requires_one() -> None:
    condition = Condition(type="Ready", status="Unknown", reason="Waiting", message="")
    assert msgspec.to_builtins(condition) == {"type": "Ready", "status": "Unknown", "reason": "Waiting", "message": ""}


def test_structs_cannot_be_changed_because_a_cache_shares_them() -> None:
    with pytest.raises(AttributeError):
        setattr(Pod().metadata, "name", "other")  # noqa: B010


@settings(deadline=None)
@given(INSTANTS, OFFSETS)
def test_a_micro_time_has_six_digits_and_names_the_same_instant(at: datetime, offset: timezone) -> None:
    text = micro_time(at.astimezone(offset))
    assert len(text.partition(".")[2]) == len("000000Z")
    assert instant(text) == at


def test_a_whole_second_keeps_its_six_digits_in_a_lease() -> None:
    """The API server refuses a MicroTime without its digits, so a renewal on a whole second would fail."""
    renewed_at = datetime(2026, 1, 1, tzinfo=UTC)
    lease = Lease(spec=LeaseSpec(holder_identity="a", renew_time=micro_time(renewed_at)))
    assert b'"renewTime":"2026-01-01T00:00:00.000000Z"' in msgspec.json.encode(lease)
    assert (lease.holder, lease.renewed_at, lease.acquired_at) == ("a", renewed_at, None)
    assert Lease().holder == ""
