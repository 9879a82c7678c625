"""Which changes a predicate spares."""

from datetime import UTC, datetime

import msgspec
import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import ObjectMeta, OwnerReference
from applecart.api.pods import Pod, PodStatus
from applecart.kube.cache import Change
from applecart.kube.predicates import appeared_or_went, beyond_status

OLD = ConfigMap(metadata=ObjectMeta(name="a", namespace="test", uid="uid-1", generation=3, resource_version="7"))
OWNER = OwnerReference(api_version="v1", kind="Node", name="n", uid="uid-2")


def with_metadata(**changes: object) -> ConfigMap:
    return msgspec.structs.replace(OLD, metadata=msgspec.structs.replace(OLD.metadata, resource_version="8", **changes))


def change(old: ConfigMap | None, new: ConfigMap | None) -> Change[ConfigMap]:
    return Change(OLD.key, old, new)


@pytest.mark.parametrize(
    "new",
    [
        with_metadata(generation=4),
        with_metadata(labels={"x": "1"}),
        with_metadata(annotations={"x": "1"}),
        with_metadata(finalizers=("example.com/guard",)),
        with_metadata(owner_references=(OWNER,)),
        with_metadata(deletion_timestamp=datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_whatever_a_decision_may_depend_on_is_beyond_the_status(new: ConfigMap) -> None:
    assert beyond_status(change(OLD, new))
    assert not appeared_or_went(change(OLD, new))


def test_data_of_a_kind_without_a_status_is_beyond_it() -> None:
    assert beyond_status(change(OLD, msgspec.structs.replace(with_metadata(), data={"k": "v"})))


def test_a_status_is_not_beyond_itself() -> None:
    old = Pod(metadata=OLD.metadata)
    new = msgspec.structs.replace(old, status=PodStatus(phase="Running"))
    assert not beyond_status(Change(OLD.key, old, new))


def test_a_new_revision_alone_is_a_status() -> None:
    assert not beyond_status(change(OLD, with_metadata()))


def test_an_object_that_appears_or_goes_is_never_spared() -> None:
    for each in (change(None, OLD), change(OLD, None)):
        assert beyond_status(each)
        assert appeared_or_went(each)
