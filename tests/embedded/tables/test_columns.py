"""Ages as people read them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables.columns import age, custom_age, duration_text
from tests.embedded.tables.documents import VALUES

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + 40 * DAY, "8y"),
        (2000 * YEAR, "292y"),
    ],
)
def test_a_duration_has_two_or_three_figures(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.integers(0, 20 * YEAR))
def test_a_duration_reads_back_as_nearly_the_same(seconds: int) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    total, digits = 0, ""
    for char in duration_text(seconds):
        if char.isdigit():
            digits += char
        else:
            total, digits = total + int(digits) * units[char], ""
    assert total <= seconds < total * 1.15 + 1


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-06-01T11:59:00Z", "60s"),
        ("2026-06-01T11:59:00.600000Z", "59s"),
        ("2026-06-01T13:59:00+02:00", "60s"),
        ("2026-06-01T12:01:00Z", "<invalid>"),
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("yesterday", "<unknown>"),
        ("2026-06-01T11:59:00", "<unknown>"),
        (5, "<unknown>"),
    ],
)
def test_the_age_of_a_built_in_object(stamp: Any, text: str) -> None:
    assert age(stamp, NOW) == text


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-06-01T11:59:00Z", "60s"),
        ("2026-06-01T11:59:00.123456789Z", "59s"),
        ("2026-06-01T11:59:00,5Z", "59s"),
        ("", "<unknown>"),
        ("null", "<unknown>"),
        ("0001-01-01T00:00:00Z", "<unknown>"),
        ("0001-01-01T00:00:00+23:00", "292y"),
        ("2026-06-01", "<invalid>"),
        ("20260601T115900Z", "<invalid>"),
        ("2026-06-01T11:59:00", "<invalid>"),
        ("2026-13-01T11:59:00Z", "<invalid>"),
        ("x", "<invalid>"),
    ],
)
def test_the_age_in_a_date_column(stamp: str, text: str) -> None:
    assert custom_age(stamp, NOW) == text


@given(st.timedeltas(timedelta(0), timedelta(days=3000)))
def test_the_two_ages_agree_on_instants(passed: timedelta) -> None:
    stamp = (NOW - passed).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert age(stamp, NOW) == custom_age(stamp, NOW)


@given(VALUES)
def test_any_value_has_an_age(value: Any) -> None:
    assert isinstance(age(value, NOW), str)
    if isinstance(value, str):
        assert isinstance(custom_age(value, NOW), str)
