"""Decodes protobuf request bodies of built-in kinds into the JSON document that the same object would be.

A body is four bytes of magic and an envelope with apiVersion, kind and the message. Go clients send these for built-in kinds
and have no other way. Zero and absent are told apart by `conform`, which knows the pointers. Answers are never protobuf.
"""

from typing import Any

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.messages import decode_struct
from applecart.embedded.structure.types import type_of
from applecart.embedded.structure.wire import Malformed, members, text

MAGIC = b"k8s\x00"
_SCHEME = "pkg/runtime/scheme.go:111"  # how the real server names its registry in messages
_SUMMARY_BYTES = 30


def decode_protobuf(body: bytes, api_version: str = "", kind: str = "") -> dict[str, Any]:
    """The document. `api_version` and `kind` are what the request's path expects: they stand in where the envelope is silent,
    and refusals name the kind. Raises Refusal (400) for anything else than a complete message of a built-in kind."""
    try:
        found_version, found_kind, message = _envelope(body)
    except Malformed as error:
        shown = _summary(body)
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error} ({shown})") from error
    found_version, found_kind = found_version or api_version, found_kind or kind
    type = type_of(found_version, found_kind)
    if type is None:
        why = f"no kind {quoted(found_kind)} is registered for version {quoted(found_version)} in scheme {quoted(_SCHEME)}"
        raise _refusal(found_version, found_kind, kind, why)
    try:
        decoded = decode_struct(message, type)
    except Malformed as error:
        raise _refusal(found_version, found_kind, kind, str(error)) from error
    return conform({**decoded, "apiVersion": found_version, "kind": found_kind}, type).document


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    if not body:
        raise Malformed("empty data")
    if not body.startswith(MAGIC):
        numbers = " ".join(map(str, MAGIC))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{numbers}]")
    if len(body) == len(MAGIC):
        raise Malformed("empty body")
    names = {1: "", 2: ""}
    message = b""
    for number, _, value in members(body[len(MAGIC) :], "Unknown"):
        if number == 1:
            for part, _, name in members(_bytes(value, "TypeMeta"), "TypeMeta"):
                if part in names:
                    names[part] = text(_bytes(name, "APIVersion" if part == 1 else "Kind"))
        elif number == 2:
            message = _bytes(value, "Raw")
    return names[1], names[2], message


def _bytes(value: int | bytes, field: str) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed(f"proto: wrong wireType = 0 for field {field}")
    return value


def _refusal(found_version: str, found_kind: str, kind: str, why: str) -> Refusal:
    version = found_version.rsplit("/", 1)[-1]
    return bad_request(f"{found_kind} in version {quoted(version)} cannot be handled as a {kind or found_kind}: {why}")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    return f"{body[:_SUMMARY_BYTES].hex()} ..." if len(body) > _SUMMARY_BYTES else body.hex()
