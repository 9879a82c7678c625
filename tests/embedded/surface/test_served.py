"""The order of groups and versions, and what the server says it is."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.surface.served import groups_of, version_document, version_rank
from tests.embedded.surface.kinds import kind


def test_versions_are_sorted_by_stability_then_by_number() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v0"]
    for shuffled in itertools.islice(itertools.permutations(ordered), 0, 40_000, 997):
        assert sorted(shuffled, key=version_rank) == ordered


def test_the_first_version_is_preferred() -> None:
    (group,) = groups_of([kind("x.dev", "A", "as", version=version) for version in ("v1beta1", "v2alpha1", "v1")]).values()
    assert list(group) == ["v1", "v1beta1", "v2alpha1"]


def test_built_in_groups_come_by_importance_custom_ones_by_name_and_metrics_last() -> None:
    names = ["metrics.k8s.io", "zoo.dev", "node.k8s.io", "apps.dev", "", "policy", "coordination.k8s.io"]
    expected = ["", "policy", "coordination.k8s.io", "node.k8s.io", "apps.dev", "zoo.dev", "metrics.k8s.io"]
    assert list(groups_of([kind(name, "A", "as") for name in names])) == expected


@given(st.permutations(["", "policy", "b.dev", "a.dev", "node.k8s.io"]))
def test_the_order_does_not_depend_on_how_kinds_come(names: list[str]) -> None:
    assert list(groups_of([kind(name, "A", "as") for name in names])) == ["", "policy", "node.k8s.io", "a.dev", "b.dev"]


@given(st.text("v0123456789alphbet", max_size=40), st.text("v0123456789alphbet", max_size=40))
def test_any_two_versions_can_be_compared(one: str, other: str) -> None:
    assert (version_rank(one) < version_rank(other)) or (version_rank(other) <= version_rank(one))


def test_the_version_names_the_kubernetes_it_behaves_like_and_that_it_is_embedded() -> None:
    document = version_document()
    assert document["gitVersion"] == f"v{document['major']}.{document['minor']}.3+embedded"
    assert (document["emulationMajor"], document["emulationMinor"]) == (document["major"], document["minor"])
    assert int(document["minCompatibilityMinor"]) == int(document["minor"]) - 1


def test_every_value_is_text_and_the_platform_has_two_parts() -> None:
    document = version_document()
    assert all(isinstance(value, str) for value in document.values())
    assert document["platform"].count("/") == 1
