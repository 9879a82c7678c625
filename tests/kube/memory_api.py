"""A Kubernetes API in memory, for tests on virtual time: a `Transport` with state, without sockets or threads.

It answers any group, version and resource (there is no schema) the way kube-apiserver does where clients can tell: revisions,
paged lists of one snapshot, watches, preconditions, finalizers, graceful deletion of Pods, status and scale, and `Status`
refusals. It has no admission, no authorization and no strategic or server-side-apply patches: those answer 415. The embedded
API server replaces it once it exists.
"""

import asyncio
import base64
import random
import uuid
from collections.abc import Collection

import msgspec

from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kube.transport import JSON, Request, Response, Stream
from tests.kube import memory_deletion as deletion
from tests.kube.memory_address import CLUSTER_SCOPED, Address, address, selector
from tests.kube.memory_objects import SERVER_FIELDS, check_identity, decoded, isolated, listed, patched, scale_of
from tests.kube.memory_refusals import (
    Refusal,
    already_exists,
    bad_request,
    conflict,
    expired,
    invalid,
    not_allowed,
    not_found,
    too_large,
    unknown_path,
)
from tests.kube.memory_store import Compacted, Document, Kind, MemoryStore, MemoryWatch, Place, Write

LONGEST_BODY_BYTES = 3 * 1024 * 1024  # kube-apiserver's limit
WATCH_S = 2700.0  # kube-apiserver ends a watch that names no timeout after 30 to 60 minutes
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
KEEPS_STATUS_ON_CREATE = ("nodes",)  # a kubelet registers its Node with a status

_encode = msgspec.json.Encoder().encode


class MemoryApi:
    def __init__(self, clock: Clock, cluster_scoped: Collection[str] = ()) -> None:
        self.store = MemoryStore()
        self.clock = clock
        self._chance = random.Random(0)
        self._cluster_scoped = CLUSTER_SCOPED | frozenset(cluster_scoped)
        self._kind_names: dict[Kind, str] = {}
        self._closed = False

    def compact(self) -> None:
        self.store.compact()

    # The transport

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)  # others may run while a request is on its way...
        self._check_open()
        try:
            response = self._answer(request)
        except Refusal as refusal:
            response = refusal.response
        await asyncio.sleep(0)  # ...and while its answer is
        return response

    async def open(self, request: Request) -> Stream:
        if dict(request.query).get("watch", "false").lower() in ("false", "0"):
            return WholeStream(await self.send(request))
        await asyncio.sleep(0)
        self._check_open()
        try:
            return self._watch(address(request.path), dict(request.query))
        except Refusal as refusal:
            return WholeStream(refusal.response)

    async def aclose(self) -> None:
        self._closed = True
        for watch in tuple(self.store.watches):
            await watch.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable("the connection is closed")

    def _answer(self, request: Request) -> Response:
        at, query = address(request.path), dict(request.query)
        if len(request.body or b"") > LONGEST_BODY_BYTES:
            raise too_large(LONGEST_BODY_BYTES)
        verb = (request.method, "one" if at.name else "all", at.subresource)
        match verb:
            case ("GET", "all", ""):
                return ok(self._list(at, query))
            case ("POST", "all", ""):
                return ok(self._create(at, query, request), 201)
            case ("GET", "one", "" | "status"):
                return ok(self._existing(at))
            case ("PATCH", "one", "" | "status"):
                return ok(self._patch(at, query, request))
            case ("DELETE", "one", ""):
                return ok(self._delete(at, request))
            case ("GET", "one", "scale"):
                return ok(scale_of(self._existing(at)))
            case ("PATCH", "one", "scale"):
                return ok(self._patch_scale(at, query, request))
            case (_, _, "" | "status" | "scale"):
                raise not_allowed()
        raise unknown_path()

    # Reading

    def _existing(self, at: Address) -> Document:
        found = self.store.objects.get(at.place)
        if found is None:
            raise not_found(at.kind, at.name)
        return found

    def _list(self, at: Address, query: dict[str, str]) -> Document:
        limit = int(query.get("limit", "0"))
        revision, after = self.store.revision, None
        if token := query.get("continue"):
            revision, *after = msgspec.json.decode(base64.urlsafe_b64decode(token))
        try:
            objects = self.store.as_of(revision)
        except Compacted as error:
            raise expired(str(error)) from None
        matches = selector(at, query)
        places = sorted(
            place
            for place, obj in objects.items()
            if place.kind == at.kind and at.namespace in ("", place.namespace) and matches(obj)
            if after is None or (place.namespace, place.name) > tuple(after)
        )
        page = places[:limit] if limit else places
        metadata: Document = {"resourceVersion": str(revision)}
        if len(page) < len(places):
            last = page[-1]
            metadata["continue"] = base64.urlsafe_b64encode(_encode([revision, last.namespace, last.name])).decode()
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(places) - len(page)
        items = [listed(objects[place], at) for place in page]
        return {**self._type(at, "List"), "metadata": metadata, "items": items}

    def _watch(self, at: Address, query: dict[str, str]) -> Stream:
        if "sendInitialEvents" in query:
            raise invalid("ListOptions", "", "sendInitialEvents", "Forbidden: sendInitialEvents is not served here")
        revision = int(query.get("resourceVersion") or "0")
        watch = MemoryWatch(
            self.store,
            at.kind,
            at.namespace,
            selector(at, query),
            type_=self._type(at, ""),
            bookmarks=query.get("allowWatchBookmarks", "false") == "true",
            ends_in_s=float(query.get("timeoutSeconds") or WATCH_S),
        )
        if not revision:
            for place, obj in sorted(self.store.objects.items()):
                watch.offer(Write(0, place, None, obj))
            return watch
        try:
            for write in self.store.since(revision):
                watch.offer(write)
        except Compacted as error:
            watch.end_with({"type": "ERROR", "object": expired(str(error)).status})
        return watch

    def _type(self, at: Address, suffix: str) -> Document:
        return {"kind": self._kind_names.get(at.kind, "") + suffix, "apiVersion": at.api_version}

    # Writing

    def _create(self, at: Address, query: dict[str, str], request: Request) -> Document:
        if (at.kind.plural in self._cluster_scoped) is bool(at.namespace):
            raise not_allowed()
        body = decoded(request, (JSON,))
        kind, metadata = body.get("kind", ""), dict(body.get("metadata", {}))
        if not kind:
            raise bad_request("Object 'Kind' is missing in the request body")
        if (sent := body.get("apiVersion")) != at.api_version:
            words = f"the API version in the data ({sent}) does not match the expected API version ({at.api_version})"
            raise bad_request(words)
        if metadata.get("namespace", at.namespace) != at.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("resourceVersion"):
            raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + "".join(self._chance.choices(NAME_ALPHABET, k=5))
        deletion.check_name(kind, metadata.get("name", ""))
        place = Place(at.kind, at.namespace, metadata["name"])
        if place in self.store.objects:
            raise already_exists(at.kind, place.name, is_going="deletionTimestamp" in self.store.objects[place]["metadata"])
        for name in SERVER_FIELDS:
            metadata.pop(name, None)
        metadata["uid"] = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        metadata["creationTimestamp"] = deletion.timestamp(self.clock.now())
        if at.namespace:
            metadata["namespace"] = at.namespace
        if "spec" in body:
            metadata["generation"] = 1
        obj: Document = {**body, "metadata": metadata}
        if at.kind.plural not in KEEPS_STATUS_ON_CREATE:
            obj.pop("status", None)
        if at.kind == Kind("", "pods"):
            obj["status"] = {"phase": "Pending"}
        self._kind_names[at.kind] = kind
        return obj if query.get("dryRun") else self.store.commit(place, obj)

    def _patch(self, at: Address, query: dict[str, str], request: Request) -> Document:
        current = self._existing(at)
        changed = patched(current, request)
        check_identity(at, current, changed)
        return self._update(at, query, current, changed)

    def _patch_scale(self, at: Address, query: dict[str, str], request: Request) -> Document:
        current = self._existing(at)
        scale = patched(scale_of(current), request)
        check_identity(at, current, scale)
        replicas = scale["spec"]["replicas"]
        if not isinstance(replicas, int) or replicas < 0:
            raise invalid("Scale", at.name, "spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
        changed = {**current, "spec": {**current.get("spec", {}), "replicas": replicas}}
        return scale_of(self._update(at, query, current, changed))

    def _update(self, at: Address, query: dict[str, str], current: Document, changed: Document) -> Document:
        after = isolated(at, current, changed)
        deletion.check_finalizers(current, after)
        if after == current:
            return current
        parts = (after.keys() | current.keys()) - {"metadata", "status"}
        if "generation" in current["metadata"] and any(after.get(part) != current.get(part) for part in parts):
            after["metadata"]["generation"] += 1
        if query.get("dryRun"):
            return after
        if deletion.is_over(after):
            self.store.commit(at.place, None)
            return after
        return self.store.commit(at.place, after)

    def _delete(self, at: Address, request: Request) -> Document:
        current = self._existing(at)
        options = decoded(request, (JSON,)) if request.body else {}
        wanted = options.get("preconditions", {})
        for name, words in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            has = current["metadata"].get(name, "")
            if wanted.get(name, has) != has:
                why = f"the {words} in the precondition ({wanted[name]}) does not match the {words} in record ({has})."
                raise conflict(at.kind, at.name, f"{why} The object might have been deleted and then recreated")
        after = deletion.begun(current, options, self.clock.now(), is_pod=at.kind == Kind("", "pods"))
        if options.get("dryRun"):
            return after
        if deletion.is_over(after):
            self.store.commit(at.place, None)
            details = {"name": at.name, "group": at.kind.group, "kind": at.kind.plural, "uid": current["metadata"]["uid"]}
            return {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}
        return current if after == current else self.store.commit(at.place, after)


class WholeStream:
    """An answer that was complete when it was opened."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._rest = response.body

    async def read(self) -> bytes:
        chunk, self._rest = self._rest, b""
        return chunk

    async def aclose(self) -> None:
        self._rest = b""


def ok(body: Document, status: int = 200) -> Response:
    return Response(status, _encode(body), {"content-type": JSON})
