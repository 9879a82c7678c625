"""The query of a log."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.log_options import UNREADABLE, BadLogQuery, LogOptions, read_log_options

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, LogOptions()),
        ({"follow": "true", "timestamps": "1", "previous": "false"}, LogOptions(follow=True, timestamps=True)),
        ({"tailLines": "0", "limitBytes": "7"}, LogOptions(tail_lines=0, limit_bytes=7)),
        ({"sinceSeconds": "60"}, LogOptions(since=NOW - timedelta(seconds=60))),
        ({"sinceTime": "2026-03-01T11:00:00Z"}, LogOptions(since=NOW - timedelta(hours=1))),
        ({"sinceTime": "2026-03-01T11:00:00"}, LogOptions(since=NOW - timedelta(hours=1))),
        ({"sinceSeconds": str(2**62)}, LogOptions(since=datetime.min.replace(tzinfo=UTC))),
    ],
)
def test_a_query_is_read(query: dict[str, str], expected: LogOptions) -> None:
    assert read_log_options(query, NOW) == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"tailLines": "x"}, UNREADABLE),
        ({"tailLines": "1.5"}, UNREADABLE),
        ({"tailLines": "²"}, UNREADABLE),
        ({"limitBytes": "9" * 40}, UNREADABLE),
        ({"sinceTime": "yesterday"}, UNREADABLE),
        ({"tailLines": "-1"}, "tailLines is -1; it must be 0 or more"),
        ({"limitBytes": "0"}, "limitBytes is 0; it must be 1 or more"),
        ({"sinceSeconds": "0"}, "sinceSeconds is 0; it must be 1 or more"),
        ({"sinceSeconds": "1", "sinceTime": "2026-03-01T11:00:00Z"}, "at most one of sinceTime and sinceSeconds may be given"),
    ],
)
def test_what_cannot_be_asked_is_refused(query: dict[str, str], said: str) -> None:
    with pytest.raises(BadLogQuery) as refused:
        read_log_options(query, NOW)
    assert str(refused.value) == said


NAMES = ["follow", "previous", "timestamps", "tailLines", "sinceSeconds", "sinceTime", "limitBytes"]


@given(st.dictionaries(st.sampled_from(NAMES), st.text() | st.integers().map(str) | st.datetimes().map(datetime.isoformat)))
def test_any_query_is_read_or_refused(query: dict[str, str]) -> None:
    try:
        options = read_log_options(query, NOW)
    except BadLogQuery:
        return
    assert options.since is None or options.since.tzinfo is not None
