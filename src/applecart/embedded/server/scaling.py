"""`/scale` of a custom object: how many replicas are wanted, without knowing the rest of it."""

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, not_found, unsupported_media_type
from applecart.embedded.schema.scale import ScalePaths, read_scale, write_scale
from applecart.embedded.server import gate
from applecart.embedded.server.admission import write_of
from applecart.embedded.server.bodies import SCHEME, read_body
from applecart.embedded.server.core import Core
from applecart.embedded.server.objects import find, viewed
from applecart.embedded.server.representation import sent
from applecart.embedded.server.request import Answer, ApiRequest, media_type
from applecart.embedded.server.writing import JSON_PATCH, MERGE_PATCH, bad_patch, patcher, refuse_other_place
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import type_of
from applecart.embedded.surface.negotiation import choose_answer
from applecart.embedded.tables.printer_columns import table_of_columns
from applecart.embedded.tables.render import table_document

UPDATE = "UpdateOptions"
SCALE_VERSION = "autoscaling/v1"
SCALES = table_of_columns(
    [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Available", "type": "integer", "jsonPath": ".status.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
)

_scale_type = type_of(SCALE_VERSION, "Scale")
assert _scale_type is not None
_SCALE = _scale_type


async def get_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    record = core.store.table(kind.storage.label).get(key)
    if record is None:
        raise not_found(kind.resource, key.name)
    return _answered(core, request, read_scale(viewed(core, kind, record), paths))


async def change_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    """PUT or PATCH of the Scale."""
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    current = read_scale(viewed(core, kind, record), paths)
    scale = _patched(request, kind, current) if request.method == "PATCH" else _given(request)
    refuse_other_place(kind, key, scale)

    def make(document: Document) -> Document:
        write_scale(document, scale, paths)
        metadata = document["metadata"]
        metadata["resourceVersion"] = scale["metadata"].get("resourceVersion") or metadata["resourceVersion"]
        if scale["metadata"].get("uid"):
            metadata["uid"] = scale["metadata"]["uid"]
        return document

    write = write_of(request, "update", kind, key, UPDATE, "scale")
    # Who scales owns nothing by it, as on the real server.
    document, submitted = gate.update(core, write, record, make, is_applied=True)
    if submitted is not None:
        await submitted.settle()
    return _answered(core, request, read_scale(document, paths))


def _given(request: ApiRequest) -> Document:
    scale = read_body(request)
    if not isinstance(scale, dict) or (scale.get("apiVersion"), scale.get("kind")) != (SCALE_VERSION, "Scale"):
        raise bad_request(f"no kind is registered for the type v1.Scale {SCHEME}")
    return _conformed(scale)


def _patched(request: ApiRequest, kind: Kind, current: Document) -> Document:
    given = media_type(request.content_type)
    if given not in (JSON_PATCH, MERGE_PATCH):
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH))
    change, _ = patcher(given, request.body, kind, "Ignore")
    changed = change(current)
    try:
        return _conformed(changed)
    except Refusal as refusal:
        raise bad_patch(changed, refusal) from None


def _conformed(scale: Document) -> Document:
    conformed = conform(scale, _SCALE).document
    conformed.setdefault("metadata", {})
    return conformed


def _answered(core: Core, request: ApiRequest, scale: Document) -> Answer:
    wanted = choose_answer(request.accept)
    if wanted.shape != "table":
        return sent(scale, request.accept)
    revision = {"resourceVersion": scale["metadata"].get("resourceVersion", "")}
    body = table_document(SCALES, [scale], core.clock.now(), revision, version=wanted.meta_version)
    return Answer(200, body)
