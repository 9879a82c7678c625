"""What a request may change of an object: bodies, patches, preconditions, and what `status` and `scale` show of it."""

from typing import Any

import msgspec

from applecart.kube.patches import Json, Merge
from applecart.kube.transport import Request
from tests.kube.memory_address import Address
from tests.kube.memory_patches import BadPatch, apply_operations, merge
from tests.kube.memory_refusals import Refusal, bad_request, conflict, invalid, unsupported
from tests.kube.memory_store import Document

SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")
STATUS_TAKES_METADATA = ("pods", "nodes")  # the status of other kinds leaves metadata alone


def decoded(request: Request, types: tuple[str, ...]) -> Document:
    if request.content_type not in types:
        raise unsupported(types)
    try:
        body: Any = msgspec.json.decode(request.body or b"")
    except msgspec.DecodeError as error:
        raise bad_request(f"the request body is no JSON: {error}") from None
    return body  # type: ignore[no-any-return]


def patched(current: Document, request: Request) -> Document:
    body = decoded(request, (Json.content_type, Merge.content_type))
    try:
        if request.content_type == Merge.content_type:
            return merge(current, body)  # type: ignore[no-any-return]
        return apply_operations(current, body)  # type: ignore[arg-type, no-any-return]
    except BadPatch:
        # Word for word what kube-apiserver says, which keeps the reason to itself.
        raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request") from None


def check_identity(at: Address, current: Document, changed: Document) -> None:
    before, after = current["metadata"], changed["metadata"]
    if after.get("name") != before["name"] or after.get("namespace") != before.get("namespace"):
        raise bad_request("the name or namespace of the object does not match the one in the URL")
    if after.get("uid", before["uid"]) != before["uid"]:
        words = f"Invalid value: {after['uid']!r}: field is immutable"
        raise invalid(current.get("kind", ""), at.name, "metadata.uid", words)
    if after.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
        words = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(at.kind, at.name, words)


def isolated(at: Address, current: Document, changed: Document) -> Document:
    """Only what this endpoint may change: `status` its status, everything else all but the status."""
    kept = {name: current["metadata"][name] for name in SERVER_FIELDS if name in current["metadata"]}
    metadata = {name: value for name, value in changed["metadata"].items() if name not in SERVER_FIELDS} | kept
    metadata = {name: value for name, value in metadata.items() if value not in ({}, [])}
    if at.subresource == "status":
        status = {"status": changed["status"]} if "status" in changed else {}
        others = {name: value for name, value in current.items() if name != "status"}
        return {
            **others,
            **status,
            "metadata": metadata if at.kind.plural in STATUS_TAKES_METADATA else dict(current["metadata"]),
        }
    status = {"status": current["status"]} if "status" in current else {}
    return {**{name: value for name, value in changed.items() if name != "status"}, **status, "metadata": metadata}


def scale_of(obj: Document) -> Document:
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: obj["metadata"][name] for name in names if name in obj["metadata"]},
        "spec": {"replicas": obj.get("spec", {}).get("replicas", 0)},
        "status": {"replicas": obj.get("status", {}).get("replicas", 0)},
    }


def listed(obj: Document, at: Address) -> Document:
    """kube-apiserver leaves the type out of the items of its own kinds."""
    return {name: value for name, value in obj.items() if not at.is_built_in or name not in ("kind", "apiVersion")}
