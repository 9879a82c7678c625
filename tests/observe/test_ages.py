"""Ages: who waits longest is known at every moment, and nobody is forgotten or counted twice."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.observe import ages as ages_module
from applecart.observe.ages import Ages
from applecart.observe.metrics import Metrics
from tests.virtual_time import elapse


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def ages(clock: Clock, metrics: Metrics) -> Ages:
    return Ages(clock, metrics, "wait", waits=["boot"])


def exported(metrics: Metrics, what: str, wait: str = "boot") -> float | None:
    value: float | None = metrics.registry.get_sample_value(f"wait_{what}", {"wait": wait})
    return value


async def test_a_declared_class_is_exported_as_zero_before_anybody_waits(ages: Ages, metrics: Metrics) -> None:
    assert exported(metrics, "oldest_seconds") == 0
    assert exported(metrics, "count") == 0
    assert exported(metrics, "count", "undeclared") is None


async def test_the_oldest_age_grows_by_itself_between_two_readings(ages: Ages, metrics: Metrics) -> None:
    """Seen once: a boot metric was written only on success, so a job waited four hours and every chart was green."""
    ages.waiting("boot", "pod-1")
    await elapse(60)
    ages.waiting("boot", "pod-2")
    await elapse(4 * 3600)
    assert exported(metrics, "oldest_seconds") == 60 + 4 * 3600
    assert exported(metrics, "count") == 2


async def test_the_age_falls_to_the_next_when_the_oldest_is_done_and_to_zero_after_the_last(
    ages: Ages, metrics: Metrics
) -> None:
    ages.waiting("boot", "pod-1")
    await elapse(10)
    ages.waiting("boot", "pod-2")
    ages.done("boot", "pod-1")
    await elapse(5)
    assert exported(metrics, "oldest_seconds") == 5
    ages.done("boot", "pod-2")
    assert (exported(metrics, "oldest_seconds"), exported(metrics, "count")) == (0, 0)


async def test_saying_again_that_it_waits_does_not_make_it_younger(ages: Ages, metrics: Metrics) -> None:
    for _ in range(10):
        ages.waiting("boot", "pod-1")
        await elapse(30)
    assert exported(metrics, "oldest_seconds") == 300
    assert exported(metrics, "count") == 1


async def test_a_wait_that_began_before_this_process_keeps_its_age(ages: Ages, metrics: Metrics, clock: Clock) -> None:
    ages.waiting("boot", "pod-1", since=clock.now() - timedelta(hours=2))
    await elapse(60)
    ages.waiting("boot", "pod-1", since=clock.now() - timedelta(hours=2, minutes=1))
    assert exported(metrics, "oldest_seconds") == 2 * 3600 + 60


async def test_another_beginning_replaces_the_first(ages: Ages, metrics: Metrics, clock: Clock) -> None:
    ages.waiting("boot", "pod-1", since=clock.now() - timedelta(hours=2))
    ages.waiting("boot", "pod-1", since=clock.now() - timedelta(seconds=5))
    assert exported(metrics, "oldest_seconds") == 5


async def test_a_beginning_in_the_future_is_an_age_of_zero(ages: Ages, metrics: Metrics, clock: Clock) -> None:
    ages.waiting("boot", "pod-1", since=clock.now() + timedelta(minutes=5))
    assert exported(metrics, "oldest_seconds") == 0


async def test_a_step_of_the_wall_clock_changes_no_age(metrics: Metrics) -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    ages = Ages(clock, metrics, "wait")
    ages.waiting("boot", "pod-1", since=clock.now() - timedelta(seconds=10))
    clock.jump(timedelta(days=3))
    await elapse(1)
    assert exported(metrics, "oldest_seconds") == 11


async def test_classes_of_waiting_are_independent(ages: Ages, metrics: Metrics) -> None:
    ages.waiting("boot", "pod-1")
    await elapse(5)
    ages.waiting("claim", "pod-1")
    ages.done("boot", "pod-1")
    await elapse(1)
    assert exported(metrics, "oldest_seconds", "boot") == 0
    assert exported(metrics, "oldest_seconds", "claim") == 1


async def test_an_object_that_is_gone_waits_for_nothing(ages: Ages, metrics: Metrics) -> None:
    ages.waiting("boot", "pod-1")
    ages.waiting("claim", "pod-1")
    ages.waiting("claim", "pod-2")
    ages.gone("pod-1")
    assert (exported(metrics, "count", "boot"), exported(metrics, "count", "claim")) == (0, 1)


async def test_a_block_waits_until_it_ends_even_by_an_error(ages: Ages, metrics: Metrics) -> None:
    async def fail() -> None:
        with ages.during("boot", "pod-1"):
            await elapse(7)
            assert exported(metrics, "oldest_seconds") == 7
            raise ValueError

    with pytest.raises(ValueError):
        await fail()
    assert exported(metrics, "count") == 0


async def test_the_oldest_are_listed_with_their_objects(ages: Ages) -> None:
    for number in range(5):
        ages.waiting("boot" if number % 2 else "claim", f"pod-{number}")
        await elapse(10)
    assert [(it.wait, it.key, it.age_s) for it in ages.oldest(2)] == [("claim", "pod-0", 50), ("boot", "pod-1", 40)]
    assert [it.key for it in ages.oldest(9, "boot")] == ["pod-1", "pod-3"]
    assert ages.oldest(9, "unknown") == []


async def test_memory_is_bounded_and_what_is_not_tracked_is_counted(
    ages: Ages, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ages_module, "MOST_TRACKED", 3)
    for number in range(5):
        ages.waiting("boot", number)
        await elapse(1)
    ages.waiting("boot", 0)
    assert exported(metrics, "count") == 3
    assert exported(metrics, "oldest_seconds") == 5
    assert exported(metrics, "untracked_total") == 2
    ages.done("boot", 0)
    ages.waiting("boot", 4)
    assert exported(metrics, "count") == 3


async def test_done_for_somebody_who_never_waited_is_harmless(ages: Ages, metrics: Metrics) -> None:
    ages.done("boot", "pod-1")
    assert exported(metrics, "count") == 0


steps = st.lists(st.tuples(st.sampled_from(["waiting", "done", "gone", "sleep"]), st.sampled_from("ab"), st.integers(0, 3)))


@given(steps)
def test_ages_agree_with_a_plain_list_of_who_waits(steps: list[tuple[str, str, int]]) -> None:
    async def main() -> None:
        clock, metrics = VirtualClock(asyncio.get_running_loop()), Metrics()
        ages, model = Ages(clock, metrics, "wait", waits="ab"), dict[tuple[str, int], float]()
        for verb, wait, key in steps:
            if verb == "waiting":
                ages.waiting(wait, key)
                model.setdefault((wait, key), clock.monotonic())
            elif verb == "done":
                ages.done(wait, key)
                model.pop((wait, key), None)
            elif verb == "gone":
                ages.gone(key)
                model = {at: began for at, began in model.items() if at[1] != key}
            else:
                await elapse(key)
            for name in "ab":
                began = [began_s for (of, _), began_s in model.items() if of == name]
                assert exported(metrics, "count", name) == len(began)
                assert exported(metrics, "oldest_seconds", name) == clock.monotonic() - min(began, default=clock.monotonic())

    run_virtual(main())
