"""What others need is created before them."""

from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Resource
from applecart.cli.api.moving_order import owners_first, rank


def test_definitions_and_namespaces_come_first_and_pods_after_custom_objects() -> None:
    crd = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
    namespace = Resource("", "v1", "Namespace", "namespaces", False)
    account = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    secret = Resource("", "v1", "Secret", "secrets")
    budget = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    pool = Resource("tuist.dev", "v1alpha1", "RunnerPool", "runnerpools")
    pod = Resource("", "v1", "Pod", "pods")
    hook = Resource("admissionregistration.k8s.io", "v1", "V", "validatingwebhookconfigurations", False)
    ordered = [crd, namespace, account, secret, budget, pool, pod, hook]
    shuffled = [pod, hook, pool, secret, crd, budget, account, namespace]
    assert sorted(shuffled, key=rank) == ordered


def test_an_owner_comes_before_what_it_owns_and_nothing_else_moves() -> None:
    assert owners_first("abcd", {0: [3], 3: [2]}) == ["c", "d", "a", "b"]


def test_a_circle_of_owners_is_cut_and_not_walked_for_ever() -> None:
    assert sorted(owners_first("abc", {0: [1], 1: [2], 2: [0]})) == ["a", "b", "c"]
    assert owners_first("a", {0: [0]}) == ["a"]


@given(st.integers(1, 30), st.data())
def test_everything_is_placed_once_and_after_its_owners(count: int, data: st.DataObject) -> None:
    """Owners of lower positions only would be trivial, so a shuffle gives each a place in a hidden order without circles."""
    hidden = data.draw(st.permutations(range(count)))
    owners = {
        one: [owner for owner in data.draw(st.lists(st.integers(0, count - 1), max_size=3)) if hidden[owner] < hidden[one]]
        for one in range(count)
    }
    placed = owners_first(range(count), owners)
    assert sorted(placed) == list(range(count))
    assert all(placed.index(owner) < placed.index(one) for one, above in owners.items() for owner in above)


def test_a_long_chain_of_owners_needs_no_deep_stack() -> None:
    count = 5000
    assert owners_first(range(count), {one: [one + 1] for one in range(count - 1)}) == list(reversed(range(count)))
