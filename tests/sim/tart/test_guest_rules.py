"""How a guest behaves: rules by glob, the last one that fits wins, and its own environment has the last word."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.sim.tart.guest_rules import behaviour, from_environment, read_rules
from applecart.sim.tart.host_facts import IN_A_HURRY, Pace
from applecart.sim.tart.json_file import save
from applecart.sim.tart.refusals import Refused

IMAGE = "ghcr.io/acme/macos@sha256:" + "a" * 64


def test_the_last_rule_that_fits_wins_field_by_field(tmp_path: Path) -> None:
    rules = [
        {"boot_s": 30, "exit_code": 1},
        {"vm": "slow-*", "boot_s": 300},
        {"image": "ghcr.io/acme/*", "runs_s": 60},
        {"vm": "other", "boot_s": 1},
    ]
    save(tmp_path / "guests.json", rules)
    slow = behaviour(read_rules(tmp_path), Pace(), "slow-1", IMAGE, {})
    assert (slow.boot_s, slow.exit_code, slow.runs_s) == (300, 1, 60)
    other = behaviour(read_rules(tmp_path), Pace(), "other", "", {"APPLECART_SIM_EXIT_CODE": "0"})
    assert (other.boot_s, other.exit_code, other.runs_s) == (1, 0, None)


def test_without_rules_the_pace_of_the_host_decides(tmp_path: Path) -> None:
    assert behaviour(read_rules(tmp_path), Pace(), "v", IMAGE, {}).boot_s == 6
    assert behaviour(read_rules(tmp_path), IN_A_HURRY, "v", IMAGE, {}).boot_s == 0.3


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"{}", b'[{"boot_s": "soon"}]', b'[{"bot_s": 1}]', b"\xff", b'[{"writes_hostile": "x"}]'),
        *(b'[{"log_every_s": 0}]', b'[{"boot_s": -1}]', b'[{"runs_s": 1e300}]', b'[{"exit_code": 256}]'),
    ],
)
def test_a_wrong_rule_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "guests.json").write_bytes(content)
    with pytest.raises(Refused, match=r"guests\.json cannot be used"):
        behaviour(read_rules(tmp_path), Pace(), "v", IMAGE, {})


@given(
    st.dictionaries(st.sampled_from(["APPLECART_SIM_RUN_SECONDS", "APPLECART_SIM_EXIT_CODE", "APPLECART_SIM_LOG"]), st.text())
)
def test_an_environment_never_breaks_a_guest(env: dict[str, str]) -> None:
    said = from_environment(env)
    assert set(said) <= {"runs_s", "exit_code", "log"}
    code = said.get("exit_code", 0)
    assert isinstance(code, int)
    assert 0 <= code <= 255


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("APPLECART_SIM_RUN_SECONDS", text) for text in ("nan", "inf", "-1", "1e99", "soon")),
        *(("APPLECART_SIM_EXIT_CODE", text) for text in ("256", "-1", "none")),
    ],
)
def test_a_value_that_cannot_be_meant_ends_the_job_with_a_sentence_and_2(name: str, text: str) -> None:
    """It was ignored, and the job ran on."""
    said = from_environment({"APPLECART_SIM_LOG": "building", name: text})
    assert (said["runs_s"], said["exit_code"]) == (0.0, 2)
    assert f"{name} is {text!r}; give " in str(said["log"])


def test_an_empty_value_says_nothing() -> None:
    assert from_environment({"APPLECART_SIM_RUN_SECONDS": "", "APPLECART_SIM_EXIT_CODE": ""}) == {}


def test_rules_are_read_again_for_every_guest(tmp_path: Path) -> None:
    save(tmp_path / "guests.json", [{"boot_s": 1}])
    assert behaviour(read_rules(tmp_path), Pace(), "v", "", {}).boot_s == 1
    save(tmp_path / "guests.json", [{"boot_s": 2}])
    assert behaviour(read_rules(tmp_path), Pace(), "v", "", {}).boot_s == 2
