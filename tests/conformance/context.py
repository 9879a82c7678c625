"""What a check works with: callers, a namespace of its own, names, and the kinds that all checks share.

Names inside the namespace are fixed, so texts that hold them compare equal; names of cluster-wide objects carry a tag of this
run, which normalisation takes out again. What a check made outside its namespace is removed at the end; its namespace stays,
because a server without controllers cannot remove one.
"""

import asyncio
import random
import string
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

from tests.conformance.caller import Answer, Caller
from tests.conformance.kinds import GROUP, SHARED_CRDS
from tests.conformance.servers import ADMIN, Server

TAG_LENGTH = 6  # letters; enough that two runs on one server never meet
SERVED_WITHIN_S = 30.0  # a real server publishes a new kind within about a second
LOOK_EVERY_S = 0.05

_prepared: WeakKeyDictionary[Any, asyncio.Task[None]] = WeakKeyDictionary()


class Context:
    """One check on one server."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, number: str) -> None:
        self.server = server
        self._session = session
        self.tag = "".join(random.choices(string.ascii_lowercase, k=TAG_LENGTH))
        self.namespace = f"c{number}-{self.tag}"
        self.admin = Caller(session, server.url, server.login(*ADMIN))
        self.aliases = {self.namespace: "ns", self.tag: "tag"}
        self._to_remove: list[str] = []

    @classmethod
    async def prepared(cls, server: Server, session: aiohttp.ClientSession, number: str) -> "Context":
        """With its namespace made and the shared kinds served."""
        context = cls(server, session, number)
        # Once per session, and so once per loop: tasks of another loop cannot be awaited.
        if session not in _prepared:
            _prepared[session] = asyncio.create_task(_install_shared_kinds(context.admin))
        await _prepared[session]
        await context.make_namespace(context.namespace)
        return context

    async def clean_up(self) -> None:
        for path in reversed(self._to_remove):
            await self.admin.delete(path, background())

    def path(self, resource: str, name: str = "", subresource: str = "", *, group: str = "", namespace: str = "") -> str:
        """Of a namespaced collection, object or subresource; `group` as `coordination.k8s.io/v1`, none is core."""
        root = f"/apis/{group}" if group else "/api/v1"
        parts = [root, "namespaces", namespace or self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    def widgets(self, name: str = "", subresource: str = "") -> str:
        return self.path("widgets", name, subresource, group=f"{GROUP}/v1")

    def name(self, base: str) -> str:
        """A cluster-wide name that is this run's own."""
        return f"{base}-{self.tag}"

    def alias(self, text: str, stand_in: str) -> None:
        """Let normalisation replace a text that only this run has."""
        self.aliases[text] = stand_in

    def remove_later(self, path: str) -> None:
        self._to_remove.append(path)

    def as_user(self, user: str, *groups: str) -> Caller:
        return Caller(self._session, self.server.url, self.server.login(user, groups))

    def as_node(self, name: str) -> Caller:
        return self.as_user(f"system:node:{name}", "system:nodes")

    def anonymous(self) -> Caller:
        return Caller(self._session, self.server.url, self.server.login(None))

    def with_token(self, token: str) -> Caller:
        return Caller(self._session, self.server.url, self.server.login(None, token=token))

    async def make(self, path: str, body: Any, **query: Any) -> Any:
        """Create something that a check starts from; anything but success is a broken start, told with the answer."""
        return must(await self.admin.post(path, body, **query))

    async def make_namespace(self, name: str) -> Any:
        return await self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def make_cluster_wide(self, path: str, body: Any) -> Any:
        made = await self.make(path, body)
        self.remove_later(f"{path}/{made['metadata']['name']}")
        return made

    async def until_served(self, path: str) -> None:
        await until_served(self.admin, path)


def background() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}


def must(answer: Answer) -> Any:
    """The body of an answer that has to be a success for the check to mean anything."""
    assert answer.status < 300, f"a check could not set up what it starts from: {answer.plain()}"
    return answer.body


async def until_served(caller: Caller, path: str) -> None:
    """Wait until a collection of a new or changed kind answers, from the cache of a real server too."""
    async with asyncio.timeout(SERVED_WITHIN_S):
        for query in ({"limit": 1}, {"resourceVersion": 0}):
            while (await caller.call("GET", path, query=query)).status != 200:  # noqa: ASYNC110 (another process)
                await asyncio.sleep(LOOK_EVERY_S)


async def _install_shared_kinds(admin: Caller) -> None:
    for crd in SHARED_CRDS:
        answer = await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        assert answer.status in (201, 409), f"a shared kind is refused: {answer.plain()}"
        spec = crd["spec"]
        for version in spec["versions"]:
            await until_served(admin, f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
