"""Values that must not be seen, and the removal of those that slipped into a text (I9).

A `Secret` shows itself as `Secret(***)` to str, repr, every kind of formatting, logging and tracebacks with locals. JSON
encoders (json, msgspec) and pickle raise TypeError on it: a document with a mask in place of a credential would be accepted
and used. `reveal()` is the one way out; call it where the value is handed over, and keep the result in no variable that lives
longer than that.

The values of living Secrets are registered, so that `redact` can mask them in any text, in the spellings they travel in. Of
signed tokens (JWT) it also masks those that nobody here holds any more: they tell by their shape what they are. This module
never writes anything anywhere.
"""

import base64
import hmac
import json
import re
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Self, final
from urllib.parse import quote, quote_plus

from applecart.errors import BadInput

MASK = "***"
MIN_REDACTED_CHARS = 8  # a shorter value ("admin") is part of ordinary text, and masking it would garble every log
_ARMOUR = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")  # the same around every PEM key
_AROUND_VALUES = " \t\"'{[(|>"
_NAMED = re.compile(r"""(?:-\s+)?+["']?+[\w./-]++["']?+\s*+[:=](?P<value>.*)""")  # a line of YAML, JSON or an environment file
# Every part of a JWT is base64url of JSON or of a signature. Written so that each word of a text is looked at once.
_JWT_MIDDLE = ".eyJ"
_JWT = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{16,}+")


@final
class Secret:
    """Holds one value that only `reveal` gives back. False when the value is empty."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):
            kind = type(value).__name__
            del value  # or a traceback with locals would show it
            raise TypeError(f"a Secret holds text, not {kind}")
        self._value = value
        registry = _registry
        registry.add(value)
        weakref.finalize(self, registry.dead.append, value).atexit = False

    @classmethod
    def from_file(cls, path: str | Path, what: str = "token") -> Self:
        """The text of a credential file without the whitespace around it, which editors and `echo` add."""
        try:
            text = Path(path).read_text("utf-8").strip()
        except UnicodeDecodeError:
            text, reason = "", "is not UTF-8 text"
        except OSError as error:
            text, reason = "", f"cannot be read ({error.strerror})"
        else:
            reason = "is empty"
        if not text:
            raise BadInput(f"the {what} file {path} {reason}; write the {what} there or name another file")
        return cls(text)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_utf8(self._value), _utf8(other._value))

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled; hand over where to read it instead")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__getstate__()


def redact(text: str) -> str:
    """The text with every registered value masked, also where it is base64, percent-encoded or escaped, and every JWT."""
    text = _registry.redact(text)
    return _JWT.sub(MASK, text) if _JWT_MIDDLE in text else text


@contextmanager
def registering_in(registry: "Registry") -> Iterator[None]:
    """While open, another registry is the process's. Tests keep their secrets apart with it."""
    global _registry
    outer, _registry = _registry, registry
    try:
        yield
    finally:
        _registry = outer


def current_registry() -> "Registry":
    return _registry


def spellings(value: str) -> set[str]:
    """How a value may look in a text. Empty when it is too short to be told from ordinary words."""
    core = value.strip()
    if len(core) < MIN_REDACTED_CHARS:
        return set()
    percent = {quote(core, safe="", errors="replace"), quote(core, errors="replace"), quote_plus(core, errors="replace")}
    found = {
        core,
        json.dumps(core)[1:-1],
        json.dumps(core, ensure_ascii=False)[1:-1],
        repr(core)[1:-1],
        *percent,
        *(re.sub("%..", lambda code: code.group().lower(), form) for form in percent),
        *_base64_spellings(_utf8(value)),
        *_base64_spellings(_utf8(core)),
        *_lines(core),
    }
    return {form for form in found if len(form) >= MIN_REDACTED_CHARS}


def _lines(core: str) -> Iterator[str]:
    """Each line of a value that has several: logs are read line by line, and a parser quotes the one it cannot read. Without
    those that every such document has: `context:` of a kubeconfig is in many a sentence, and a ruler under many a heading."""
    lines = core.splitlines()
    for line in lines if len(lines) > 1 else ():
        text = line.strip().rstrip(",")  # of JSON, which somebody may have sorted
        named = _NAMED.fullmatch(text)
        value = named["value"].strip(_AROUND_VALUES) if named else text
        if len(value) >= MIN_REDACTED_CHARS and len(set(text)) > 1 and not _ARMOUR.fullmatch(text):
            yield text


def _base64_spellings(raw: bytes) -> Iterator[str]:
    """Encoded alone, and as a part of something longer (`user:token` of basic auth, a whole kubeconfig)."""
    alone = base64.b64encode(raw).decode()
    inside = (_base64_inside(raw, offset) for offset in range(3))
    for form in (alone, alone.rstrip("="), *inside):
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _base64_inside(raw: bytes, offset: int) -> str:
    """The characters that are the same whatever precedes and follows, with `offset` bytes of a group before the value."""
    encoded = base64.b64encode(bytes(offset) + raw).decode().rstrip("=")
    first_whole = -(-offset * 8 // 6)  # a character holds 6 bits; the one that the neighbour shares is not ours alone
    last_whole = (offset + len(raw)) * 8 // 6
    return encoded[first_whole:last_whole]


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


class Registry:
    """Which spellings to look for. The cost of a look grows with the text, not with the number of secrets."""

    def __init__(self, *, forgets: bool = True) -> None:
        self.dead: deque[str] = deque()  # a finalizer may run anywhere, so it only appends here and takes no lock
        self._forgets = forgets
        self._lock = threading.Lock()
        self._uses: dict[str, int] = {}  # several Secrets may hold the same value
        self._by_head: dict[str, tuple[str, ...]] = {}

    def add(self, value: str) -> None:
        with self._lock:
            self._bury()
            self._add(spellings(value))

    def include(self, other: "Registry") -> None:
        """Look also for what another registry knows now."""
        with self._lock:
            self._add(form for form in tuple(other._uses) if form not in self._uses)

    def redact(self, text: str) -> str:
        parts, shown_until = [], 0
        for start, end in self.spans(text):
            parts += [text[shown_until:start], MASK]
            shown_until = end
        return "".join([*parts, text[shown_until:]]) if parts else text

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where registered values stand in the text, those that overlap or touch as one."""
        if self.dead:
            with self._lock:
                self._bury()
        found: list[tuple[int, int]] = []
        by_head = self._by_head
        for start in range(len(text) - MIN_REDACTED_CHARS + 1 if by_head else 0):
            forms = by_head.get(text[start : start + MIN_REDACTED_CHARS])
            if forms is None or not text.startswith(forms, start):
                continue
            end = start + next(len(form) for form in forms if text.startswith(form, start))  # the longest comes first
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((start, end))
        return found

    def _add(self, forms: Iterable[str]) -> None:
        new: dict[str, list[str]] = {}
        for form in forms:
            self._uses[form] = self._uses.get(form, 0) + 1
            if self._uses[form] == 1:
                new.setdefault(form[:MIN_REDACTED_CHARS], []).append(form)
        for head, more in new.items():  # at once: thousands of lines may begin alike
            self._by_head[head] = tuple(sorted((*self._by_head.get(head, ()), *more), key=len, reverse=True))

    def _bury(self) -> None:
        while self.dead and self._forgets:
            heads = set()
            for form in spellings(self.dead.popleft()):
                self._uses[form] -= 1
                if not self._uses[form]:
                    del self._uses[form]
                    heads.add(form[:MIN_REDACTED_CHARS])
            for head in heads:
                rest = tuple(form for form in self._by_head[head] if form in self._uses)
                if rest:
                    self._by_head[head] = rest
                else:
                    del self._by_head[head]


_registry = Registry()
