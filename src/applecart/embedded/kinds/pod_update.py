"""What of a Pod may change after it was created, and what of its status.

A Pod is what was promised to its author and its node: nearly nothing of it may change. Only the node agent reports its status.
"""

import difflib
from typing import Any

import msgspec

from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.field_errors import FieldError, forbidden, invalid, required
from applecart.embedded.kinds.metadata import IMMUTABLE, NULL
from applecart.embedded.kinds.names import IP_SAID, family_of, qualified_name_problems, subdomain_problems
from applecart.embedded.kinds.pod_spec import DEADLINE_MAX_S, REQUIRED, validate_tolerations
from applecart.embedded.kinds.strategy import Document, keep

FIXED_SAID = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_FREE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_KNOWN_CONDITIONS = {"PodScheduled", "Ready", "Initialized"}


def validate_pod_update(pod: Document, old: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    _validate_annotations(pod, old, errors)
    spec, was = pod["spec"], old["spec"]
    for group in ("containers", "initContainers"):
        if not _validate_containers(spec.get(group) or [], was.get(group) or [], f"spec.{group}", errors):
            return errors
    if not _validate_deadline(spec.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds"), errors):
        return errors
    _validate_tolerations(spec.get("tolerations") or [], was.get("tolerations") or [], errors)
    _validate_gates(spec.get("schedulingGates") or [], was.get("schedulingGates") or [], errors)
    if spec == was:
        return errors
    fixed = _fixed_part(spec, was, errors)
    if fixed != was:
        difference = "".join(list(difflib.unified_diff(_lines(was), _lines(fixed)))[2:])
        errors.append(forbidden("spec", f"{FIXED_SAID}\n{difference}"))
    return errors


def _fixed_part(spec: dict[str, Any], was: dict[str, Any], errors: list[FieldError]) -> dict[str, Any]:
    """The new spec with everything that may differ set back."""
    fixed = dict(spec)
    for name in _FREE:
        keep(fixed, was, name)
    for group in ("containers", "initContainers"):
        if spec.get(group):
            fixed[group] = [{**one, "image": before.get("image")} for one, before in zip(spec[group], was[group], strict=True)]
    if was.get("schedulingGates"):
        _free_gated(fixed, was, errors)
    return fixed


def _free_gated(fixed: dict[str, Any], was: dict[str, Any], errors: list[FieldError]) -> None:
    """While a Pod waits at a gate, its author may still narrow where it runs."""
    selector, selected = fixed.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in selected.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", selector or NULL, text))
    keep(fixed, was, "nodeSelector")
    node = (fixed.get("affinity") or {}).get("nodeAffinity")
    node_was = (was.get("affinity") or {}).get("nodeAffinity")
    if node != node_was:
        _validate_narrowing(node or {}, node_was or {}, errors)
        rest = {name: value for name, value in (fixed.get("affinity") or {}).items() if name != "nodeAffinity"}
        fixed["affinity"] = {**rest, **({"nodeAffinity": node_was} if node_was is not None else {})}
        if not fixed["affinity"] and "affinity" not in was:
            del fixed["affinity"]


def _validate_narrowing(new: dict[str, Any], old: dict[str, Any], errors: list[FieldError]) -> None:
    """Terms are alternatives: another term would widen where the Pod runs, another requirement narrows it."""
    at = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    terms_were = (old.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if terms_were and len(terms) != len(terms_were):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.append(invalid(at, terms or NULL, text))
        return
    for index, (term, was) in enumerate(zip(terms, terms_were, strict=False)):
        if not _only_adds(term, was):
            text = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{at}[{index}]", term, text))


def _only_adds(term: dict[str, Any], was: dict[str, Any]) -> bool:
    parts = [(term.get(name) or [], was.get(name) or []) for name in ("matchExpressions", "matchFields")]
    if not any(before for _now, before in parts):
        return not any(now for now, _before in parts)
    return all(now[: len(before)] == before for now, before in parts)


def _lines(spec: dict[str, Any]) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(spec, order="sorted"), indent=1).decode().splitlines(keepends=True)


def _validate_annotations(pod: Document, old: Document, errors: list[FieldError]) -> None:
    after = (pod.get("metadata") or {}).get("annotations") or {}
    before = (old.get("metadata") or {}).get("annotations") or {}
    if after.get(MIRROR_ANNOTATION) == before.get(MIRROR_ANNOTATION):
        return
    verb = "remove or update" if MIRROR_ANNOTATION in before else "add"
    errors.append(forbidden(f"metadata.annotations[{MIRROR_ANNOTATION}]", f"may not {verb} mirror pod annotation"))


def _validate_containers(new: list[dict[str, Any]], old: list[dict[str, Any]], path: str, errors: list[FieldError]) -> bool:
    """Whether the lists can be compared further."""
    if len(new) != len(old):
        errors.append(forbidden(path, "pod updates may not add or remove containers"))
        return False
    for index, container in enumerate(new):
        image = container.get("image") or ""
        if not image:
            errors.append(required(f"{path}[{index}].image"))
        if image != image.strip():
            errors.append(invalid(f"{path}[{index}].image", image, "must not have leading or trailing whitespace"))
    return True


def _validate_deadline(new: int | None, old: int | None, errors: list[FieldError]) -> bool:
    at = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.append(invalid(at, NULL, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= new <= DEADLINE_MAX_S:
        errors.append(invalid(at, new, f"must be between 0 and {DEADLINE_MAX_S}, inclusive"))
        return False
    if old is not None and old < new:
        errors.append(invalid(at, new, "must be less than or equal to previous value"))
        return False
    return True


def _validate_tolerations(new: list[dict[str, Any]], old: list[dict[str, Any]], errors: list[FieldError]) -> None:
    there = [{**toleration, "tolerationSeconds": None} for toleration in new]
    if any({**toleration, "tolerationSeconds": None} not in there for toleration in old):
        errors.append(forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"))
        return
    validate_tolerations(new, errors)


def _validate_gates(new: list[dict[str, Any]], old: list[dict[str, Any]], errors: list[FieldError]) -> None:
    known = {gate.get("name") for gate in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", text))


def validate_pod_status(pod: Document, old: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    _validate_annotations(pod, old, errors)
    status, was = pod.get("status") or {}, old.get("status") or {}
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type") or ""
        if kind not in _KNOWN_CONDITIONS:
            at = f"status.conditions[{index}].Type"
            errors += [invalid(at, kind, problem) for problem in qualified_name_problems(kind)]
    _validate_nomination(status.get("nominatedNodeName") or "", was, old, errors)
    if (status.get("qosClass") or "") != (was.get("qosClass") or ""):
        errors.append(invalid("status.qosClass", status.get("qosClass") or "", IMMUTABLE))
    spec = old.get("spec") or {}
    for group, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        _validate_states(status.get(statuses) or (), was.get(statuses) or (), spec, group, statuses, errors)
    _validate_ips(status.get("podIPs") or [], was.get("podIPs") or [], errors)
    return errors


def _validate_nomination(name: str, was: dict[str, Any], old: Document, errors: list[FieldError]) -> None:
    if not name or name == was.get("nominatedNodeName"):
        return
    at = "status.nominatedNodeName"
    errors += [invalid(at, name, problem) for problem in subdomain_problems(name)]
    if (old.get("spec") or {}).get("nodeName"):
        errors.append(forbidden(at, "may not be set on pods that are already bound to a node"))


def _validate_states(new: Any, old: Any, spec: dict[str, Any], group: str, path: str, errors: list[FieldError]) -> None:
    """A container that ended for good stays ended: a finished Pod never runs again."""
    after = {one.get("name"): one for one in new}
    for index, before in enumerate(old):
        ended = (before.get("state") or {}).get("terminated")
        now = after.get(before.get("name"))
        if ended is None or now is None or (now.get("state") or {}).get("terminated") is not None:
            continue
        if not _restarts(before.get("name"), ended.get("exitCode") or 0, spec, group):
            errors.append(forbidden(f"status.{path}[{index}].state", "may not be transitioned to non-terminated state"))


def _restarts(name: Any, exit_code: int, spec: dict[str, Any], group: str) -> bool:
    container = next((one for one in spec.get(group) or () if one.get("name") == name), None)
    if container is None:
        return False
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _validate_ips(new: list[dict[str, Any]], old: list[dict[str, Any]], errors: list[FieldError]) -> None:
    known = {one.get("ip") for one in old}
    families = []
    for index, one in enumerate(new):
        address = one.get("ip") or ""
        families.append(family_of(address))
        if address not in known and families[-1] == 0:
            errors.append(invalid(f"status.podIPs[{index}]", address, IP_SAID))
    if len(new) > 1 and (len(new) > 2 or len(set(families)) != 2):
        errors.append(invalid("status.podIPs", new, "may specify no more than one IP for each IP family"))
