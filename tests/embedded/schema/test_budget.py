"""Who has spent its steps is told so, also when others' code has swallowed it."""

from contextlib import suppress

import pytest

from applecart.embedded.schema.budget import OF_THE_LOOP, OverBudget, TooMuchForTheLoop, budget, is_spent, on_the_loop, spend


def test_all_steps_may_be_spent_and_none_more() -> None:
    with budget(3) as left:
        spend(3)
        assert (left, is_spent()) == ([0], False)
        with pytest.raises(OverBudget):
            spend(1)
        assert is_spent()
    spend(1)
    assert not is_spent()


def test_who_has_kept_the_loop_too_long_is_told_so_until_it_leaves() -> None:
    with on_the_loop():
        spend(OF_THE_LOOP)
        assert not is_spent()
        with suppress(TooMuchForTheLoop):
            spend(1)
        with pytest.raises(TooMuchForTheLoop):
            is_spent()
    assert not is_spent()
