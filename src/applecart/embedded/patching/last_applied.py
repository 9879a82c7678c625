"""The annotation that `kubectl apply` keeps its last configuration in, where server-side apply takes over from it.

An object that was applied by the client has all its fields owned by an updater, so kubectl's first server-side apply would
conflict with kubectl itself. What the annotation lists and the object still holds is therefore kubectl's to change.
"""

import json
from typing import Any

from applecart.embedded.patching.field_set import NOTHING, FieldSet
from applecart.embedded.patching.ownership import changes_between, fields_in
from applecart.embedded.shape import Shape

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TAKEN_OVER_BY = "kubectl"
ANNOTATIONS_LIMIT_BYTES = 256 * 1024  # of all annotations of an object; one more configuration must not break it


def taken_over(live: dict[str, Any] | None, shape: Shape, api_version: str) -> FieldSet:
    """Fields that kubectl may change although another owns them."""
    text = _annotations(live).get(LAST_APPLIED)
    if type(text) is not str:
        return NOTHING
    try:
        last = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING
    if type(last) is not dict or last.get("apiVersion") != api_version:
        return NOTHING
    changes = changes_between(last, live, shape)
    return fields_in(last, shape) - changes.modified - changes.added - changes.removed


def keep_last_applied(obj: dict[str, Any], applied: dict[str, Any]) -> None:
    """Brings the annotation up to date where it exists, or a later client-side apply would compare with old news."""
    annotations = _annotations(obj)
    if not annotations.get(LAST_APPLIED):
        return
    configuration = dict(applied)
    if LAST_APPLIED in _annotations(applied):
        others = {name: value for name, value in _annotations(applied).items() if name != LAST_APPLIED}
        configuration["metadata"] = {**applied["metadata"], "annotations": others}
    annotations[LAST_APPLIED] = json.dumps(configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    size_bytes = sum(len(str(text).encode(errors="replace")) for one in annotations.items() for text in one)
    if size_bytes > ANNOTATIONS_LIMIT_BYTES:
        del annotations[LAST_APPLIED]


def _annotations(obj: dict[str, Any] | None) -> dict[str, Any]:
    metadata = obj.get("metadata") if obj else None
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    return annotations if type(annotations) is dict else {}
