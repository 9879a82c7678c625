"""The `/scale` of a custom resource: autoscaling/v1 Scale, read from and written to the paths its definition names.

Pure: documents in, documents out. The paths are plain (`.spec.replicas`); a definition with others is refused when installed.
"""

from typing import Any

import msgspec

from applecart.embedded.field_errors import FieldError, go_value, quoted
from applecart.embedded.refusals import Refusal, bad_request

Document = dict[str, Any]
LARGEST_REPLICAS = 2**31 - 1
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_GO_TYPES = {
    str: "string",
    bool: "bool",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    int: "int64",
}


class ScalePaths(msgspec.Struct, frozen=True):
    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


def scale_paths(version: Document) -> ScalePaths | None:
    """What a version's `subresources.scale` says; None when there is no scale."""
    subresources = version.get("subresources")
    scale = subresources.get("scale") if isinstance(subresources, dict) else None
    if not isinstance(scale, dict):
        return None
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return ScalePaths(*[text if isinstance(text := scale.get(name), str) else "" for name in names])


def read_scale(obj: Document, paths: ScalePaths, *, is_written: bool = False) -> Document:
    """The Scale of an object. Without wanted replicas there is none to be read (a real server says so with a 500), but one that
    may be written."""
    meta = obj.get("metadata") or {}
    wanted = found_at(obj, paths.spec_replicas)
    replicas = wanted if type(wanted) is int else None
    if replicas is None and not is_written:
        text = f"the spec replicas field {quoted(paths.spec_replicas)} does not exist"
        raise Refusal(400, "BadRequest", f"Internal error occurred: {text}", {"causes": [{"message": text}]})
    ready, selector = found_at(obj, paths.status_replicas), found_at(obj, paths.label_selector)
    status: Document = {"replicas": ready if type(ready) is int else 0}
    if selector and isinstance(selector, str):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _META if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def write_scale(obj: Document, scale: Document, paths: ScalePaths) -> None:
    """Sets the wanted replicas in the object, which is then judged as any update of it."""
    spec = scale.get("spec") or {}
    replicas = (spec.get("replicas") or 0) if isinstance(spec, dict) else None
    if type(replicas) is not int or not -LARGEST_REPLICAS - 1 <= replicas <= LARGEST_REPLICAS:
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas must be a 32-bit integer')
    *parents, last = _names(paths.spec_replicas)
    place = obj
    for name in parents:
        inner = place.get(name)
        if inner is None:
            inner = place[name] = {}
        if type(inner) is not dict:
            raise bad_request(f"{paths.spec_replicas} does not lead to a number in this object")
        place = inner
    place[last] = replicas


def status_errors(obj: Document, paths: ScalePaths) -> list[FieldError]:
    found = replica_errors(obj, paths.status_replicas)
    if paths.label_selector:
        try:
            selector = _at(obj, paths.label_selector)
            if selector is not None and type(selector) is not str:
                raise TypeError(_accessor_error(paths.label_selector, selector, "string"))
        except TypeError as error:
            found.append(FieldError("Invalid", paths.label_selector, str(error), ""))
    return found


def replica_errors(obj: Document, path: str) -> list[FieldError]:
    try:
        value = _at(obj, path)
        if value is not None and type(value) is not int:
            raise TypeError(_accessor_error(path, value, "int64"))
    except TypeError as error:
        return [FieldError("Invalid", path, str(error), 0)]
    if value is None or 0 <= value <= LARGEST_REPLICAS:
        return []
    reason = "should be a non-negative integer" if value < 0 else f"should be less than or equal to {LARGEST_REPLICAS}"
    return [FieldError("Invalid", path, reason, value)]


def _names(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _at(obj: Document, path: str) -> Any:
    """The value at a path, None where there is none; TypeError where the path runs into something else."""
    value: Any = obj
    for name in _names(path):
        if type(value) is not dict:
            raise TypeError(_accessor_error(path, value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
    return value


def found_at(obj: Document, path: str) -> Any:
    """The value at a path; None where it does not lead to one."""
    try:
        return _at(obj, path) if path else None
    except TypeError:
        return None


def _accessor_error(path: str, value: Any, wanted: str) -> str:
    named = "<nil>" if value is None else _GO_TYPES.get(type(value), "interface {}")
    return f"{path} accessor error: {go_value(value)} is of the type {named}, expected {wanted}"
