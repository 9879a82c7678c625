"""Reading what a request carries: JSON, YAML or protobuf, as an object of the kind that the path names.

A built-in kind's document is brought into the form the server keeps; unknown fields are dropped, reported or refused as the
request asks; and every way in which bytes can be wrong ends in a refusal.
"""

from typing import Any

from applecart.embedded.field_errors import not_supported, quoted
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.rules import Document
from applecart.embedded.refusals import Refusal, bad_request, unsupported_media_type
from applecart.embedded.server import json_text, yaml_text
from applecart.embedded.server.messages import JSON, ApiRequest
from applecart.embedded.server.parameters import invalid_options
from applecart.embedded.server.patch_requests import media_type
from applecart.embedded.server.registry import Registry
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.protobuf import decode_protobuf
from applecart.embedded.structure.types import type_of

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'  # part of a text that people search for


def read_body(request: ApiRequest, *, is_custom: bool = False) -> Any:
    """The body as plain values. Raises Refusal."""
    given = media_type(request.content_type)
    try:
        if given in ("", JSON):
            try:
                return json_text.parse(request.body)
            except json_text.NotJson as error:
                raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
        if given == YAML:
            return yaml_text.parse(request.body)
    except yaml_text.NotYaml as error:
        raise bad_request(str(error)) from None
    if given == PROTOBUF and not is_custom:
        return decode_protobuf(request.body)
    raise unsupported_media_type((JSON, YAML) if is_custom else (JSON, YAML, PROTOBUF))


def read_object(request: ApiRequest, kind: Kind, registry: Registry, options: str) -> Document:
    """The object in the body, as one of this kind. `options` names the request's options object, for refusals."""
    validation = field_validation(request, options)
    expected = kind.resource.kind
    try:
        document = read_body(request, is_custom=kind.is_custom)
        if not isinstance(document, dict):
            raise bad_request(f"couldn't get version/kind; json parse error: {json_text.no_object(document)}")
        for member in ("apiVersion", "kind"):
            if not isinstance(document.get(member) or "", str):
                got = json_text.type_name(document[member])
                why = f"json: cannot unmarshal {got} into Go struct field .{member} of type string"
                raise bad_request(f"couldn't get version/kind; json parse error: {why}")
    except Refusal as refusal:
        if refusal.code != 400:
            raise
        shown = json_text.summary(request.body)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {expected}): {refusal.message} ({shown})"
        ) from None
    _settle_type(document, kind, registry)
    return take_in(request, kind, document, validation)


def take_in(request: ApiRequest, kind: Kind, document: Document, validation: str) -> Document:
    """A document of this kind in the form the server keeps; its unknown fields are dropped and told."""
    if kind.is_custom:
        problems = kind.rules.drop_unknown(document)
    else:
        type = type_of(kind.resource.api_version, kind.resource.kind)
        assert type is not None, f"{kind.resource.kind} has no type"
        conformed = conform(document, type)
        document, problems = conformed.document, conformed.problems
    if problems and validation == "Strict":
        version = kind.resource.version
        about = "" if kind.is_custom else f"{kind.resource.kind} in version {quoted(version)} cannot be handled as a "
        about += "" if kind.is_custom else f"{kind.resource.kind}: "
        raise bad_request(f"{about}strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        request.warnings += problems
    if not isinstance(document.get("metadata"), dict):
        document["metadata"] = {}
    kind.rules.default(document)
    return document


def field_validation(request: ApiRequest, options: str) -> str:
    """How unknown fields are treated. Raises Refusal."""
    asked = request.query.get("fieldValidation", "")
    if asked not in FIELD_VALIDATIONS:
        raise invalid_options(options, [not_supported("fieldValidation", asked, FIELD_VALIDATIONS)])
    return asked or "Warn"


def _settle_type(document: Document, kind: Kind, registry: Registry) -> None:
    """The document is of the kind that the path names; what it does not say is filled in."""
    wanted = (kind.resource.api_version, kind.resource.kind)
    given = (document.get("apiVersion") or wanted[0], document.get("kind") or wanted[1])
    if given != wanted:
        raise _other_type(given, kind, registry)
    if kind.is_custom and not (document.get("apiVersion") and document.get("kind")):
        missing = "kind" if not document.get("kind") else "apiVersion"
        raise bad_request(f"Object '{missing.capitalize()}' is missing in the object")
    document["apiVersion"], document["kind"] = wanted


def _other_type(given: tuple[str, str], kind: Kind, registry: Registry) -> Refusal:
    api_version, name = given
    group, _, version = api_version.rpartition("/")
    if kind.is_custom:
        if name != kind.resource.kind or group != kind.resource.group:
            own = f"{api_version}, Kind={name}"
            return bad_request(
                f"the object provided is unrecognized (must be of type {kind.resource.kind}): "
                f"expected {kind.resource.api_version}, Kind={kind.resource.kind}, got {own}"
            )
        return bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.resource.api_version})"
        )
    known = registry.of_kind(group, version, name)
    if known is not None and not known.is_custom:
        why = f"converting ({version}.{name}) to (core.{kind.resource.kind}): unknown conversion"
    else:
        why = f"no kind {quoted(name)} is registered for version {quoted(api_version)} {_SCHEME}"
    return bad_request(f"{name} in version {quoted(version)} cannot be handled as a {kind.resource.kind}: {why}")
