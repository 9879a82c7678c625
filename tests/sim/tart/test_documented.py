"""Whoever tries the simulated Tart finds every switch of it on one page."""

import re
from pathlib import Path

import msgspec
import pytest

from applecart.sim.tart.faults import DURING, Fault, Faults
from applecart.sim.tart.guest_rules import Rule
from applecart.sim.tart.host_facts import HostFacts, Pace

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "run-tart-kubelet.md"


@pytest.mark.parametrize("struct", [Fault, Rule, HostFacts, Pace])
def test_every_field_is_on_the_page(struct: type[msgspec.Struct]) -> None:
    words = set(re.findall(r"`([a-z_]+)`", PAGE.read_text()))
    assert set(struct.__struct_fields__) <= words
    assert set(DURING) <= words


def test_the_example_on_the_page_can_be_used() -> None:
    example = next(text for text in re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL) if text.startswith("{"))
    found = msgspec.json.decode(example, type=Faults)
    assert found.faults
    assert found.guests
