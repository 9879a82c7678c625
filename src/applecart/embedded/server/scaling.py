"""`/scale` of a custom object: how many replicas are wanted, without knowing the rest of it."""

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.rules import Document
from applecart.embedded.refusals import Refusal, not_found, unsupported_media_type
from applecart.embedded.schema.scale import ScalePaths, read_scale, write_scale
from applecart.embedded.server.bodies import read_body
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import manager_of
from applecart.embedded.server.forms import sent
from applecart.embedded.server.messages import Answer, ApiRequest
from applecart.embedded.server.objects import find, viewed
from applecart.embedded.server.parameters import is_dry_run
from applecart.embedded.server.patch_requests import JSON_PATCH, MERGE_PATCH, media_type, patcher
from applecart.embedded.server.updating import update
from applecart.embedded.server.writing import refuse_other_place

UPDATE = "UpdateOptions"


async def get_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    record = core.store.table(kind.storage.label).get(key)
    if record is None:
        raise not_found(kind.resource, key.name)
    return sent(read_scale(viewed(core, kind, record), paths), request.accept)


async def change_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    """PUT or PATCH of the Scale."""
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    current = read_scale(viewed(core, kind, record), paths)
    if request.method == "PATCH":
        given = media_type(request.content_type)
        if given not in (JSON_PATCH, MERGE_PATCH):
            raise unsupported_media_type((JSON_PATCH, MERGE_PATCH))
        scale = patcher(given, request.body, kind)(current)
    else:
        scale = read_body(request)
        if not isinstance(scale, dict):
            raise Refusal(400, "BadRequest", "the body is not a Scale")
    scale.setdefault("metadata", {})
    if not isinstance(scale["metadata"], dict):
        raise Refusal(400, "BadRequest", 'Scale in version "v1" cannot be handled as a Scale: metadata must be an object')
    refuse_other_place(kind, key, scale)

    def make(document: Document) -> Document:
        write_scale(document, scale, paths)
        metadata = document["metadata"]
        metadata["resourceVersion"] = scale["metadata"].get("resourceVersion") or metadata["resourceVersion"]
        if scale["metadata"].get("uid"):
            metadata["uid"] = scale["metadata"]["uid"]
        return document

    manager = manager_of(request, UPDATE, "scale")
    dry = is_dry_run(request.query, UPDATE)
    document, submitted = update(core, request, kind, key, record, make, manager, verb="update", is_dry_run=dry)
    if submitted is not None:
        await submitted.settle()
    return sent(read_scale(document, paths), request.accept)
