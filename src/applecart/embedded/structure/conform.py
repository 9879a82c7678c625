"""Brings a document of a built-in kind into the form the API stores, or refuses it in the words of a real server.

The result is what decoding into the Go type and encoding again would give, before defaults: unknown members are dropped and
reported, zeros and nulls shown as Go shows them, quantities and timestamps canonical. Most documents take the quick way
(`fast`); those that need a judgement are walked (`walk`). The given document is not changed.
"""

from dataclasses import dataclass
from typing import Any

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.structure.fast import conform_fast
from applecart.embedded.structure.table import StructType
from applecart.embedded.structure.walk import Misfit, Walk

MAX_REPORTED = 100  # strict problems that a server lists; the rest would only fill a log


@dataclass(frozen=True, slots=True)
class Conformed:
    document: dict[str, Any]
    unknown: tuple[str, ...] = ()  # paths of members that were dropped, in the order of the document

    @property
    def problems(self) -> list[str]:
        """What strict validation would refuse, as sentences."""
        return [f"unknown field {quoted(path)}" for path in dict.fromkeys(self.unknown)][:MAX_REPORTED]


def conform(document: dict[str, Any], type: StructType) -> Conformed:
    """The stored form. Raises Refusal (400) for a document that does not fit its type."""
    quick = conform_fast(document, type)
    return Conformed(quick) if quick is not None else conform_exactly(document, type)


def conform_exactly(document: dict[str, Any], type: StructType) -> Conformed:
    """The same, without the quick way."""
    walk = Walk()
    try:
        conformed = walk.struct(document, type, f"v1.{type.go_name}")
    except Misfit as error:
        raise _refusal(document, type, str(error)) from error
    except RecursionError as error:
        raise _refusal(document, type, "exceeded max depth") from error
    if walk.mismatch:
        raise _refusal(document, type, walk.mismatch)
    return Conformed(conformed, tuple(walk.unknown))


def strict_refusal(document: dict[str, Any], type: StructType, problems: list[str]) -> Refusal:
    """The refusal of `fieldValidation=Strict`."""
    return _refusal(document, type, f"strict decoding error: {', '.join(problems)}")


def _refusal(document: Any, type: StructType, why: str) -> Refusal:
    named = document if isinstance(document, dict) else {}
    kind = named.get("kind") if isinstance(named.get("kind"), str) else ""
    api_version = named.get("apiVersion") if isinstance(named.get("apiVersion"), str) else ""
    version = str(api_version or type.package).rsplit("/", 1)[-1]
    return bad_request(f"{kind or type.go_name} in version {quoted(version)} cannot be handled as a {type.go_name}: {why}")
