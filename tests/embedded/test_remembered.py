"""What a server keeps of the texts that callers send."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from applecart.embedded.kinds.names import label_value_problems, qualified_name_problems
from applecart.embedded.kinds.pod_defaults import pull_policy_of
from applecart.embedded.kinds.resources import container_resource_name_problems
from applecart.embedded.remembered import LONGEST, remembered
from applecart.embedded.selectors import label_selector, parse_field_selector
from applecart.embedded.server.request import place_of

TIMES = 100
LONG = f"{'b' * 60}=a," * 30  # a path, a selector, a name: for some of them it is a wrong one


@pytest.mark.parametrize(
    "work",
    [
        place_of,
        parse_field_selector,
        label_selector,
        qualified_name_problems,
        label_value_problems,
        container_resource_name_problems,
        pull_policy_of,
    ],
)
def test_long_texts_are_not_kept(work: Callable[[str], object]) -> None:
    """URLs of strangers stayed in memory: 300 MB of 400 field selectors or 4,000 paths, before anybody was asked."""
    work("a=a")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(TIMES):
            work(f"{LONG}a{number}=a")
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10 * len(LONG)


def test_an_answer_about_a_short_text_is_worked_out_once() -> None:
    asked: list[str] = []

    @remembered(2)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    long = "a" * (LONGEST + 1)
    assert [length(text) for text in ("ab", "ab", long, long)] == [2, 2, len(long), len(long)]
    assert asked == ["ab", long, long]
