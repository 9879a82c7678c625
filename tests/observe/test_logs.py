"""Logs: one line per record that says which object it is about, and nothing that must not be seen."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import BadInput, Unreachable
from applecart.observe.log_format import Identified, JsonFormatter, Keyed, TextFormatter, plain, sentence, timestamp
from applecart.observe.logs import LogFormat, Logger, logger, setup_logging
from applecart.secrets import MASK, Secret
from tests.secret_guard import SecretGuard
from tests.virtual_time import elapse

TOKEN = "ghs_16C7e42F292c6912E7"


class Key(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Resource(NamedTuple):
    kind: str


class Pod:
    """An object as `api` shapes it."""

    resource = Resource("Pod")
    uid = "7d1c"

    def __init__(self, namespace: str, name: str) -> None:
        self.key = Key(namespace, name)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if not is_of_pytest(handler):
            root.removeHandler(handler)


def is_of_pytest(handler: logging.Handler) -> bool:
    return type(handler).__module__.startswith("_pytest.")


def detach_pytest() -> None:
    """Its handlers raise when a record cannot be shown, before ours gets it; they come back with the next phase."""
    root = logging.getLogger()
    for handler in filter(is_of_pytest, root.handlers[:]):
        root.removeHandler(handler)


@pytest.fixture
def stream(clock: Clock) -> io.StringIO:
    stream = io.StringIO()
    setup_logging("debug", "json", stream, clock)
    return stream


@pytest.fixture
def text_stream(clock: Clock) -> io.StringIO:
    stream = io.StringIO()
    setup_logging("debug", "text", stream, clock)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_line_with_time_level_logger_message_and_fields(stream: io.StringIO) -> None:
    logger("applecart.kubelet.pods").info("pod bound", object=Pod("default", "web-1"), took_s=1.25)
    assert stream.getvalue() == (
        '{"ts": "2026-01-01T00:00:00.000Z", "level": "info", "logger": "applecart.kubelet.pods", "msg": "pod bound", '
        '"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "7d1c", "took_s": 1.25}\n'
    )


async def test_the_time_of_a_record_is_the_injected_clock(clock: Clock) -> None:
    stream = io.StringIO()
    setup_logging("info", "json", stream, clock)
    await elapse(3600.5)
    logger("x").info("late")
    assert lines(stream)[0]["ts"] == "2026-01-01T01:00:00.500Z"


def test_a_time_in_another_zone_is_shown_in_utc() -> None:
    assert timestamp(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-01T00:00:00.000Z"


def test_a_bound_logger_adds_its_fields_to_every_record_and_leaves_its_parent_alone(stream: io.StringIO) -> None:
    parent = logger("x")
    child = parent.bind(Pod("ci", "a"), pool="m4").bind(attempt=2)
    child.info("one")
    parent.info("two")
    first, second = lines(stream)
    assert {first[field] for field in ("kind", "namespace", "name", "pool", "attempt")} == {"Pod", "ci", "a", "m4", 2}
    assert set(second) == {"ts", "level", "logger", "msg"}


def test_a_key_says_namespace_and_name_without_a_kind(stream: io.StringIO) -> None:
    logger("x").info("gone", object=Key("", "mac-7"))
    assert {name: value for name, value in lines(stream)[0].items() if name in ("kind", "namespace", "name", "uid")} == {
        "name": "mac-7"
    }


def test_the_object_of_a_call_wins_over_the_bound_one(stream: io.StringIO) -> None:
    logger("x").bind(Pod("a", "a")).info("moved", object=Pod("b", "b"))
    assert lines(stream)[0]["namespace"] == "b"


def test_keys_and_objects_are_told_apart_by_shape() -> None:
    assert isinstance(Pod("a", "b"), Identified)
    assert isinstance(Key("a", "b"), Keyed)
    assert not isinstance(Key("a", "b"), Identified)


def test_a_field_cannot_hide_what_every_record_has(stream: io.StringIO) -> None:
    logger("x").info("real", level="fake", ts=1, logger="fake")
    record = lines(stream)[0]
    assert (record["level"], record["level_"], record["logger"], record["msg"]) == ("info", "fake", "x", "real")


def test_a_percent_sign_in_a_message_is_only_a_percent_sign(stream: io.StringIO) -> None:
    logger("x").info("disk 91% full, %s left")
    assert lines(stream)[0]["msg"] == "disk 91% full, %s left"


def test_records_below_the_level_cost_no_formatting(clock: Clock) -> None:
    class Explosive:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    stream = io.StringIO()
    setup_logging("info", "json", stream, clock)
    logger("x").debug("hidden", value=Explosive())
    assert stream.getvalue() == ""


def test_records_of_libraries_come_out_the_same_way(stream: io.StringIO) -> None:
    logging.getLogger("aiohttp.server").warning("slow %s", "peer")
    logging.getLogger("aiohttp.access").info("GET /metrics")
    assert [(line["logger"], line["msg"]) for line in lines(stream)] == [("aiohttp.server", "slow peer")]


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_method_is_the_level(level: str, stream: io.StringIO) -> None:
    getattr(logger("x"), level)("said")
    assert lines(stream)[0]["level"] == level


def test_an_error_of_ours_is_one_sentence_without_a_traceback(stream: io.StringIO) -> None:
    try:
        raise Unreachable("mac-7 does not answer on SSH; it is tried again in 30 s") from OSError("no route")
    except Unreachable:
        logger("x").exception("probe failed")
    record = lines(stream)[0]
    assert record["error"] == "mac-7 does not answer on SSH; it is tried again in 30 s"
    assert record["error_class"] == "Unreachable"
    assert "traceback" not in record


def test_several_errors_of_ours_at_once_are_sentences_too(stream: io.StringIO) -> None:
    logger("x").error("failed", exc_info=ExceptionGroup("two", [BadInput("a is wrong"), Unreachable("b is away")]))
    record = lines(stream)[0]
    assert record["error"] == "a is wrong; b is away"
    assert "traceback" not in record


def test_an_error_nobody_foresaw_keeps_its_traceback(stream: io.StringIO) -> None:
    try:
        dict[str, str]()["spec"]
    except KeyError as error:
        logger("x").error("reconcile failed", exc_info=error)
    record = lines(stream)[0]
    assert record["error"] == "KeyError: 'spec'"
    assert "test_logs.py" in record["traceback"]


def test_one_unforeseen_error_among_ours_keeps_the_traceback(stream: io.StringIO) -> None:
    logger("x").error("failed", exc_info=ExceptionGroup("two", [BadInput("a is wrong"), KeyError("b")]))
    assert "KeyError: 'b'" in lines(stream)[0]["traceback"]


def test_an_error_as_a_field_is_its_sentence(stream: io.StringIO) -> None:
    logger("x").warning("will retry", error=Unreachable("b is away"), cause=OSError(2, "gone"))
    assert lines(stream)[0]["error"] == "b is away"
    assert lines(stream)[0]["cause"] == "FileNotFoundError: [Errno 2] gone"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_secret_gets_out_of_any_part_of_a_record(log_format: LogFormat, secret_guard: SecretGuard) -> None:
    secret, stream = Secret(TOKEN), io.StringIO()
    setup_logging("debug", log_format, stream)
    detach_pytest()
    with secret_guard.looking_away():
        log = logger("x").bind(url=f"https://x/?t={TOKEN}")
        log.info(f"token {TOKEN}", deep={TOKEN: [{"a": (TOKEN,)}]}, held=secret, key=Key("ns", TOKEN), names={TOKEN})
        log.error("failed", exc_info=ValueError(TOKEN))
        log.error("failed", exc_info=BadInput(TOKEN), error=KeyError(TOKEN))
        logging.getLogger("lib").warning("sent %s", TOKEN)
        logging.getLogger("lib").warning("%d", TOKEN)
    assert TOKEN not in stream.getvalue()
    assert stream.getvalue().count(MASK) >= 10


@pytest.mark.real_time
def test_a_record_that_cannot_be_shown_is_reported_without_its_content(
    stream: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    """The standard handler prints the arguments of such a record to stderr, secrets and all."""

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("broken")

    detach_pytest()
    logging.getLogger("lib").warning("%s %s", "only one")
    logger("lib").warning("m", value=Broken())
    shown = [line["msg"] for line in lines(stream)]
    assert len(shown) == 2
    assert all("a record of lib" in line and "cannot be shown" in line for line in shown)
    assert capfd.readouterr() == ("", "")


def test_a_closed_stream_never_raises_into_the_code_that_logs(stream: io.StringIO) -> None:
    stream.close()
    logger("x").error("nobody reads this")


def test_a_stream_that_knows_only_ascii_gets_the_record_escaped(clock: Clock) -> None:
    raw = io.BytesIO()
    setup_logging("info", "text", io.TextIOWrapper(raw, "ascii"), clock)
    logger("x").info("Zürich is ready")
    assert rb"Z\xfcrich is ready" in raw.getvalue()


def test_text_for_a_terminal_is_short_and_keeps_the_fields(text_stream: io.StringIO) -> None:
    logger("applecart.kubelet.pods").info("pod bound", object=Key("ci", "web-1"), took_s=1.25, why="two words", empty="")
    assert text_stream.getvalue() == (
        '00:00:00.000 INFO    kubelet.pods pod bound namespace=ci name=web-1 took_s=1.25 why="two words" empty=""\n'
    )


def test_text_shows_a_traceback_indented_below_its_record(text_stream: io.StringIO) -> None:
    logger("x").error("failed", exc_info=ValueError("odd"))
    first, *rest = text_stream.getvalue().splitlines()
    assert "traceback=" not in first
    assert rest == ["    ValueError: odd"]


@given(st.text(), st.text())
def test_no_text_can_forge_a_second_line_or_move_a_terminals_cursor(message: str, value: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, message, None, None)
    record.fields = {"value": value}
    for formatter in (JsonFormatter(_Noon()), TextFormatter(_Noon())):
        assert formatter.format(record).isprintable()


class _Noon:
    """A clock for formatters that stands still."""

    def __init__(self) -> None:
        self.random: Any = None

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(timezones=st.just(UTC)) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.frozensets(st.integers()),
)


@given(json_like)
def test_every_value_becomes_strict_json(value: Any) -> None:
    json.loads(json.dumps(plain(value), allow_nan=False))


def test_values_are_shown_as_people_write_them() -> None:
    assert plain(timedelta(minutes=1.5)) == 90.0
    assert plain(Key("a", "b")) == "a/b"
    assert plain(Pod("a", "b")) == "a/b"
    assert plain({"b", "a"}) == ["a", "b"]
    assert plain(float("inf")) == "inf"
    assert sentence(KeyError("a")) == "KeyError: 'a'"


@pytest.mark.parametrize(
    ("story", "shown"), [("out", '"level": "info"'), ("err", "INFO")], ids=["a file of its own", "one file"]
)
def test_a_log_in_one_stream_with_what_people_read_is_text(story: str, shown: str, tmp_path: Path) -> None:
    """`make up 2>&1 | less` showed lines of JSON between the lines to type."""
    with (tmp_path / "err").open("a") as stream, (tmp_path / story).open("a") as beside:
        setup_logging(stream=stream, beside=beside)
        logger("applecart.test").info("registered the Node")
    assert shown in (tmp_path / "err").read_text()


@pytest.mark.parametrize(("stream", "expected"), [(Terminal(), "INFO"), (io.StringIO(), '"level": "info"')])
def test_without_a_format_a_terminal_gets_text_and_a_pipe_gets_json(stream: io.StringIO, expected: str) -> None:
    setup_logging(stream=stream)
    logger("x").info("started")
    assert expected in stream.getvalue()


def test_setting_up_again_replaces_our_handler_and_no_other(clock: Clock) -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = io.StringIO(), io.StringIO()
    setup_logging("info", "json", first, clock)
    setup_logging("info", "json", second, clock)
    logger("x").info("once")
    assert (first.getvalue(), len(lines(second))) == ("", 1)
    assert other in logging.getLogger().handlers


def test_a_wrong_level_or_format_gets_a_sentence_that_names_the_flag() -> None:
    with pytest.raises(BadInput, match=r"--log-level 'loud'.*debug, info, warning, error"):
        setup_logging("loud")
    with pytest.raises(BadInput, match=r"--log-format 'xml'.*text or json"):
        setup_logging("info", "xml")  # type: ignore[arg-type]


def test_a_record_says_where_it_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    Logger(logging.getLogger("place"), {}).warning("here")
    assert caplog.records[0].filename == "test_logs.py"
