"""The bytes of a cache volume, shared out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.cache.budget import GIB, split


@pytest.mark.parametrize(
    ("cap_gib", "cas_gib", "binary_gib", "budget_cas_gib"),
    [(20, 8, 10, 8), (100, 20, 75, 20), (20, 0, 16, 0), (100, 0, 80, 0), (4, 0, 2, 0), (20, 11, 7, 11)],
)
def test_volumes_of_known_sizes(cap_gib: int, cas_gib: int, binary_gib: int, budget_cas_gib: int) -> None:
    budget = split(cap_gib, cas_gib)
    assert (budget.binary_bytes, budget.cas_bytes) == (binary_gib * GIB, budget_cas_gib * GIB)


def test_a_compiler_cache_as_large_as_the_volume_is_cut_to_fit() -> None:
    budget = split(20, 20)
    assert budget.cas_bytes == 18 * GIB * 9 // 10
    assert budget.binary_bytes == 18 * GIB - budget.cas_bytes


@given(st.integers(0, 10_000), st.integers(-5, 20_000))
def test_no_budget_promises_more_than_the_volume_has(cap_gib: int, cas_gib: int) -> None:
    budget = split(cap_gib, cas_gib)
    assert min(budget.binary_bytes, budget.cas_bytes) >= 0
    assert budget.binary_bytes + budget.cas_bytes <= cap_gib * GIB - min(2 * GIB, cap_gib * GIB // 2)


@given(st.integers(1, 10_000), st.integers(1, 20_000))
def test_binaries_always_keep_a_part(cap_gib: int, cas_gib: int) -> None:
    assert split(cap_gib, cas_gib).binary_bytes > 0
