"""Regular expressions of a schema, matched as the real server matches them: RE2, in time linear to the text.

Python's engine is fifty times faster on short texts but may take exponential time. So it is used only where that cannot happen
and where both engines agree: a small common subset of the language, and a text that is not long. RE2 comes with CEL.
"""

import re
from functools import cache, lru_cache
from typing import Any

MAX_FAST_LENGTH = 512  # with at most two unbounded repetitions this is a quarter of a million steps at worst
MAX_FAST_REPEATS = 2

# Literals, plain escapes, classes, groups and repetition. No letter escapes, flags or look-around, no dollar but at the end.
_COMMON = re.compile(
    r"\^?(?:[A-Za-z0-9_ ,:;=@%#&~!<>'\"/-]|\\[.^$*+?{}()|\[\]\\/-]|\[\^?(?:\\[\\.\]\[/-]|[^\\\[\]&~|])+\]"
    r"|\((?:\?:|(?!\?))|[).|*+?]|\{\d+(?:,\d*)?\})*\$?"
)
_UNBOUNDED = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|[*+]|\{\d+,\}")


class Pattern:
    """One compiled pattern. `problem` says why it is none; it then matches nothing."""

    __slots__ = ("_fast", "problem", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.problem = problem_of(text)
        self._fast = None if self.problem else _fast(text)

    def matches(self, value: str) -> bool:
        if self._fast and len(value) <= MAX_FAST_LENGTH:
            return self._fast.search(value) is not None
        if self.problem:
            return False
        try:
            return _re2().eval(data={"self": value, "pattern": self.text}).value() is True
        except (RuntimeError, ValueError):  # a text that is no Unicode, which no pattern means
            return False


@cache
def _re2() -> Any:
    """The expression that matches; made when the first pattern comes, because the library is large."""
    from applecart.embedded.schema.cel_functions import cel

    environment = cel.NewEnv(variables={"self": cel.Type.STRING, "pattern": cel.Type.STRING})
    return environment.compile("self.matches(pattern)")


@lru_cache(maxsize=1024)
def problem_of(text: str) -> str:
    """Why RE2 does not take a pattern, in the words of Go's engine; "" when it does."""
    try:
        answer = _re2().eval(data={"self": "", "pattern": text})
        if isinstance(answer.value(), bool):
            return ""
        reason = str(answer.value())
    except (RuntimeError, ValueError):
        reason = "invalid UTF-8"
    reason = reason.rpartition("regular expression: ")[2]
    what, colon, where = reason.partition(": ")
    what = {"missing )": "missing closing )", "missing ]": "missing closing ]"}.get(what, what)
    return f"error parsing regexp: {what}: `{where}`" if colon else f"error parsing regexp: {what}"


@lru_cache(maxsize=1024)
def searchable(text: str) -> re.Pattern[str]:
    """For finding what matches, which the RE2 at hand cannot do; raises ValueError for a pattern that could take for ever."""
    if problem := problem_of(text):
        raise ValueError(problem)
    if not _is_quick(text):
        raise ValueError(f"the pattern {text!r} repeats a group without limit, which find and findAll do not support here")
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError):
        raise ValueError(f"the pattern {text!r} is not supported by find and findAll here") from None


def _is_quick(text: str) -> bool:
    unbounded = [match for match in _UNBOUNDED.finditer(text) if not match[0].startswith(("\\", "["))]
    nested = "){" in text or any(text[match.start() - 1] == ")" for match in unbounded)
    return not nested and len(unbounded) <= MAX_FAST_REPEATS


def _fast(text: str) -> re.Pattern[str] | None:
    if not _COMMON.fullmatch(text) or not _is_quick(text):
        return None
    # Python's dollar also matches before a final newline.
    python = text[:-1] + r"\Z" if text.endswith("$") and not text.endswith(r"\$") else text
    try:
        return re.compile(python, re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None
