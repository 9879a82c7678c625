"""Binding a Pod to a node: the one write that decides where it runs.

A Pod is bound once. A second binding, a deleting Pod or one that waits at a gate is refused with a conflict, so that two
schedulers can never both believe they placed it.
"""

from datetime import datetime
from typing import Any

from applecart.api.meta import Resource
from applecart.api.pods import Pod
from applecart.embedded.field_errors import FieldError, not_supported, quoted, required
from applecart.embedded.kinds.conditions import with_condition
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import bad_request, conflict, unmet_in_storage

BINDING = Resource("", "v1", "Binding", "pods/binding")


def validate_binding(name: str, binding: Document) -> None:
    """Raises unless the binding is one of the Pod of this name."""
    if ((binding.get("metadata") or {}).get("name") or "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    errors: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        texts = [str(error) for error in errors]
        # The real server's words; it answers 500, although the mistake is the caller's.
        raise bad_request(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def bind(pod: Document, binding: Document, now: datetime) -> Document:
    """The Pod as it is when bound; the given one stays as it was."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    name, wanted = meta["name"], binding.get("metadata") or {}
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected = wanted.get(field)
        if expected and expected != meta.get(field):
            place = f"pods/{meta.get('namespace')}/{name}"
            raise unmet_in_storage(Pod.resource, place, name, what, expected, str(meta.get(field)))
    if meta.get("deletionTimestamp"):
        raise conflict(BINDING, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(BINDING, name, f"pod {name} is already assigned to node {quoted(spec['nodeName'])}")
    if spec.get("schedulingGates"):
        raise conflict(BINDING, name, f"pod {name} has non-empty .spec.schedulingGates")
    is_scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    scheduled = with_condition(status.get("conditions") or [], is_scheduled, now)
    status = {key: value for key, value in status.items() if key != "nominatedNodeName"}
    return {
        **pod,
        "metadata": _merged(meta, wanted),
        "spec": {**spec, "nodeName": binding["target"]["name"]},
        "status": {**status, "conditions": scheduled},
    }


def _merged(meta: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A scheduler may leave notes on the Pod it binds."""
    merged = dict(meta)
    for name in ("annotations", "labels"):
        if wanted.get(name):
            merged[name] = {**(meta.get(name) or {}), **wanted[name]}
    return merged
