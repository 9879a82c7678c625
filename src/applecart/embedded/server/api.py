"""The API: one request in, one answer out, whoever carries it.

Authorization comes first and sees only method, path and query. Everything below refuses by raising; an exception that is no
refusal is a defect, is logged with its trace, and leaves as a 500 without a word of it.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from applecart.api.meta import Key, Resource
from applecart.embedded.auth.user import Attributes
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import (
    Refusal,
    bad_request,
    method_not_allowed,
    no_such_resource,
    too_large,
    verb_not_supported,
)
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop, spend
from applecart.embedded.server import representation, subresources, writing
from applecart.embedded.server.core import AgentCalls, Core, NoAgents
from applecart.embedded.server.objects import encode, find
from applecart.embedded.server.pages import TEXT, Pages
from applecart.embedded.server.request import END, Answer, ApiRequest, StreamAnswer, attributes_of
from applecart.embedded.server.subresources import Identity, answer_review, issue_token, read_virtual
from applecart.embedded.server.trial import beside_the_loop, is_large, worked_out
from applecart.embedded.store.log import StoreFailed
from applecart.embedded.store.record import Record
from applecart.embedded.surface.served import VIRTUAL_KINDS
from applecart.kube.background import is_being_cancelled
from applecart.observe.logs import logger
from applecart.observe.serve import Check

_log = logger(__name__)
WARNINGS_LENGTH, WARNING_LENGTH = 4096, 256  # characters of all and, where that is not enough, of one; the real server's
OF_COLLECTIONS = ("list", "watch", "deletecollection")  # they go in slices
OF_SMALL_BODIES = ("binding", "eviction", "token", "scale")
SMALL_BODY_BYTES = 32 << 10  # of questions, options and what is not stored as it is sent
_VIRTUAL = {(kind.resource.group, kind.resource.version, kind.resource.plural): kind.resource for kind in VIRTUAL_KINDS}


class Api:
    """Everything behind the paths."""

    def __init__(self, core: Core, identity: Identity, pages: Pages) -> None:
        self.core = core
        self._identity = identity
        self._pages = pages
        self._agents: AgentCalls = NoAgents()

    def use_agents(self, agents: AgentCalls) -> None:
        """From now on node agents can be asked."""
        self._agents = agents
        self._pages.use_agents(agents)

    def also_ready(self, name: str, check: Check) -> None:
        """From now on readiness is a matter of this as well."""
        self._pages.ready[name] = check

    async def handle(self, request: ApiRequest) -> Answer | StreamAnswer:
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = refused(refusal)
        except StoreFailed:
            answer = refused(Refusal(503, "ServiceUnavailable", "the store cannot be written; the server is stopping"))
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            answer = defect(request.method, request.path)
        except Exception:
            answer = defect(request.method, request.path)
        if request.warnings:
            answer.warnings = tuple(map(warning_header, told_warnings(request.warnings)))
        return answer

    async def _answer(self, request: ApiRequest) -> Answer | StreamAnswer:
        attributes = attributes_of(request.method, request.path, request.query)
        self.core.authorizer.check(request.user, attributes)
        if request.read_body is not None:
            request.body = await request.read_body()
        if len(request.body) > SMALL_BODY_BYTES and (
            attributes.verb.startswith("delete") or attributes.subresource in OF_SMALL_BODIES or _virtual_of(attributes)
        ):
            raise too_large(SMALL_BODY_BYTES)
        if not attributes.is_resource:
            return await worked_out(self.core, request, self._pages.work(request)) or not_found_page()
        kind = self.core.registry.find(attributes.group, attributes.version, attributes.resource)
        if kind is None and _virtual_of(attributes) is None:
            if any(one.resource.group == attributes.group for one in self._agents.kinds):
                return await self._agents.computed(request, attributes)
            if self.core.registry.is_builtin_group(attributes.group):
                raise no_such_resource()
            return not_found_page()
        while kind is not None and kind.is_custom and (renewed := self.core.store.renewing.get(kind.storage.label)):
            await renewed.wait()
        if self.core.worker is None or attributes.verb in OF_COLLECTIONS or attributes.subresource == "log":
            return await self._served(request, attributes)
        about: Record | None = None  # the object that the path names
        if kind is not None:
            about = find(self.core, kind, Key(attributes.namespace if kind.resource.namespaced else "", attributes.name))
        if not is_large(request, about):
            with suppress(TooMuchForTheLoop), on_the_loop():
                return await self._served(request, attributes)
        beside = partial(Api, identity=self._identity, pages=self._pages)
        return await beside_the_loop(self.core, request.user, lambda core: beside(core)._served(request, attributes))

    async def _served(self, request: ApiRequest, asked: Attributes) -> Answer | StreamAnswer:
        """Of a kind as it is by now: beside the loop a request may have waited."""
        if virtual := _virtual_of(asked):
            return await self._virtual(request, asked, virtual)
        kind = self.core.registry.find(asked.group, asked.version, asked.resource)
        return not_found_page() if kind is None else await self._resource(request, kind, asked)

    async def _resource(self, request: ApiRequest, kind: Kind, asked: Attributes) -> Answer | StreamAnswer:
        core = self.core
        namespace = asked.namespace if kind.resource.namespaced else ""
        if not kind.resource.namespaced and asked.namespace and kind.resource.plural != "namespaces":
            raise no_such_resource()
        # A list may carry a name as well, from its field selector; then it is still a list.
        is_named = bool(asked.name) and asked.verb not in OF_COLLECTIONS
        if is_named and kind.resource.namespaced and not namespace:
            raise no_such_resource()
        if is_named:
            key = Key(namespace, asked.name)
            if asked.subresource:
                return await self._subresource(request, kind, key, asked)
            match request.method:
                case "GET" | "HEAD":
                    return await representation.get(core, request, kind, key)
                case "PUT":
                    return await writing.put(core, request, kind, key)
                case "PATCH":
                    return await writing.patch(core, request, kind, key)
                case "DELETE":
                    return await writing.delete_one(core, request, kind, key)
            raise _not_allowed(kind, asked)
        within = namespace or None if kind.resource.namespaced else None
        if asked.verb not in kind.verbs:
            raise _not_allowed(kind, asked)
        match asked.verb:
            case "list":
                return await representation.list_(core, request, kind, within)
            case "watch":
                return await representation.watch(core, request, kind, within)
            case "create" if within or not kind.resource.namespaced:
                return await writing.post(core, request, kind, namespace)
            case "deletecollection" if within or not kind.resource.namespaced:
                return await writing.delete_many(core, request, kind, within)
        raise _not_allowed(kind, asked) if asked.verb == "update" else method_not_allowed()

    async def _subresource(self, request: ApiRequest, kind: Kind, key: Key, asked: Attributes) -> Answer | StreamAnswer:
        core = self.core
        served = kind.subresource(asked.subresource)
        if served is None:
            raise no_such_resource()
        if asked.verb not in served.verbs:
            raise _not_allowed(kind, asked)
        match asked.subresource, request.method:
            case "status" | "finalize", "GET" | "HEAD":
                return await representation.get(core, request, kind, key)
            case "status" | "finalize", "PUT":
                return await writing.put(core, request, kind, key, asked.subresource)
            case "status", "PATCH":
                return await writing.patch(core, request, kind, key, "status")
            case "binding", "POST":
                return await subresources.bind(core, request, kind, key, read_virtual(request, "v1", "Binding", key.namespace))
            case "eviction", "POST":
                eviction = read_virtual(request, "policy/v1", "Eviction", key.namespace, older="policy/v1beta1")
                return await subresources.evict(core, request, kind, key, eviction)
            case "token", "POST":
                return issue_token(core, self._identity, request, kind, key.namespace, key.name)
            case "log", "GET" | "HEAD":
                return await self._agents.log(request, key)
            case "exec" | "attach", _:
                raise self._agents.refuse_plain(request, asked)
            case "scale", "GET" | "HEAD" if kind.scale:
                return await subresources.get_scale(core, request, kind, key, kind.scale)
            case "scale", _ if kind.scale:
                return await subresources.change_scale(core, request, kind, key, kind.scale)
        raise no_such_resource()

    async def _virtual(self, request: ApiRequest, asked: Attributes, kind: Resource) -> Answer:
        if request.method != "POST" or asked.name:
            raise method_not_allowed()
        if asked.resource == "bindings":
            pods = self.core.registry.built_in("v1", "pods")
            binding = read_virtual(request, "v1", "Binding", asked.namespace)
            key = Key(asked.namespace, str(binding["metadata"].get("name", "")))
            if (pod := find(self.core, pods, key)) is not None:
                spend(pod.size_bytes)  # the path does not name it
            return await subresources.bind(self.core, request, pods, key, binding)
        return answer_review(self.core, self._identity, request, kind, asked.namespace)


def _virtual_of(asked: Attributes) -> Resource | None:
    return _VIRTUAL.get((asked.group, asked.version, asked.resource))


def _not_allowed(kind: Kind, asked: Attributes) -> Refusal:
    if not kind.is_custom:
        return method_not_allowed()
    if asked.verb == "update" and not asked.name:
        return bad_request("name must be provided")
    return verb_not_supported(kind.resource, asked.verb)


def refused(refusal: Refusal) -> Answer:
    # Frames of its trace hold it, and what the request was about: without this they stay until the garbage collector comes.
    refusal.__traceback__ = refusal.__context__ = None
    return Answer(refusal.code, encode(refusal.document()) + END, headers=dict(refusal.headers))


def defect(method: str, path: str) -> Answer:
    """In an except block: what nobody foresaw is said here and not there."""
    _log.exception("a request failed in a way nobody foresaw", call=f"{method} {path}")
    return refused(Refusal(500, "InternalError", "Internal error occurred: see the server's log"))


def not_found_page() -> Answer:
    return Answer(404, b"404 page not found\n", TEXT)


def told_warnings(texts: Iterable[str]) -> list[str]:
    """Each once, and shortened when they are long together: clients take so many headers and so much in them."""
    texts = list(dict.fromkeys(texts))
    if sum(map(len, texts)) <= WARNINGS_LENGTH:
        return texts
    told, length = [], 0
    for text in texts:
        if length >= WARNINGS_LENGTH:
            break
        told.append(text[:WARNING_LENGTH])
        length += len(told[-1])
    return told


def warning_header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    printable = "".join(character if character.isprintable() else " " for character in escaped)
    return f'299 - "{printable}"'
