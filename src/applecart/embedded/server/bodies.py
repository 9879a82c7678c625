"""Reading what a request carries: JSON, YAML or protobuf, as an object of the kind that the path names.

A built-in kind's document is brought into the form the server keeps; unknown fields are dropped, reported or refused as the
request asks; and every way in which bytes can be wrong ends in a refusal.
"""

from collections.abc import Callable, Iterable
from typing import Any

from applecart.embedded.field_errors import json_type, not_supported, quoted
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, unsupported_media_type
from applecart.embedded.server import syntax
from applecart.embedded.server.request import JSON, ApiRequest, invalid_options, media_type
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.protobuf import decode_protobuf
from applecart.embedded.structure.strict import duplicate_fields, strict_problems
from applecart.embedded.structure.types import struct_of, type_of

BODY_LIMIT_BYTES = 3 << 20  # of a request, as on the real server
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
IsServed = Callable[[str, str], bool]  # whether a type (apiVersion, kind) is one of the served ones
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_ANY_OBJECT = struct_of("meta/v1.PartialObjectMetadata")
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'  # part of a text that people search for


def read_body(request: ApiRequest, *, is_custom: bool = False, repeated: list[str] | None = None) -> Any:
    """The body as plain values. Raises Refusal. `repeated` takes what occurs twice in YAML."""
    given = media_type(request.content_type)
    try:
        if given in ("", JSON):
            try:
                return syntax.parse_json(request.body)
            except syntax.NotJson as error:
                raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
        if given == YAML:
            return syntax.parse_yaml_or_json(request.body, repeated)
    except syntax.NotYaml as error:
        raise bad_request(str(error)) from None
    if given == PROTOBUF and not is_custom:
        return decode_protobuf(request.body)
    raise unsupported_media_type((JSON, YAML, PROTOBUF))


def read_object(request: ApiRequest, kind: Kind, options: str, is_served: IsServed) -> Document:
    """The object in the body, as one of this kind. `options` names the request's options object, for refusals."""
    validation = field_validation(request, options)
    given = media_type(request.content_type)
    repeated: list[str] = []
    if given == PROTOBUF and not kind.is_custom:
        document: Any = decode_protobuf(request.body, kind.resource.api_version, kind.resource.kind)
    else:
        document = _read_text(request, kind, repeated)
    _settle_type(request, document, kind, is_served)
    raw = request.body if given in ("", JSON) and validation != "Ignore" else b""
    if repeated and validation == "Strict":
        repeated = [repeated_in_yaml(repeated)]
    return take_in(request, kind, document, validation, raw, repeated)


def repeated_in_yaml(lines: list[str]) -> str:
    """One sentence of all."""
    return "\n  ".join(["yaml: unmarshal errors:", *lines])


def _read_text(request: ApiRequest, kind: Kind, repeated: list[str]) -> Document:
    """A JSON or YAML body that is an object with a readable type."""
    try:
        document = read_body(request, is_custom=kind.is_custom, repeated=repeated)
        if document is None and not kind.is_custom:
            document = {}  # as Go decodes null: an object in which nothing is set
        if not isinstance(document, dict):
            why = f"json: cannot unmarshal {json_type(document)} into Go value of type {syntax.TYPE_META}"
            raise bad_request(f"couldn't get version/kind; json parse error: {why}")
        for member in ("apiVersion", "kind"):
            if not isinstance(document.get(member) or "", str):
                why = f"cannot unmarshal {json_type(document[member])} into Go struct field .{member} of type string"
                raise bad_request(f"couldn't get version/kind; json parse error: json: {why}")
    except Refusal as refusal:
        if refusal.code != 400:
            raise
        about = f"the object provided is unrecognized (must be of type {kind.resource.kind})"
        raise bad_request(f"{about}: {refusal.message} ({syntax.summary(request.body)})") from None
    return document


def take_in(
    request: ApiRequest,
    kind: Kind,
    document: Document,
    validation: str,
    raw: bytes = b"",
    found: Iterable[str] = (),
    *,
    is_applied: bool = False,
) -> Document:
    """A document of this kind in the form the server keeps; its unknown fields are dropped and told.

    `raw` is the JSON text it came from, where what occurs twice in it shall be told as well; `found` was found before."""
    metadata = document.get("metadata")
    # Decoding drops what is empty; of a custom object the real server drops it as well.
    clears_owners = not kind.is_custom and isinstance(metadata, dict) and metadata.get("managedFields") == []
    if kind.is_custom:
        problems = take_in_custom(kind, document, raw)
    else:
        type = type_of(kind.resource.api_version, kind.resource.kind)
        assert type is not None, f"{kind.resource.kind} has no type"
        conformed = conform(document, type)
        problems = strict_problems(raw, document, conformed, type) if raw else conformed.problems
        document = conformed.document
    problems = [*found, *problems]
    if problems and validation == "Strict":
        raise unhandled(kind, f"strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        request.warnings += problems
    if not isinstance(document.get("metadata"), dict):
        document["metadata"] = {}
    if clears_owners:
        document["metadata"]["managedFields"] = []
    if is_applied:
        kind.strategy.default_applied(document)
    else:
        kind.strategy.default(document)
    return document


def take_in_custom(kind: Kind, document: Document, raw: bytes = b"") -> list[str]:
    """Metadata is that of every object; the rest is the schema's. What is unknown or occurs twice, as sentences."""
    problems = duplicate_fields(raw, document) if raw else []
    if (metadata := document.get("metadata")) is not None:
        try:
            conformed = conform({"metadata": metadata}, _ANY_OBJECT)
        except Refusal as refusal:
            _, _, why = refusal.message.partition("cannot be handled as a PartialObjectMetadata: ")
            why = why.replace("ObjectMeta.metadata.", "ObjectMeta.")  # metadata is decoded by itself
            raise unhandled(kind, why.replace("PartialObjectMetadata.metadata", f"{kind.resource.kind}.metadata")) from None
        document["metadata"] = conformed.document["metadata"]
        problems += conformed.problems
    return problems + kind.strategy.drop_unknown(document)


def unhandled(kind: Kind, why: str) -> Refusal:
    """The refusal of a document that is no object of its kind."""
    name = kind.resource.kind
    return bad_request(f"{name} in version {quoted(kind.resource.version)} cannot be handled as a {name}: {why}")


def field_validation(request: ApiRequest, options: str) -> str:
    """How unknown fields are treated. Raises Refusal."""
    asked = request.query.get("fieldValidation", "")
    if asked not in FIELD_VALIDATIONS:
        raise invalid_options(options, [not_supported("fieldValidation", asked, FIELD_VALIDATIONS)])
    return asked or "Warn"


def _settle_type(request: ApiRequest, document: Document, kind: Kind, is_served: IsServed) -> None:
    """The document is of the kind that the path names; what it does not say is filled in."""
    wanted = (kind.resource.api_version, kind.resource.kind)
    given = (document.get("apiVersion") or wanted[0], document.get("kind") or wanted[1])
    if given != wanted:
        if kind.is_custom and given[1] == wanted[1] and not is_served(given[0], given[1]):
            # The real server looks for the schema of the version that is named, and finds no field where there is none.
            others = (name for name in document if name not in ("apiVersion", "kind", "metadata"))
            request.warnings += [f"unknown field {quoted(name)}" for name in others]
        raise other_type(given, kind)
    document["apiVersion"], document["kind"] = wanted


def other_type(given: tuple[str, str], kind: Kind) -> Refusal:
    """The refusal of a document of another type than its place takes."""
    api_version, name = given
    _, _, version = api_version.rpartition("/")
    if kind.is_custom:
        expected = kind.resource.api_version
        differs = f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
        if api_version == expected:
            differs = f"the kind in the data ({name}) does not match the expected kind ({kind.resource.kind})"
        return bad_request(differs)
    if type_of(api_version, name) is not None:
        why = f"converting ({version}.{name}) to (core.{kind.resource.kind}): unknown conversion"
    else:
        why = f"no kind {quoted(name)} is registered for version {quoted(api_version)} {SCHEME}"
    return bad_request(f"{name} in version {quoted(version)} cannot be handled as a {kind.resource.kind}: {why}")
