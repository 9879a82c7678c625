"""How long a Pod may stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Taint
from applecart.api.scheduling import Toleration
from applecart.embedded.controllers.node_lifecycle.taint_evictions import FOREVER, tolerated_s

A = Taint(key="a", effect="NoExecute", value="1")
B = Taint(key="b", effect="NoExecute")


def exists(key: str, seconds: int | None = None, effect: str = "NoExecute") -> Toleration:
    return Toleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        ((), (), FOREVER),
        ((), (A,), 0),
        ((exists("a"),), (A,), FOREVER),
        ((exists("a", 300),), (A,), 300),
        ((exists("a", 0),), (A,), 0),
        ((exists("a", -5),), (A,), 0),
        ((exists("b", 300),), (A,), 0),
        ((exists("a", effect="NoSchedule"),), (A,), 0),
        ((exists("a", 300), exists("b", 60)), (A, B), 60),
        ((exists("a"), exists("b", 60)), (A, B), 60),
        ((exists("a", 300),), (A, B), 0),
        ((exists("a", 300), exists("a", 10)), (A,), 300),  # the first that matches speaks
        ((Toleration(operator="Exists"),), (A, B), FOREVER),
        ((Toleration(key="a", value="1", toleration_seconds=7),), (A,), 7),
        ((Toleration(key="a", value="2"),), (A,), 0),
        ((Toleration(key="a", operator="Near", value="1"),), (A,), 0),
    ],
)
def test_a_pod_stays_as_long_as_its_tolerations_say(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], expected: float | None
) -> None:
    assert tolerated_s(tolerations, taints) == expected


taints = st.lists(st.builds(Taint, key=st.sampled_from("abc"), effect=st.just("NoExecute")), max_size=3)

tolerations = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["", "a", "b", "c"]),
        operator=st.sampled_from(["Exists", "Equal", None]),
        toleration_seconds=st.none() | st.integers(-1, 600),
    ),
    max_size=4,
)


@given(tolerations, taints, taints)
def test_another_taint_never_lets_a_pod_stay_longer(held: list[Toleration], few: list[Taint], more: list[Taint]) -> None:
    alone, together = tolerated_s(held, few), tolerated_s(held, [*few, *more])
    assert (float("inf") if together is None else together) <= (float("inf") if alone is None else alone)


@given(tolerations, taints)
def test_a_stay_is_never_negative(held: list[Toleration], given_taints: list[Taint]) -> None:
    stay_s = tolerated_s(held, given_taints)
    assert stay_s is None or stay_s >= 0
