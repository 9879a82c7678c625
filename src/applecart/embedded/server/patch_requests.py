"""PATCH: which of the four kinds of patch a request carries, and what it makes of an object."""

from collections.abc import Callable
from typing import Any

import msgspec

from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.rules import Document
from applecart.embedded.patching.json_patch import apply_json_patch
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.strategic import strategic_merge
from applecart.embedded.refusals import Refusal, bad_request, unsupported_media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_PATCH_CBOR = "application/apply-patch+cbor"
BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def refuse_unknown_type(kind: Kind, content_type: str) -> str:
    """The patch's media type, when this kind takes it."""
    accepted = CUSTOM_TYPES if kind.is_custom else BUILTIN_TYPES
    given = media_type(content_type)
    if given not in accepted:
        raise unsupported_media_type(accepted)
    return given


def patcher(given: str, body: bytes, kind: Kind) -> Callable[[Document], Document]:
    """What a patch other than apply makes of an object."""
    try:
        patch: Any = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    except RecursionError:
        raise bad_request("error decoding patch: the patch is nested too deeply") from None

    def change(document: Document) -> Document:
        if given == JSON_PATCH:
            changed = apply_json_patch(document, patch)
        elif not isinstance(patch, dict):
            raise bad_request("error decoding patch: a patch of this type is an object")
        elif given == MERGE_PATCH:
            changed = merge(document, patch)
        else:
            changed = strategic_merge(document, patch, kind.shape)
        if not isinstance(changed, dict):
            raise Refusal(400, "BadRequest", "the patch leaves no object")
        return changed

    return change
