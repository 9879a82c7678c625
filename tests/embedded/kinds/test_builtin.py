"""The list of built-in kinds: complete, consistent, and with behaviour where the handlers ask for it."""

from applecart.embedded.kinds.builtin import VIRTUAL_RESOURCES, builtin_kinds
from applecart.embedded.kinds.strategy import Strategy
from tests.embedded.kinds.documents import created
from tests.embedded.kinds.kind_cases import new_event

ENTRIES = {entry.resource.label: entry for entry in builtin_kinds()}
STRATEGIES: dict[str, Strategy] = {label: entry.strategy for label, entry in ENTRIES.items()}


def labels_where(condition: str) -> set[str]:
    return {label for label, strategy in STRATEGIES.items() if getattr(strategy, condition)}


def test_every_kind_has_shape_and_columns() -> None:
    kinds = builtin_kinds()
    assert len(kinds) == len(ENTRIES) == 17
    for kind in kinds:
        assert kind.shape.sort == "struct"
        assert "metadata" in kind.shape.fields
        assert kind.table.columns


def test_a_put_creates_what_real_servers_let_it_create() -> None:
    """An agent renews its Lease by PUT; the first one must not fail."""
    assert labels_where("creates_on_update") == {
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
        *(f"{name}.rbac.authorization.k8s.io" for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")),
    }


def test_some_kinds_insist_on_a_revision() -> None:
    conditional = STRATEGIES.keys() - labels_where("updates_unconditionally")
    assert conditional == {"leases.coordination.k8s.io", "poddisruptionbudgets.policy", "runtimeclasses.node.k8s.io"}


def test_only_pods_end_gracefully() -> None:
    assert labels_where("is_graceful") == {"pods"}


def test_a_status_is_served_where_the_rules_have_one() -> None:
    with_status = {label for label, entry in ENTRIES.items() if any(sub.name == "status" for sub in entry.subresources)}
    assert labels_where("has_status") == with_status
    assert labels_where("status_takes_metadata") == with_status


def test_both_views_of_events_are_one_store() -> None:
    kinds = {kind.resource.api_version: kind for kind in builtin_kinds() if kind.resource.kind == "Event"}
    newer = kinds["events.k8s.io/v1"]
    assert newer.storage == kinds["v1"].resource
    assert newer.view is not None
    event = created(new_event(), "ns")
    assert newer.view.from_stored(newer.view.to_stored(event)) == event


def test_questions_are_never_stored() -> None:
    assert not {resource.label for resource in VIRTUAL_RESOURCES} & ENTRIES.keys()
    assert {resource.plural for resource in VIRTUAL_RESOURCES if resource.namespaced} == {
        "bindings",
        "localsubjectaccessreviews",
    }


def test_fields_are_those_that_are_named() -> None:
    for strategy in STRATEGIES.values():
        assert strategy.fields({"metadata": {"name": "a"}}).keys() == strategy.field_names
