"""POST, PUT, PATCH and DELETE of objects: from a request to its answer, and which of the four kinds of patch it carries."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from applecart.api.meta import Key
from applecart.embedded.field_errors import forbidden as forbidden_field
from applecart.embedded.field_errors import invalid as invalid_field
from applecart.embedded.field_errors import json_type, shown
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.patching.json_patch import apply_json_patch
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.strategic import strategic_merge
from applecart.embedded.refusals import Refusal, bad_request, invalid, not_found, unsupported_media_type
from applecart.embedded.server import deletion, gate, syntax
from applecart.embedded.server.admission import Write, write_of
from applecart.embedded.server.bodies import (
    field_validation,
    other_type,
    read_object,
    repeated_in_yaml,
    take_in,
    take_in_custom,
)
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import applied_to
from applecart.embedded.server.gate import settle_namespace
from applecart.embedded.server.listing import ListOptions, Page, Selection, page
from applecart.embedded.server.objects import encode, find
from applecart.embedded.server.representation import Forms
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, invalid_options, is_true, media_type
from applecart.embedded.server.trial import worked_out
from applecart.embedded.store.record import Record
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.strict import duplicate_fields, json_patch_problems
from applecart.embedded.structure.types import type_of

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
CREATE, UPDATE, PATCH = "CreateOptions", "UpdateOptions", "PatchOptions"


Repeated = Callable[[Document], list[str]]


def refuse_unknown_type(kind: Kind, content_type: str) -> str:
    """The patch's media type, when this kind takes it."""
    accepted = CUSTOM_TYPES if kind.is_custom else BUILTIN_TYPES
    given = media_type(content_type)
    if given not in BUILTIN_TYPES and not kind.is_custom:
        raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if given not in accepted:
        raise unsupported_media_type(accepted)
    return given


def read_patch(given: str, body: bytes) -> Any:
    """A JSON patch as it is; the others are objects."""
    about = "" if given == STRATEGIC_PATCH else "error decoding patch: "
    try:
        patch: Any = syntax.parse_json(body)
    except syntax.NotJson as error:
        raise bad_request(f"{about}{error}") from None
    if given == MERGE_PATCH and patch is None:
        raise bad_request("Invalid JSON Patch")
    if given != JSON_PATCH and not isinstance(patch, dict):
        wrong = f"cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"{about}json: {wrong}")
    return patch


def patcher(given: str, body: bytes, kind: Kind, validation: str) -> tuple[Callable[[Document], Document], Repeated]:
    """What a patch other than apply makes of an object, and what the patch says twice, given what it made."""
    patch = read_patch(given, body)

    def change(document: Document) -> Document:
        if given == JSON_PATCH:
            changed = apply_json_patch(document, patch)
            if isinstance(changed, dict) and syntax.is_too_deep(changed):  # copies of copies
                raise bad_request("the patch leaves an object that exceeds the max depth")
        elif given == MERGE_PATCH:
            changed = merge(document, patch)
        else:
            changed = strategic_merge(document, patch, kind.shape)
        if not isinstance(changed, dict):
            raise Refusal(400, "BadRequest", "the patch leaves no object")
        return changed

    def repeated(changed: Document) -> list[str]:
        if validation == "Ignore":
            return []
        return json_patch_problems(body, patch, changed) if given == JSON_PATCH else duplicate_fields(body, patch)

    return change, repeated


async def post(core: Core, request: ApiRequest, kind: Kind, namespace: str) -> Answer:
    forms = Forms(core, request, kind)
    write = write_of(request, "create", kind, Key(namespace, ""), CREATE)
    document = read_object(request, kind, CREATE, core.registry.serves)
    return await _answer(forms, *gate.create(core, write, document), status=201)


async def put(core: Core, request: ApiRequest, kind: Kind, key: Key, subresource: str = "") -> Answer:
    forms = Forms(core, request, kind)
    write = write_of(request, "update", kind, key, UPDATE, subresource)
    document = read_object(request, kind, UPDATE, core.registry.serves)
    refuse_other_place(kind, key, document)
    record = find(core, kind, key)
    if record is None:
        if not kind.strategy.creates_on_update or subresource:
            raise not_found(kind.resource, key.name)
        gate.refuse_other_object(write, document["metadata"], {"uid": ""})  # what is gone does not come back
        document["metadata"].pop("resourceVersion", None)
        return await _answer(forms, *gate.create(core, write, document), status=201)
    return await _answer(forms, *gate.update(core, write, record, lambda _: document))


async def patch(core: Core, request: ApiRequest, kind: Kind, key: Key, subresource: str = "") -> Answer:
    given = refuse_unknown_type(kind, request.content_type)
    forms = Forms(core, request, kind)
    write = write_of(request, "patch", kind, key, PATCH, subresource, must_be_named=given == APPLY_PATCH)
    validation = field_validation(request, PATCH)
    if given == APPLY_PATCH:
        return await _apply(core, request, write, validation, forms)
    if is_true(request.query.get("force")):
        raise invalid_options(PATCH, [forbidden_field("force", "may not be specified for non-apply patch")])
    record = find(core, kind, key)
    change, repeated = patcher(given, request.body, kind, validation)
    if record is None:
        raise not_found(kind.resource, key.name)

    def make(document: Document) -> Document:
        changed = change(document)
        return _conformed(request, kind, changed, key, validation, repeated(changed))

    return await _answer(forms, *gate.update(core, write, record, make))


async def _apply(core: Core, request: ApiRequest, write: Write, validation: str, forms: Forms) -> Answer:
    kind, key, manager = write.kind, write.key, write.manager
    repeated: list[str] = []
    try:
        applied: Any = syntax.parse_yaml_or_json(request.body, repeated)
    except syntax.NotYaml as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    record = find(core, kind, key)

    refuse_undeclared(kind, applied)

    def make(live: Document | None) -> Document:
        merged = applied_to(core, kind, live, applied, manager, force=is_true(request.query.get("force")))
        if repeated and validation == "Strict":  # after conflicts, as on the real server
            why = repeated_in_yaml(repeated)
            raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {why}")
        if validation == "Warn":
            request.warnings += repeated
        refuse_other_place(kind, key, merged)
        return take_in(request, kind, merged, validation, is_applied=True)

    if record is None:
        if manager.subresource:
            raise not_found(kind.resource, key.name)
        document = make(None)
        document["metadata"].setdefault("name", key.name)
        if uid := document["metadata"].get("uid"):  # an object of this identity does not exist
            raise invalid(kind.resource, key.name, [invalid_field("metadata.uid", uid, "field is immutable")])
        document["metadata"].pop("resourceVersion", None)
        return await _answer(forms, *gate.create(core, write, document, is_applied=True), status=201)
    return await _answer(forms, *gate.update(core, write, record, make, is_applied=True))


async def delete_one(core: Core, request: ApiRequest, kind: Kind, key: Key) -> Answer:
    forms = Forms(core, request, kind)
    options = deletion.read_options(request)
    record, submitted, is_gone = gate.delete(core, Write(request.user, "delete", kind, key), options)
    if submitted is not None:
        await submitted.settle()
    if is_gone and kind.resource.label not in deletion.ANSWERS_OBJECT:
        return forms.status(deletion.deleted_status(kind, record))
    return forms.one(record)


async def delete_many(core: Core, request: ApiRequest, kind: Kind, namespace: str | None) -> Answer | StreamAnswer:
    """One by one, not all or nothing, as the real server does it."""
    forms = Forms(core, request, kind, is_list=True)
    selection = Selection(kind, namespace, request.query)
    options = await worked_out(core, request, partial(deletion.read_options, request))
    found = await page(core, kind, selection.namespace, ListOptions(), selection)
    await gate.delete_each(core, request.user, kind, found.records, options, selection.matches)
    return forms.list(Page(core.store.revision, found.records))


def refuse_other_place(kind: Kind, key: Key, document: Document) -> None:
    """A document says the same name and namespace as the path."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name")
    if not name:
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    if name != key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    settle_namespace(kind, metadata, key.namespace)


def _conformed(request: ApiRequest, kind: Kind, changed: Document, key: Key, validation: str, found: Iterable[str]) -> Document:
    """What a patch made, decoded like any other body; it fails as a bad patch."""
    try:
        refuse_other_type(kind, changed)
        taken = take_in(request, kind, changed, validation, found=found)
    except Refusal as refusal:
        raise bad_patch(changed, refusal) from None
    refuse_other_place(kind, key, taken)
    return taken


def refuse_other_type(kind: Kind, changed: Document) -> None:
    """A patch may not make another kind of an object; a type that is known is decoded first, and may fail at that."""
    api_version, name = str(changed.get("apiVersion") or ""), str(changed.get("kind") or "")
    if (api_version, name) == (kind.resource.api_version, kind.resource.kind):
        return
    if (known := type_of(api_version, name)) is not None:
        conform(changed, known)
    raise other_type((api_version, name), kind)


def refuse_undeclared(kind: Kind, applied: Any) -> None:
    """An apply owns what it names, so it may not name what the kind does not have."""
    if not isinstance(applied, dict):
        return
    if not (applied.get("apiVersion") and applied.get("kind")):
        group, _, version = str(applied.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={applied.get('kind') or ''}")
    copy = msgspec.json.decode(encode(applied))
    if kind.is_custom:
        unknown = take_in_custom(kind, copy)
    else:
        known = type_of(kind.resource.api_version, kind.resource.kind)
        unknown = conform(copy, known).problems if known else []
    if unknown:
        paths = sorted(one.removeprefix('unknown field "').removesuffix('"') for one in unknown)
        lines = [f".{path}: field not declared in schema" for path in paths]
        said = lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines])
        metadata = applied["metadata"] if isinstance(applied.get("metadata"), dict) else {}
        about = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind.resource.group}/{kind.resource.version}"
        about = f"{about}, Kind={kind.resource.kind}"
        raise bad_request(f"failed to create typed patch object ({about}): {said}")


def bad_patch(changed: Document, refusal: Refusal) -> Refusal:
    """The refusal of what a patch made, which shows all of it."""
    # The prefix names the type, which a patch does not have.
    _, separator, why = refusal.message.partition(" cannot be handled as a ")
    why = why.partition(": ")[2] if separator else refusal.message
    body = f"Invalid value: {shown(encode(changed).decode())}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": body, "field": "patch"}
    return Refusal(422, "Invalid", f' "" is invalid: patch: {body}', {"causes": [cause]})


async def _answer(forms: Forms, document: Document, submitted: gate.Submitted | None, status: int = 200) -> Answer:
    if submitted is None:
        if status == 201:  # nothing was stored, so there is no revision
            document["metadata"].pop("resourceVersion", None)
        return forms.document(document, status)
    record: Record = await submitted.settle()
    # An update that removed the object answers what it would have stored, not the last state before.
    is_shown = document["metadata"].get("resourceVersion") == str(record.revision)
    return forms.one(record, status) if is_shown else forms.document(document, status)
