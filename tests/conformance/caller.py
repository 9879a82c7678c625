"""Raw HTTP to an API server, as one identity.

Sends exactly what a check says and keeps exactly what came back: no retries, no typed objects, no defaults that a client
library would add. Every wait has a deadline, so a server that never answers fails a check instead of hanging the run.
"""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from applecart.kube.http_connector import AbortingConnector

CALL_TIMEOUT_S = 40.0  # a real server answers a revision of the future only after 3 s, and the machine may be busy
WATCH_TIMEOUT_S = 30.0  # for the events of one check to arrive
LINE_LIMIT_BYTES = 4 << 20  # of one event; the largest object of a check is 1 MiB
LARGE_BYTES = 1 << 20
JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
HEADERS_OF_INTEREST = ("warning", "location", "allow", "retry-after", "www-authenticate", "cache-control", "vary")

Query = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What a server said: the body decoded when it is JSON, else its text. Names of headers are in lower case."""

    status: int
    content_type: str
    headers: Mapping[str, str]
    body: Any

    def plain(self, *, body: bool = True) -> dict[str, Any]:
        """As JSON values, with the headers that a client may act on."""
        told = {name: self.headers[name] for name in HEADERS_OF_INTEREST if name in self.headers}
        # Every answer of a real server says so about itself; saying it 140 times would hide what differs.
        told = {name: value for name, value in told.items() if (name, value) != ("cache-control", "no-cache, private")}
        plain: dict[str, Any] = {"status": self.status, "type": self.content_type}
        if told:
            plain["headers"] = told
        if body:
            plain["body"] = self.body
        return plain

    def refusal(self) -> dict[str, Any]:
        """Of bad input that a real server answers with 500 and a careful one with 400: that it is refused, and the words."""
        return {"refused": self.status >= 400, "message": self.body["message"]}


@dataclass(frozen=True)
class Login:
    """How to be one identity: a client certificate in the TLS context, or headers, or neither."""

    context: ssl.SSLContext
    headers: Mapping[str, str]


class Watch:
    """The events of one open watch."""

    def __init__(self, response: aiohttp.ClientResponse, answer: Answer | None) -> None:
        self._response = response
        self.refused = answer
        self.status = response.status
        self.content_type = response.headers.get("Content-Type", "")

    async def next(self) -> Any:
        """The next event, or None at the end of the stream."""
        if self.refused is not None:
            return None
        line = await self._response.content.readline()
        return json.loads(line) if line.strip() else None

    async def until(self, done: Callable[[list[Any]], bool], timeout_s: float = WATCH_TIMEOUT_S) -> list[Any]:
        """Events up to and including the one with which `done` holds, or up to the end of the stream."""
        seen: list[Any] = []
        async with asyncio.timeout(timeout_s):
            while not done(seen):
                event = await self.next()
                if event is None:
                    break
                seen.append(event)
        return seen

    async def take(self, count: int) -> list[Any]:
        """The next events that are no bookmarks."""
        seen = await self.until(lambda seen: sum(event["type"] != "BOOKMARK" for event in seen) >= count)
        return [event for event in seen if event["type"] != "BOOKMARK"]

    async def drain(self) -> list[Any]:
        """Everything up to the end of the stream."""
        return await self.until(lambda _: False)


class Caller:
    """One identity at one server. A parameter whose name is a word of Python is given as `continue_`."""

    def __init__(self, session: aiohttp.ClientSession, url: str, login: Login) -> None:
        self._session = session
        self.url = url
        self._login = login

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str | None = JSON,
        accept: str | None = JSON,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; a body that is no bytes is sent as JSON."""
        async with asyncio.timeout(CALL_TIMEOUT_S):
            sent = self._request(method, path, body, content_type, accept, query, headers)
            async with sent as response:
                return await _read(response)

    async def get(
        self, path: str, *, accept: str | None = JSON, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Answer:
        return await self.call("GET", path, accept=accept, query=query, headers=headers)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.call("POST", path, body, query=query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.call("PUT", path, body, query=query)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, **query: Any) -> Answer:
        return await self.call("PATCH", path, body, content_type=content_type, query=query)

    async def apply(self, path: str, body: Any, manager: str, **query: Any) -> Answer:
        return await self.patch(path, body, APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.call("DELETE", path, body, query=query)

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str | None = JSON, **query: Any) -> AsyncIterator[Watch]:
        """An open watch. A refusal is no exception: `refused` holds it."""
        async with self._request("GET", path, None, None, accept, {"watch": "true", **query}, None) as response:
            refused = await _read(response) if response.status != 200 else None
            yield Watch(response, refused)

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str | None,
        accept: str | None,
        query: Query | None,
        headers: Mapping[str, str] | None,
    ) -> Any:
        data: Any = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None and len(data) > LARGE_BYTES:
            data = io.BytesIO(data)  # aiohttp warns of bytes so large
        sent = {**self._login.headers, **(headers or {})}
        if accept is not None:
            sent["Accept"] = accept
        if data is not None and content_type is not None:
            sent["Content-Type"] = content_type
        skipped = [name for name in ("Accept", "Content-Type") if name not in sent]
        return self._session.request(
            method,
            self.url + path,
            data=data,
            headers=sent,
            params={name.rstrip("_"): _parameter(value) for name, value in (query or {}).items()},
            ssl=self._login.context,
            allow_redirects=False,
            skip_auto_headers=skipped,
        )


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Without a limit of connections: an open watch holds one. Ends them without the goodbye of TLS, which nobody waits for."""
    connector = AbortingConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=LINE_LIMIT_BYTES, timeout=timeout) as session:
        yield session
        await connector.close(abort_ssl=True)


def _parameter(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _read(response: aiohttp.ClientResponse) -> Answer:
    content = await response.read()
    content_type = response.headers.get("Content-Type", "")
    # A repeated header is joined: several warnings come as several headers.
    headers = {name.lower(): " | ".join(response.headers.getall(name)) for name in response.headers}
    if content_type.startswith(JSON) and content:
        return Answer(response.status, content_type, headers, json.loads(content))
    return Answer(response.status, content_type, headers, content.decode("utf-8", "replace"))
