"""The query of a log: what is asked, what is refused, and what the agent is asked. Texts are the real server's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.log_options import read_log_options

NAMES = (
    "container",
    "follow",
    "previous",
    "timestamps",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "limitBytes",
    "insecureSkipTLSVerifyBackend",
    "stream",
    "bogus",
)


@pytest.mark.parametrize(
    ("query", "agent_query"),
    [
        ({}, []),
        ({"follow": "true", "container": "a"}, [("follow", "true")]),
        ({"follow": ""}, [("follow", "true")]),
        ({"follow": "x", "previous": "False", "timestamps": "0"}, [("follow", "true")]),
        ({"tailLines": "0", "limitBytes": "1"}, [("limitBytes", "1"), ("tailLines", "0")]),
        ({"sinceSeconds": "+5"}, [("sinceSeconds", "5")]),
        ({"sinceTime": "2020-01-01T02:00:00+02:00"}, [("sinceTime", "2020-01-01T00:00:00Z")]),
        ({"sinceTime": ""}, [("sinceTime", "0001-01-01T00:00:00Z")]),
        ({"bogus": "1"}, []),
    ],
)
def test_the_agent_is_asked_for_what_the_client_asked(query: dict[str, str], agent_query: list[tuple[str, str]]) -> None:
    assert read_log_options("job", query).agent_query() == agent_query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"tailLines": ""}, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"limitBytes": "9" * 20}, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ({"tailLines": "1.5", "sinceSeconds": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"sinceTime": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ({"sinceTime": "2020-01-01"}, 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
    ],
)
def test_a_parameter_that_cannot_be_read_is_a_bad_request(query: dict[str, str], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_log_options("job", query)
    assert (refused.value.code, refused.value.message) == (400, message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2020-01-01T00:00:00Z"},
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ({"stream": "Stdout"}, "stream: Forbidden: may not be specified"),
        (
            {"tailLines": "-1", "limitBytes": "0", "sinceSeconds": "0"},
            "[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater "
            "than 0, sinceSeconds: Invalid value: 0: must be greater than 0]",
        ),
    ],
)
def test_options_that_make_no_sense_are_invalid(query: dict[str, str], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_log_options("job", query)
    assert (refused.value.code, refused.value.message) == (422, f'PodLogOptions "job" is invalid: {message}')


@given(st.dictionaries(st.sampled_from(NAMES), st.text() | st.integers().map(str) | st.datetimes().map(str)))
def test_any_query_is_read_or_refused(query: dict[str, str]) -> None:
    code = 200
    try:
        read_log_options("job", query)
    except Refusal as refusal:
        code = refusal.code
    assert code in (200, 400, 422)
