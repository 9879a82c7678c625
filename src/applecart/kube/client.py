"""Typed calls to a Kubernetes API, over any transport.

Reads decode into the structs of `applecart.api`. Writes are creates, deletes and patches: there is no update call, because a
decoded object does not hold the fields we do not know and a PUT would lose them. Every call has a deadline that covers its
retries (I13); `applecart.kube.backoff` decides which failures are worth one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import msgspec

from applecart.api.autoscaling import Scale
from applecart.api.meta import Key, Object
from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded, NeverSent
from applecart.kube.backoff import retry_wait_s
from applecart.kube.codec import ListPage, decoder, encode_object, list_decoder
from applecart.kube.errors import ApiError, Expired, ServerFault, error_from_answer
from applecart.kube.patch import Merge, Patch
from applecart.kube.paths import collection_path, object_path
from applecart.kube.transport import READS, NotLeading, Request, Response, Stream, Transport

K = TypeVar("K", bound=Object)

PAGE_SIZE = 500  # 16 ms of decoding a page: the loop never stalls, and the server's memory neither
DEADLINE_S = 30.0
Query = tuple[tuple[str, str], ...]

_encode = msgspec.json.Encoder().encode


class WriteRecorder(Protocol):
    """Hears what becomes of every write of a reconcile."""

    def writing(self, request: Request) -> AbstractContextManager[None]: ...

    def wrote(self, request: Request, response: Response) -> None: ...

    def lost(self, client: "Client", request: Request) -> None: ...


RECORDER: ContextVar[WriteRecorder | None] = ContextVar("RECORDER", default=None)


class Client:
    """One API server, one identity."""

    def __init__(self, transport: Transport, clock: Clock, *, deadline_s: float = DEADLINE_S) -> None:
        self.transport = transport
        self.clock = clock
        self.deadline_s = deadline_s

    async def aclose(self) -> None:
        await self.transport.aclose()

    # Reading

    async def get(self, kind: type[K], key: Key, *, subresource: str = "") -> K:
        response = await self.call(Request("GET", object_path(kind.resource, key, subresource)))
        return decoder(kind).decode(response.body)

    async def pages(
        self, kind: type[K], namespace: str = "", *, labels: str = "", fields: str = "", page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[ListPage[K], None]:
        """The pages of one consistent list (page_size 0: one page).

        Raises `Expired` when the server forgot the snapshot between two pages.
        """
        path = collection_path(kind.resource, namespace)
        selectors = selector_query(labels, fields)
        token = ""
        while True:
            limit = (("limit", str(page_size)),) if page_size else ()
            query = (*selectors, *limit, *((("continue", token),) if token else ()))
            response = await self.call(Request("GET", path, query))
            page = list_decoder(kind).decode(response.body)
            yield page
            token = page.metadata.continue_
            if not token:
                return

    async def read_list(
        self,
        kind: type[K],
        begin: Callable[[], Callable[[Iterable[K]], None]],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page_size: int = PAGE_SIZE,
    ) -> str:
        """Hand a whole list, page by page, to what `begin` returns; the revision it is true for.

        A list that outlives its snapshot begins again, at last in one piece.
        """
        for size in (page_size, page_size, 0):
            take = begin()
            revision = ""
            try:
                async with aclosing(self.pages(kind, namespace, labels=labels, fields=fields, page_size=size)) as pages:
                    async for page in pages:
                        take(page.items)
                        revision = page.metadata.resource_version
            except Expired:
                if not size:
                    raise
            else:
                return revision
        raise AssertionError("the last attempt returns or raises")

    async def list_and_revision(
        self, kind: type[K], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[list[K], str]:
        """All objects of a kind, and the revision that the list is true for."""
        items: list[K] = []

        def begin() -> Callable[[Iterable[K]], None]:
            items.clear()
            return items.extend

        return items, await self.read_list(kind, begin, namespace, labels=labels, fields=fields)

    async def list(self, kind: type[K], namespace: str = "", *, labels: str = "", fields: str = "") -> list[K]:
        """All objects of a kind."""
        items, _ = await self.list_and_revision(kind, namespace, labels=labels, fields=fields)
        return items

    # Writing

    async def create(self, obj: K, *, dry_run: bool = False) -> K:
        """Create, and give back what the server stored. A lost answer is not retried: it may have been stored."""
        kind = type(obj)
        path = collection_path(kind.resource, obj.namespace)
        query: Query = (("dryRun", "All"),) if dry_run else ()
        request = Request("POST", path, query, body=encode_object(obj))
        return decoder(kind).decode((await self.call(request, repeatable=False)).body)

    async def create_subresource(self, owner: type[Object], key: Key, subresource: str, body: K) -> K:
        """POST to a subresource such as `token`, `binding` or `eviction`."""
        request = Request("POST", object_path(owner.resource, key, subresource), body=encode_object(body))
        return decoder(type(body)).decode((await self.call(request, repeatable=False)).body)

    async def patch(
        self, kind: type[K], key: Key, patch: Patch, *, subresource: str = "", if_revision: str = "", dry_run: bool = False
    ) -> K:
        """Change an object. `if_revision` makes it a `Conflict` when somebody else changed it first."""
        if if_revision:
            patch = with_revision(patch, if_revision)
        request = Request(
            "PATCH",
            object_path(kind.resource, key, subresource),
            query=(*patch.query(), *((("dryRun", "All"),) if dry_run else ())),
            body=patch.encoded(),
            content_type=patch.content_type,
        )
        return decoder(kind).decode((await self.call(request, repeatable=patch.repeatable)).body)

    async def patch_status(self, kind: type[K], key: Key, patch: Patch, *, if_revision: str = "") -> K:
        return await self.patch(kind, key, patch, subresource="status", if_revision=if_revision)

    async def scale(self, kind: type[Object], key: Key, replicas: int) -> Scale:
        request = Request(
            "PATCH",
            object_path(kind.resource, key, "scale"),
            body=_encode({"spec": {"replicas": replicas}}),
            content_type=Merge.content_type,
        )
        return decoder(Scale).decode((await self.call(request)).body)

    async def delete(
        self,
        kind: type[Object],
        key: Key,
        *,
        if_uid: str = "",
        if_revision: str = "",
        propagation: str = "",
        grace_s: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for deletion; it is done when the last finalizer is gone. Preconditions that fail raise `Conflict`."""
        preconditions = {name: value for name, value in (("uid", if_uid), ("resourceVersion", if_revision)) if value}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if dry_run:
            options["dryRun"] = ["All"]
        await self.call(Request("DELETE", object_path(kind.resource, key), body=_encode(options)))

    # The wire

    async def call(self, request: Request, *, repeatable: bool = True) -> Response:
        """Send, retry what is worth it within the deadline, and raise the class of what is not.

        Inside a reconcile every write is noted: `applecart.kube.own_writes`.
        """
        recorder = None if request.method in READS or ("dryRun", "All") in request.query else RECORDER.get()
        if recorder is None:
            return await self._attempt(request, repeatable, _Attempts())
        attempts = _Attempts()
        with recorder.writing(request):
            try:
                response = await self._attempt(request, repeatable, attempts)
            except BaseException:
                # Also one that was refused in the end may have been carried out by an attempt before.
                if attempts.under_way or not all(map(surely_did_nothing, attempts.failures)):
                    recorder.lost(self, request)
                raise
            recorder.wrote(request, response)
            return response

    async def _attempt(self, request: Request, repeatable: bool, attempts: "_Attempts") -> Response:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.deadline_s
        failures = attempts.failures
        while True:
            try:
                left_s = give_up_at - loop.time()
                attempts.under_way = True
                tried = msgspec.structs.replace(request, deadline_s=left_s, given_s=self.deadline_s)
                response = await self.transport.send(tried)
                if response.status < 400:
                    return response
                raise error_from_answer(response.status, response.body, str(request), retry_after_s(response.headers))
            except ApplecartError as error:
                attempts.under_way = False
                failures.append(error)
                wait_s = retry_wait_s(error, len(failures), repeatable=repeatable, chance=self.clock.random)
                if wait_s is None or loop.time() + wait_s >= give_up_at:
                    if len(failures) > 1 and isinstance(error, DeadlineExceeded):
                        # It had what was left of the time, and that alone says less than why the attempts before it failed.
                        raise DeadlineExceeded(f"{error}; the attempt before: {failures[-2]}") from None
                    raise
            await asyncio.sleep(wait_s)

    async def open(self, request: Request) -> Stream:
        """Open a stream; a refusal raises its class. Not retried: whoever streams has its own way to resume."""
        request = msgspec.structs.replace(request, deadline_s=min(request.deadline_s, self.deadline_s))
        stream = await self.transport.open(request)
        if stream.status < 400:
            return stream
        try:
            body = await _read_all(stream, request)
        finally:
            await stream.aclose()
        raise error_from_answer(stream.status, body, str(request), retry_after_s(stream.headers))


class _Attempts(msgspec.Struct):
    """How often a call was tried in vain, and whether one is on its way."""

    failures: list[ApplecartError] = []
    under_way: bool = False


def surely_did_nothing(error: ApplecartError) -> bool:
    """Whether the server did not carry the request out: it says no, or never had it. One in trouble may have."""
    if isinstance(error, ServerFault):
        return error.retry_after_s is not None
    return isinstance(error, ApiError | NeverSent | NotLeading)


async def _read_all(stream: Stream, request: Request) -> bytes:
    """The body of a refusal, which a broken server might never finish."""
    body = b""
    try:
        async with asyncio.timeout(request.deadline_s):
            while len(body) < 1 << 20 and (chunk := await stream.read()):
                body += chunk
    except TimeoutError:
        raise DeadlineExceeded(f"{request}: the server did not finish its answer") from None
    return body


def selector_query(labels: str, fields: str) -> Query:
    return tuple((name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value)


def with_revision(patch: Patch, revision: str) -> Patch:
    """The same patch, refused by the server unless the object still has this revision."""
    if isinstance(patch.body, dict):
        metadata = {**patch.body.get("metadata", {}), "resourceVersion": revision}
        return msgspec.structs.replace(patch, body={**patch.body, "metadata": metadata})
    # Not a `test`, which the server would call invalid: a write of another revision is what it calls a conflict.
    claim = {"op": "replace", "path": "/metadata/resourceVersion", "value": revision}
    return msgspec.structs.replace(patch, body=[claim, *patch.body])


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The header in its seconds form; the API server never sends the date form."""
    value = headers.get("retry-after", "")
    return float(value) if value.isdigit() else None
