"""Fails every test in which a registered secret gets out (I9).

It reads along wherever text leaves the code under test: log records (message, arguments, fields, error), stdout and stderr,
warnings of unraisable errors, the texts of our errors and of any error a test caught with `pytest.raises`, the argv of child
processes, and what `observe.published` reports (Events, conditions, metrics). Texts are judged when the test is over, against
every secret that existed during it, so a text that went out before its secret was registered counts too. What an earlier
test registered and Python has not collected yet does not count: its values may be ordinary words here.

Redaction is no excuse: a record is read as the code made it. A test that lets a secret out on purpose, to show that it is
masked, does so inside `with secret_guard.looking_away():`.

What `redact` masks in a test includes every value that the test ever made a Secret of, however long ago: such a test cannot
fail because somebody let go of one too early. One that must uses the fixture `forgotten_secrets`.
"""

import logging
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest

from applecart import observe
from applecart.errors import ApplecartError
from applecart.secrets import Registry, current_registry, redact, registering_in

MOST_TEXTS = 50_000  # of one test; enough for every test that should be one
SHOWN_CHARS = 200
STANDARD_ATTRIBUTES = {*vars(logging.makeLogRecord({})), "message", "asctime"}


class Text(NamedTuple):
    """Something that got out, and through which channel."""

    channel: str
    text: str


def holds_secret(text: str) -> bool:
    """Whether a registered value stands in the text."""
    return bool(current_registry().spans(text))


class SecretGuard:
    """Collects the texts of one test."""

    def __init__(self) -> None:
        self._texts: list[Text] = []
        self._looks = True

    def saw(self, channel: str, text: str) -> None:
        if self._looks and text and len(self._texts) < MOST_TEXTS:
            self._texts.append(Text(channel, text))

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        self._looks = False
        try:
            yield
        finally:
            self._looks = True

    def take_leaks(self) -> list[str]:
        """One line per text that holds a secret, masked, for the person who must find where it came from. Told once."""
        found = [it for it in self._texts if holds_secret(it.text)]
        self._texts = [it for it in self._texts if it not in found]
        return list(dict.fromkeys(f"{channel}: {_excerpt(text)}" for channel, text in found))


def _excerpt(text: str) -> str:
    shown = " ".join(redact(text).split())
    at = max(0, shown.find("***") - SHOWN_CHARS // 2)
    return shown[at : at + SHOWN_CHARS]


def error_texts(error: BaseException | None) -> Iterator[str]:
    """What an error and all it was caused by say; not its source lines, where a test may well spell a secret out."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        it = todo.pop()
        if it is None or id(it) in seen:
            continue
        seen.add(id(it))
        yield "".join(traceback.format_exception_only(it))
        yield from map(str, it.args)
        todo += [it.__cause__, it.__context__]
        if isinstance(it, BaseExceptionGroup):
            todo += it.exceptions


def record_texts(record: logging.LogRecord) -> Iterator[str]:
    """The message, and every value on its own: what the chosen format hides may show in another."""
    with suppress(Exception):  # arguments that do not fit the message
        yield record.getMessage()
    yield from error_texts(record.exc_info[1] if record.exc_info else None)
    if not record.exc_info and record.exc_text:
        yield record.exc_text
    args = record.args.values() if isinstance(record.args, dict) else record.args or ()
    extra = (value for name, value in vars(record).items() if name not in STANDARD_ATTRIBUTES)
    for value in (record.msg, *args, *extra):
        yield from value_texts(value)


def value_texts(value: object) -> Iterator[str]:
    for show in (str, repr):
        with suppress(Exception):  # a value that cannot be shown shows nothing
            yield show(value)
    if isinstance(value, dict):
        for inner in value.values():
            yield from value_texts(inner)


_current: list[SecretGuard] = []  # the innermost is the running test's


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Python cannot take an audit hook back, so one serves all tests."""
    if _current and event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        argv = args[0] if event == "os.system" else args[1]
        words = argv if isinstance(argv, list | tuple) else [argv]
        _current[-1].saw("argv", " ".join(it.decode("utf-8", "replace") if isinstance(it, bytes) else str(it) for it in words))


sys.addaudithook(_audit)


@contextmanager
def watching(guard: SecretGuard) -> Iterator[None]:
    """Reads along in every channel while open."""
    logger_handle = logging.Logger.handle
    raises_exit = pytest.RaisesExc.__exit__
    group_exit = pytest.RaisesGroup.__exit__
    read_captured = pytest.CaptureFixture.readouterr
    unraisable = sys.unraisablehook

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        for text in record_texts(record):
            guard.saw("log", text)
        logger_handle(self, record)

    def caught(leave: Any) -> Any:
        def __exit__(self: Any, kind: Any, error: BaseException | None, trace: Any) -> Any:
            __tracebackhide__ = True
            for text in error_texts(error):
                guard.saw("error", text)
            return leave(self, kind, error, trace)

        return __exit__

    def made(self: ApplecartError, *args: Any) -> None:
        for arg in args:
            guard.saw("error", str(arg))
        Exception.__init__(self, *args)

    def readouterr(self: Any) -> Any:
        captured = read_captured(self)
        guard.saw("stdout", str(captured.out))
        guard.saw("stderr", str(captured.err))
        return captured

    def on_unraisable(event: Any) -> None:
        for text in error_texts(event.exc_value):
            guard.saw("unraisable error", text)
        unraisable(event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "handle", handle)
        patch.setattr(pytest.RaisesExc, "__exit__", caught(raises_exit))
        patch.setattr(pytest.RaisesGroup, "__exit__", caught(group_exit))
        patch.setattr(pytest.CaptureFixture, "readouterr", readouterr)
        patch.setattr(ApplecartError, "__init__", made)
        patch.setattr(sys, "unraisablehook", on_unraisable)
        observe.sinks.append(guard.saw)
        _current.append(guard)
        try:
            yield
        finally:
            _current.remove(guard)
            observe.sinks.remove(guard.saw)


_guard_of = pytest.StashKey[SecretGuard]()
_shared = current_registry()  # what modules and fixtures of wider scope made, which every later test may leak


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    guard = item.stash[_guard_of] = SecretGuard()
    own = Registry(forgets=False)
    own.include(_shared)
    with registering_in(own), watching(guard):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    own = current_registry()
    try:
        with registering_in(_shared):
            return (yield)
    finally:
        own.include(_shared)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    guard = item.stash[_guard_of]
    for name, text in report.sections:
        if not name.startswith("Captured log"):  # records were read when they were made
            guard.saw(name.removeprefix("Captured "), text)
    if report.when == "setup" or report.outcome != "passed":
        return report
    leaks = guard.take_leaks()
    if leaks:
        report.outcome = "failed"
        report.longrepr = "\n".join(["a secret got out (secret_guard):", *leaks])
    return report


@pytest.fixture
def secret_guard(request: pytest.FixtureRequest) -> SecretGuard:
    """For a test that lets a secret out on purpose."""
    guard: SecretGuard = request.node.stash[_guard_of]
    return guard


class _ForgettingRegistry(Registry):
    """Forgets values with the last Secret that holds them; the guard's own goes on knowing them."""

    def __init__(self, guards_own: Registry) -> None:
        super().__init__()
        self._guards_own = guards_own
        self.include(guards_own)

    def add(self, value: str) -> None:
        self._guards_own.add(value)
        super().add(value)


@pytest.fixture
def forgotten_secrets() -> Iterator[None]:
    """As in production, `redact` knows only values that somebody still holds: for tests of who holds them, and how long."""
    with registering_in(_ForgettingRegistry(current_registry())):
        yield
