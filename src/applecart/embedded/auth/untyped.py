"""Reading members of documents whose types nobody has checked.

Who may do what is decided on objects that people wrote. A member of the wrong type grants nothing: it reads as absent, and
never as an exception in the middle of a decision.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

Document = dict[str, Any]


def mapping(value: Any) -> Document:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in items(value) if isinstance(one, str))


def mappings(value: Any) -> list[Document]:
    return [one for one in items(value) if isinstance(one, dict)]


def metadata(obj: Any) -> Document:
    return mapping(mapping(obj).get("metadata"))


def name_of(obj: Any) -> str:
    return text(metadata(obj).get("name"))


def namespace_of(obj: Any) -> str:
    return text(metadata(obj).get("namespace"))


def uid_of(obj: Any) -> str:
    return text(metadata(obj).get("uid"))


def texts_by_name(value: Any) -> dict[str, str]:
    """A map of labels or annotations."""
    return {name: one for name, one in mapping(value).items() if isinstance(name, str) and isinstance(one, str)}


def secret_data(secret: Any, name: str) -> bytes:
    """One value of a Secret; what cannot be read is empty."""
    try:
        return b64decode(text(mapping(mapping(secret).get("data")).get(name)), validate=True)
    except (Base64Error, ValueError):
        return b""


def go_list(values: tuple[str, ...] | list[str]) -> str:
    """Strings as the real server shows them inside a sentence: `["a" "b"]`."""
    return "[" + " ".join(go_quoted(one) for one in values) + "]"


def go_quoted(value: str) -> str:
    """A string in quotes on one line; characters that would break the line or the quotes are escaped."""
    shown = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else one.encode("unicode_escape", "replace").decode() for one in shown) + '"'
