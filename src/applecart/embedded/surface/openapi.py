"""OpenAPI v3: the index of documents and one document per group and version.

kubectl refuses to create or apply without it. A document's address carries the hash of its content, so that clients keep it for
good; an address with an old hash is led to the new one. An `OpenApi` is made from one set of kinds and never changes; its
documents are made when they are first asked for.
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec

from applecart.embedded.surface.negotiation import read_accept
from applecart.embedded.surface.openapi_parts import (
    OBJECT_META,
    OBJECT_META_SCHEMA,
    PARAMETERS,
    base_path,
    paths_of,
    schema_name,
    schemas_of,
)
from applecart.embedded.surface.served import MAJOR, MINOR, Served

Document = dict[str, Any]

PREFIX = "/openapi/v3"
JSON = "application/json"
KEEP_FOR = timedelta(days=365)  # an address with a hash never answers anything else


class OpenApiAnswer(msgspec.Struct, frozen=True):
    """What is sent for one document."""

    code: int
    headers: dict[str, str]
    body: bytes = b""


class OpenApi:
    """The documents of one set of kinds. `schema_of` gives the schema of a custom kind, None for a built-in one.

    What `previous` made for the very same kinds is taken over: a new CRD changes one document of many.
    """

    def __init__(
        self,
        kinds: Iterable[Served],
        schema_of: Callable[[Any], Document | None],
        previous: "OpenApi | None" = None,
    ) -> None:
        self._schema_of = schema_of
        self._kinds: dict[str, list[Served]] = {}
        for kind in kinds:
            self._kinds.setdefault(base_path(kind.resource).removeprefix("/"), []).append(kind)
        self._documents: dict[str, tuple[bytes, str]] = {}
        if previous is not None:
            same = {path for path, found in self._kinds.items() if _are_same(found, previous._kinds.get(path, []))}
            self._documents = {path: made for path, made in previous._documents.items() if path in same}
        self._index = b""

    def index(self) -> bytes:
        """`/openapi/v3`."""
        if not self._index:
            paths = {path: {"serverRelativeURL": self._address(path)} for path in sorted(self._kinds)}
            self._index = msgspec.json.encode({"paths": paths})
        return self._index

    def answer(
        self, path: str, now: datetime, *, accept: str | None = None, asked_hash: str = "", if_none_match: str | None = None
    ) -> OpenApiAnswer:
        """`/openapi/v3/{path}`, such as `api/v1`."""
        if path not in self._kinds:
            return OpenApiAnswer(404, {})
        if accept and not any(clause.takes(JSON) for clause in read_accept(accept)):
            return OpenApiAnswer(406, {"Vary": "Accept"})
        body, digest = self._document(path)
        headers = {"Content-Type": JSON, "ETag": f'"{digest}"', "Vary": "Accept"}
        if asked_hash and asked_hash != digest:
            return OpenApiAnswer(301, {**headers, "Location": self._address(path)})
        if asked_hash:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime((now + KEEP_FOR).astimezone(UTC), usegmt=True)
        if if_none_match == headers["ETag"]:
            return OpenApiAnswer(304, headers)
        return OpenApiAnswer(200, headers, body)

    def _address(self, path: str) -> str:
        return f"{PREFIX}/{path}?hash={self._document(path)[1]}"

    def _document(self, path: str) -> tuple[bytes, str]:
        if path not in self._documents:
            body = msgspec.json.encode(_document(self._kinds[path], self._schema_of))
            self._documents[path] = (body, hashlib.sha512(body).hexdigest().upper())
        return self._documents[path]


def _are_same(some: list[Served], others: list[Served]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def _document(kinds: list[Served], schema_of: Callable[[Any], Document | None]) -> Document:
    paths: Document = {}
    schemas: Document = {OBJECT_META: OBJECT_META_SCHEMA}
    for kind in kinds:
        resource = kind.resource
        paths.update(paths_of(kind, schema_name(resource.group, resource.version, resource.kind)))
        list_kind = getattr(kind, "list_kind", f"{resource.kind}List")
        schemas.update(schemas_of(kind, list_kind, schema_of(kind)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"{MAJOR}.{MINOR}"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items())), "parameters": PARAMETERS},
    }
