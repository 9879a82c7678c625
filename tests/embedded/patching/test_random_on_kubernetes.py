"""Random writes beside a real API server: what nobody thought of comes out the same too.

A failing example is printed whole.
"""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import config_map, node, pod, probe
from tests.embedded.patching.steps import SUBJECTS, Step, assert_equal, ours, really
from tests.soak import soaks

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]

NAMESPACE = "default"
unshrunk = settings(
    max_examples=soaks(100, 1000),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
numbers = itertools.count(1)

letters = st.sampled_from("abcde")
values = st.sampled_from(["1", "2"])
managers = st.sampled_from(["m1", "m2", "m3"])
texts = st.dictionaries(letters, values, max_size=3)
patch_texts = st.dictionaries(letters, st.none() | values, max_size=4)


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


probe_items = st.lists(
    st.fixed_dictionaries({"name": letters}, optional={"value": values, "options": texts}),
    max_size=4,
    unique_by=lambda item: str(item["name"]),
)
probe_specs = some(
    size=st.integers(0, 2),
    items=probe_items,
    ports=st.lists(
        st.fixed_dictionaries(
            {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "value": values}
        ),
        max_size=3,
        unique_by=lambda item: (item["port"], item.get("protocol", "TCP")),
    ),
    tags=st.lists(letters, unique=True, max_size=4),
    numbers=st.lists(st.integers(-1, 12), unique=True, max_size=3),
    order=st.lists(letters, max_size=2),
    labels=texts,
    whole=texts,
    point=some(x=st.integers(0, 1), y=st.integers(0, 1)),
    nested=some(a=values, inner=some(b=values)),
    free=st.dictionaries(
        letters, values | texts | st.lists(letters, max_size=2) | st.booleans() | st.integers(0, 1), max_size=2
    ),
)


def run(api: RealApi, kind: str, setup: Step | None, steps: list[Step], name: str, *, with_owners: bool = True) -> None:
    subject = SUBJECTS[kind]
    live = really(api, subject, NAMESPACE, name, setup).document if setup else None
    assert live is not None or setup is None
    for step in steps:
        if live is None and step.how not in ("apply", "create"):
            continue
        expected = really(api, subject, NAMESPACE, name, step)
        if expected.code == 422 and expected.causes:
            continue  # the result was refused by validation, which is not the patch's business
        assert_equal(ours(subject, live, step), expected, with_owners=with_owners)
        live = expected.document or live


def renamed(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "name": name}}


def defaulted(spec: dict[str, Any]) -> dict[str, Any]:
    """As decoding leaves it, so that the default has an owner."""
    if "ports" not in spec:
        return spec
    return {**spec, "ports": [{"protocol": "TCP", **port} for port in spec["ports"]]}


@unshrunk
@given(
    st.lists(
        st.tuples(managers, st.sampled_from(["apply", "apply", "merge"]), probe_specs, st.booleans()), min_size=2, max_size=4
    )
)
def test_random_applies_to_a_custom_kind(real_api: RealApi, writes: list[tuple[str, Any, dict[str, Any], bool]]) -> None:
    name = f"random-{next(numbers)}"
    steps = [
        Step(
            how,
            renamed(probe(**spec), name) if how == "apply" else {"spec": defaulted(spec)},
            manager,
            how == "apply" and force,
        )
        for manager, how, spec, force in writes
    ]
    run(real_api, "Probe", None, steps, name)


config_maps = st.builds(
    config_map,
    st.none() | texts,
    labels=texts,
    annotations=texts,
    finalizers=st.lists(letters.map(lambda one: f"a.b/{one}"), unique=True, max_size=3),
)


@unshrunk
@given(
    st.lists(
        st.tuples(
            managers, st.one_of(config_maps.map(lambda body: ("apply", body)), patch_texts.map(lambda body: ("merge", body)))
        ),
        min_size=2,
        max_size=5,
    ),
    st.booleans(),
)
def test_random_applies_to_a_config_map(real_api: RealApi, writes: list[tuple[str, tuple[Any, Any]]], force: bool) -> None:
    name = f"random-{next(numbers)}"
    steps = [
        Step(how, renamed(body, name) if how == "apply" else {"data": body}, manager, how == "apply" and force)
        for manager, (how, body) in writes
    ]
    run(real_api, "ConfigMap", None, steps, name)


finalizers = st.lists(letters.map(lambda one: f"a.b/{one}"), max_size=4)
distinct_finalizers = st.lists(letters.map(lambda one: f"a.b/{one}"), max_size=4, unique=True)


def is_decided(patch: dict[str, Any]) -> bool:
    """A real server adds and deletes in an order that changes from run to run."""
    return not set(patch.get("finalizers") or ()) & set(patch.get("$deleteFromPrimitiveList/finalizers", ()))


set_patches = some(
    finalizers=st.none() | finalizers,
    labels=st.none() | patch_texts,
    annotations=patch_texts | texts.map(lambda one: {**one, "$patch": "replace"}),
    **{"$deleteFromPrimitiveList/finalizers": finalizers, "$setElementOrder/finalizers": finalizers},
).filter(is_decided)


@unshrunk
@given(distinct_finalizers, texts, st.lists(st.tuples(set_patches, st.none() | patch_texts), min_size=1, max_size=3))
def test_random_strategic_patches_of_metadata(
    real_api: RealApi, first: list[str], labels: dict[str, str], patches: list[tuple[dict[str, Any], Any]]
) -> None:
    name = f"random-{next(numbers)}"
    setup = Step("create", config_map({"a": "1"}, name=name, finalizers=first, labels=labels))
    steps = [Step("strategic", {"metadata": metadata, "data": data}) for metadata, data in patches]
    run(real_api, "ConfigMap", setup, steps, name, with_owners=False)


@unshrunk
@given(distinct_finalizers, st.lists(set_patches, min_size=1, max_size=3))
def test_random_strategic_patches_of_a_pod(real_api: RealApi, first: list[str], patches: list[dict[str, Any]]) -> None:
    name = f"random-{next(numbers)}"
    body = renamed(pod({"name": "main", "image": "one"}), name)
    body["metadata"]["finalizers"] = first
    steps = [Step("strategic", {"metadata": metadata}) for metadata in patches]
    run(real_api, "Pod", Step("create", body), steps, name, with_owners=False)


types = st.sampled_from(["A", "B", "C", "D"])
conditions = st.fixed_dictionaries({"type": types}, optional={"status": values, "reason": st.none() | values})
condition_changes = conditions | types.map(lambda one: {"type": one, "$patch": "delete"}) | st.just({"$patch": "replace"})
addresses = st.fixed_dictionaries({"type": types, "address": values})
address_changes = addresses | types.map(lambda one: {"type": one, "$patch": "delete"})
orders = st.lists(types.map(lambda one: {"type": one}), max_size=4)


def is_consistent(changes: list[dict[str, Any]]) -> bool:
    """What a real server makes of an item that is set and deleted at once depends on its memory layout."""
    deleted = {one.get("type") for one in changes if "$patch" in one}
    return not deleted & {one["type"] for one in changes if "$patch" not in one}


node_statuses = some(
    conditions=st.none() | st.lists(condition_changes, max_size=4).filter(is_consistent),
    addresses=st.lists(address_changes, max_size=4).filter(is_consistent),
    **{"$setElementOrder/conditions": orders, "$setElementOrder/addresses": orders},
)
taints = st.lists(
    st.fixed_dictionaries({"key": letters, "effect": st.just("NoSchedule")}), max_size=3, unique_by=lambda taint: taint["key"]
)


@unshrunk
@given(
    st.lists(conditions, max_size=4),
    st.lists(addresses, max_size=4, unique_by=lambda one: (one["type"], one["address"])),
    st.lists(st.tuples(node_statuses, st.none() | taints), min_size=1, max_size=3),
)
def test_random_strategic_patches_of_a_node(
    real_api: RealApi,
    first_conditions: list[dict[str, Any]],
    first_addresses: list[dict[str, Any]],
    patches: list[tuple[dict[str, Any], Any]],
) -> None:
    name = f"random-{next(numbers)}"
    really(real_api, SUBJECTS["Node"], NAMESPACE, name, Step("create", node(name)))
    status = {"conditions": first_conditions, "addresses": first_addresses}
    setup = Step("merge", {"status": status}, subresource="status")
    steps = []
    for change, taint in patches:
        steps += [Step("strategic", {"status": change}, subresource="status"), Step("strategic", {"spec": {"taints": taint}})]
    run(real_api, "Node", setup, steps, name, with_owners=False)
