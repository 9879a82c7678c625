"""The heap keeps each key once, in order, in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from applecart.kube.keyed_heap import SPARED_GHOSTS, KeyedHeap


def drained(heap: KeyedHeap[str]) -> list[str]:
    return [heap.pop() for _ in range(len(heap))]


def test_the_lowest_order_comes_first_and_equals_in_the_order_they_came() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    for key, order in (("b", 1), ("c", 2), ("a", 1), ("d", 0)):
        heap.put(key, order)
    assert drained(heap) == ["d", "b", "a", "c"]


def test_a_key_put_again_is_moved_not_doubled() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("a", 5)
    heap.put("b", 4)
    heap.put("a", 3)
    assert len(heap) == 2
    assert heap.order_of("a") == 3
    assert drained(heap) == ["a", "b"]


def test_a_discarded_key_never_comes_up() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("a", 1)
    heap.put("b", 2)
    heap.discard("a")
    heap.discard("never there")
    assert heap.first_order() == 2
    assert drained(heap) == ["b"]


def test_a_key_that_is_moved_forever_does_not_grow_memory() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("far", 1e9)
    for number in range(10_000):
        heap.put("restless", 1e6 - number)
        heap.discard("restless")
    assert len(heap._entries) <= 2 * len(heap) + SPARED_GHOSTS + 1


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 5)))))
def test_any_program_of_puts_and_discards_leaves_the_order_a_sorted_dictionary_has(
    program: list[tuple[str, int | None]],
) -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    model: dict[str, tuple[int, int]] = {}
    for number, (key, order) in enumerate(program):
        if order is None:
            heap.discard(key)
            model.pop(key, None)
        else:
            heap.put(key, order)
            model[key] = (order, number)
        first = min(model.values(), default=None)
        assert heap.first_order() == (first[0] if first else None)
        assert set(heap) == set(model)
    assert drained(heap) == sorted(model, key=lambda key: model[key])
