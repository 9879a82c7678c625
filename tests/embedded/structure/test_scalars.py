"""Base64 and timestamps in their stored form. Every expectation is what a real API server answered."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.structure.scalars import (
    MICROSECONDS,
    SECONDS,
    BadBase64,
    BadInstant,
    canonical,
    from_unix,
    microseconds,
    whole_seconds,
)


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [("", ""), ("YQ==", "YQ=="), ("YQ==\n", "YQ=="), ("Y\r\nQ=\n=", "YQ=="), ("YR==", "YQ=="), ("AAEC", "AAEC")],
)
def test_bytes_are_stored_on_one_line(given_text: str, stored: str) -> None:
    assert canonical(given_text) == stored


@pytest.mark.parametrize(
    ("text", "at"),
    [("!!", 0), ("YQ", 0), ("YQ=", 3), ("YQ=x", 2), ("YQ==YQ==", 4), ("=YQ", 0), ("hunter2!", 7), ("YWE", 0), ("YWFhY", 4)],
)
def test_a_fault_is_told_by_its_place_and_not_by_its_text(text: str, at: int) -> None:
    with pytest.raises(BadBase64) as refused:
        canonical(text)
    assert str(refused.value) == f"illegal base64 data at input byte {at}"


@given(st.binary(max_size=40))
def test_what_was_encoded_is_stored_as_it_is(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical(text) == text


@given(st.text(max_size=12) | st.from_regex(r"[A-Za-z0-9+/=\n]{0,12}"))
def test_any_text_is_base64_or_refused(text: str) -> None:
    try:
        stored = canonical(text)
    except BadBase64:
        return
    assert base64.b64decode(stored, validate=True) is not None


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T1:00:00Z", "2020-01-01T01:00:00Z"),
        ("2020-01-01T00:00:00.999Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00,5+01:00", "2019-12-31T23:00:00Z"),
        ("2020-01-01T00:00:00-00:00", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00+24:00", "2019-12-31T00:00:00Z"),
        ("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z"),
        ("0099-02-03T04:05:06Z", "0099-02-03T04:05:06Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_an_instant_is_stored_in_utc_and_whole_seconds(given_text: str, stored: str | None) -> None:
    assert whole_seconds(given_text) == stored


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("2020-01-01T00:00:00.123456Z", "2020-01-01T00:00:00.123456Z"),
        ("2020-01-01T00:00:00,123456Z", "2020-01-01T00:00:00.123456Z"),
        ("2020-01-01T00:00:00.123456+01:30", "2019-12-31T22:30:00.123456Z"),
        ("0001-01-01T00:00:00.000000Z", None),
    ],
)
def test_a_micro_time_keeps_six_digits(given_text: str, stored: str | None) -> None:
    assert microseconds(given_text) == stored


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'as "{layout}": cannot parse "" as "2006"'),
        ("x", 'as "{layout}": cannot parse "x" as "2006"'),
        ("2020-1-01T00:00:00Z", 'as "{layout}": cannot parse "1-01T00:00:00Z" as "01"'),
        ("2020-01-01", 'as "{layout}": cannot parse "" as "T"'),
        ("2020-01-01 00:00:00Z", 'as "{layout}": cannot parse " 00:00:00Z" as "T"'),
        ("2020-01-01T00:00:0Z", 'as "{layout}": cannot parse "0Z" as "05"'),
        ("2020-01-01T00:00:00", 'as "{layout}": cannot parse "" as "Z07:00"'),
        ("2020-01-01T00:00:00z", 'as "{layout}": cannot parse "z" as "Z07:00"'),
        ("2020-01-01T00:00:00+0100", 'as "{layout}": cannot parse "+0100" as "Z07:00"'),
    ],
)
def test_text_that_is_no_instant_is_refused_where_it_stops_making_sense(text: str, why: str) -> None:
    with pytest.raises(BadInstant) as refused:
        whole_seconds(text)
    assert str(refused.value) == f'parsing time "{text}" {why.format(layout=SECONDS)}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2020-13-01T00:00:00Z", "month out of range"),
        ("2020-00-01T00:00:00Z", "month out of range"),
        ("2020-01-00T00:00:00Z", "day out of range"),
        ("2021-02-29T00:00:00Z", "day out of range"),
        ("2020-01-01T24:00:00Z", "hour out of range"),
        ("2020-01-01T00:60:00Z", "minute out of range"),
        ("2020-01-01T00:00:60Z", "second out of range"),
        ("2020-01-01T00:00:00+25:00", "time zone offset hour out of range"),
        ("2020-01-01T00:00:00Zx", 'extra text: "x"'),
    ],
)
def test_an_instant_that_does_not_exist_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadInstant) as refused:
        whole_seconds(text)
    assert str(refused.value) == f'parsing time "{text}": {why}'


@pytest.mark.parametrize(
    ("text", "rest", "element"),
    [
        ("2020-01-01T00:00:00Z", "Z", ".000000"),
        ("2020-01-01T00:00:00.12345Z", ".12345Z", ".000000"),
        ("2020-01-01T00:00:00.1234567Z", "7Z", "Z07:00"),
    ],
)
def test_a_micro_time_without_six_digits_is_refused(text: str, rest: str, element: str) -> None:
    with pytest.raises(BadInstant) as refused:
        microseconds(text)
    assert str(refused.value) == f'parsing time "{text}" as "{MICROSECONDS}": cannot parse "{rest}" as "{element}"'


def test_a_refusal_is_plain_ascii_on_one_line() -> None:
    with pytest.raises(BadInstant) as refused:
        whole_seconds('\u00e9\n"')
    assert '"\\xc3\\xa9\\x0a\\""' in str(refused.value)


@pytest.mark.parametrize(
    ("seconds", "micro", "stored"),
    [(0, "", "1970-01-01T00:00:00Z"), (-62135596800, "", None), (1, "000002", "1970-01-01T00:00:01.000002Z")],
)
def test_instants_from_protobuf_read_like_those_from_json(seconds: int, micro: str, stored: str | None) -> None:
    assert from_unix(seconds, micro) == stored


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 253402300800])
def test_an_instant_beyond_the_calendar_is_refused(seconds: int) -> None:
    with pytest.raises(BadInstant):
        from_unix(seconds)


@given(st.text(max_size=30) | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})"))
def test_any_text_is_an_instant_or_refused(text: str) -> None:
    for read in (whole_seconds, microseconds):
        try:
            stored = read(text)
        except BadInstant:
            continue
        assert stored is None or read(stored) == stored
