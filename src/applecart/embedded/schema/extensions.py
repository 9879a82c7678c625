"""What the `x-kubernetes-` extensions of a schema demand beyond types and limits.

Whole objects inside an object (`embedded-resource`) have an identity, which must be one; lists that are sets or have keys
(`list-type`) hold nothing twice.
"""

from typing import Any

import msgspec

from applecart.embedded.field_errors import FieldError, required
from applecart.embedded.kinds.metadata import validate_metadata
from applecart.embedded.kinds.names import label_1035_problems, path_segment_problems
from applecart.embedded.schema.schema_node import SchemaNode, children
from applecart.embedded.structure.types import OBJECT_META, struct_of

MIXED_CASE = "may have mixed case, but should otherwise match: "


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    """The types of metadata, as far as its validation relies on them."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str] | None = None
    managed_fields: list[dict[str, Any]] | None = None


def embedded_errors(node: SchemaNode | None, value: Any, path: str = "") -> list[FieldError]:
    """What is wrong with the identities of embedded resources below a value."""
    if node is None or not node.has_embedded:
        return []
    found = _identity_errors(value, path) if node.is_embedded and type(value) is dict else []
    for child, inner, below in children(node, value, path):
        found += embedded_errors(child, inner, below)
    return found


def prune_metadata(node: SchemaNode | None, value: Any, path: str = "") -> list[str]:
    """Removes metadata fields of embedded resources that no object has; gives the paths."""
    if node is None or not node.has_embedded:
        return []
    found: list[str] = []
    if type(value) is dict:
        meta = value.get("metadata")
        if node.is_embedded and type(meta) is dict:
            gone = [name for name in meta if name not in struct_of(OBJECT_META).fields]
            found += [f"{path}.metadata.{name}" for name in gone]
            for name in gone:
                del meta[name]
        for name, member in value.items():
            found += prune_metadata(node.child(name), member, f"{path}.{name}" if path else name)
    elif type(value) is list:
        for index, item in enumerate(value):
            found += prune_metadata(node.items, item, f"{path}[{index}]")
    return found


def _identity_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in value]
    for name, said in value.items():
        at = f"{path}.{name}"
        if name in ("apiVersion", "kind"):
            if not isinstance(said, str):
                found.append(FieldError("Invalid", at, "must be a string", said))
            elif not said:
                found.append(FieldError("Invalid", at, "must not be empty", said))
            elif name == "apiVersion" and said.count("/") > 1:
                found.append(FieldError("Invalid", at, f"unexpected GroupVersion string: {said}", said))
            elif name == "kind" and (problems := label_1035_problems(said.lower())):
                found.append(FieldError("Invalid", at, MIXED_CASE + ",".join(problems), said))
        elif name == "metadata":
            found += _metadata_errors(said, at)
    return found


def _metadata_errors(meta: Any, path: str) -> list[FieldError]:
    try:
        msgspec.convert(meta, _Metadata)
    except (msgspec.ValidationError, RecursionError) as error:
        return [FieldError("Invalid", path, f"no object metadata: {error}", meta)]
    named = {name: value for name, value in meta.items() if value is not None}
    named["name"] = named.get("name") or "fakename"  # the name of an embedded resource may be given later
    errors = validate_metadata(named, namespaced=bool(named.get("namespace")), name_problems=path_segment_problems)
    return [
        FieldError(one.problem, path + one.field.removeprefix("metadata"), one.detail, one.value, one.shows_value)
        for one in errors
    ]


def duplicate_errors(node: SchemaNode | None, value: Any, path: str = "") -> list[FieldError]:
    """What occurs a second time; a third occurrence is not reported again."""
    if node is None or not node.has_unique_lists:
        return []
    found: list[FieldError] = []
    if type(value) is list and node.list_type == "set":
        found += _duplicates(value, path)
    elif type(value) is list and node.list_type == "map":
        found += _of_keyed(node, value, path)
    for child, inner, below in children(node, value, path):
        found += duplicate_errors(child, inner, below)
    return found


def _of_keyed(node: SchemaNode, value: list[Any], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            return [FieldError("Invalid", f"{path}[{index}]", "must be an object for an array of list-type map", item)]
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in value]
    return _duplicates(keys, path)


def _duplicates(values: list[Any], path: str) -> list[FieldError]:
    seen: dict[bytes, int] = {}
    found: list[FieldError] = []
    for index, value in enumerate(values):
        identity = msgspec.json.encode(value, order="deterministic")
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            found.append(FieldError("Duplicate", f"{path}[{index}]", value=value))
    return found
