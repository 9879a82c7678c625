"""Regular expressions of schemas and rules, as the real server reads them: RE2's language, in time linear to the text.

RE2 never goes back in a text, so none makes it take for ever. Linear still is the length of the text times the size of the
program, so both are paid for. A pattern is compiled once; one whose program would be larger than any real one's is none.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped, import-not-found, unused-ignore]

from applecart.embedded.schema.budget import spend

MAX_MEMORY_BYTES = 1 << 20  # of one program and its states; the largest patterns of published definitions take a tenth
STEPS_OF_A_FAILURE = 10_000  # to find out that a program is too large
COMPILED_PER_STEP = 4  # instructions
MATCHED_PER_STEP = 200  # instructions times characters, where no table of states is small enough
_GO_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
}


class BadPattern(ValueError):
    """The text says why, in the words of Go's engine."""


class Pattern:
    """One compiled pattern. `problem` says why it is none; it then matches nothing."""

    __slots__ = ("_program", "problem", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.problem = ""
        self._program: Any = None
        try:
            self._program = compiled(text)
        except BadPattern as error:
            self.problem = str(error)

    def matches(self, value: str) -> bool:
        return self._program is not None and is_found(self._program, value)


@lru_cache(maxsize=1024)
def compiled(text: str) -> Any:
    """The program; raises BadPattern."""
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = MAX_MEMORY_BYTES, True, False
    try:
        program = re2.compile(text, options)
    except UnicodeEncodeError:
        raise BadPattern("error parsing regexp: invalid UTF-8") from None
    except re2.error as error:
        spend(STEPS_OF_A_FAILURE)
        what, colon, where = _words(error).partition(": ")
        what = _GO_WORDS.get(what, what)
        raise BadPattern(f"error parsing regexp: {what}: `{where}`" if colon else f"error parsing regexp: {what}") from None
    spend(program.programsize // COMPILED_PER_STEP)
    return program


def is_found(program: Any, text: str) -> bool:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a text that is no Unicode, which no pattern means
        return False
    spend(1 + len(encoded) * program.programsize // MATCHED_PER_STEP)
    return program.search(encoded) is not None


def found_in(text: str, pattern: str) -> Iterator[str]:
    """Everything that matches, as Go finds it: nothing empty right behind something else. Raises BadPattern."""
    program = compiled(pattern)
    end = -1
    spend(1 + len(text) * program.programsize // MATCHED_PER_STEP)
    for match in program.finditer(text):
        # The next one may have to look as far as the end of the text again.
        spend(1 + (len(text) - match.end()) * program.programsize // MATCHED_PER_STEP)
        if match.start() < match.end() or match.start() != end:
            yield match.group()
        end = match.end()


def _words(error: Exception) -> str:
    said = error.args[0]
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
