"""PATCH: which of the four kinds of patch a request carries, and what it makes of an object."""

from collections.abc import Callable
from typing import Any

from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.patching.json_patch import apply_json_patch
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.strategic import strategic_merge
from applecart.embedded.refusals import Refusal, bad_request, unsupported_media_type
from applecart.embedded.server import syntax

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def refuse_unknown_type(kind: Kind, content_type: str) -> str:
    """The patch's media type, when this kind takes it."""
    accepted = CUSTOM_TYPES if kind.is_custom else BUILTIN_TYPES
    given = media_type(content_type)
    if given not in BUILTIN_TYPES and not kind.is_custom:
        raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if given not in accepted:
        raise unsupported_media_type(accepted)
    return given


def patcher(given: str, body: bytes, kind: Kind) -> Callable[[Document], Document]:
    """What a patch other than apply makes of an object."""
    about = "" if given == STRATEGIC_PATCH else "error decoding patch: "
    try:
        patch: Any = syntax.parse_json(body)
    except syntax.NotJson as error:
        raise bad_request(f"{about}{error}") from None
    if given == MERGE_PATCH and patch is None:
        raise bad_request("Invalid JSON Patch")
    if given != JSON_PATCH and not isinstance(patch, dict):
        wrong = f"cannot unmarshal {syntax.type_name(patch)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"{about}json: {wrong}")

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

    return change
