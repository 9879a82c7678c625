"""Documents as a YAML stream that every YAML parser reads alike.

Parsers disagree on what a bare word is: `1e3` is text to one and a number to the next, `on` a word or a truth. A text is
therefore quoted unless nobody can take it for anything else. Lines of long texts stay lines, for whoever reads the file.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from applecart.embedded.server.syntax import NotYaml, parse_yaml
from applecart.errors import BadInput

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "inf", "nan"})
_BREAK = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_BLOCK = re.compile(r"[\x20-\x7e\u00a1-\ud7ff\n]+")  # what needs no escape


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        style = ""
    else:
        is_block = "\n" in text and _BLOCK.fullmatch(text) and not text.startswith((" ", "\n"))
        style = "|" if is_block and not re.search(r"[ \t]\n|[ \t]$", text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(document: Any) -> str:
    """One document of a stream, with its mark."""
    return f"---\n{yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)}"


def documents(text: str, source: str) -> Iterator[dict[str, Any]]:
    """The documents of a stream; empty ones are left out. Raises BadInput that names the document."""
    for number, part in enumerate(_split(text), 1):
        try:
            document = parse_yaml(part.encode("utf-8", "surrogatepass"))
        except NotYaml as error:
            raise BadInput(f"{source}, document {number}: {error}") from None
        if document is None:
            continue
        if not isinstance(document, dict):
            raise BadInput(f"{source}, document {number}: it is no object")
        yield document


def _split(text: str) -> Iterable[str]:
    return (part for part in _BREAK.split(text) if part.strip())
