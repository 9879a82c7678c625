"""Asking a real API server and ours the same things, and seeing the real one's objects the way our authorizers do."""

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qsl

import pytest

from applecart.clock import SystemClock
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.server import running_api
from applecart.kube.transport import Request
from tests.embedded.auth.objects_in_memory import GROUP, LABELS, ObjectsInMemory
from tests.embedded.memory_log import MemoryLog
from tests.kube.embedded_api import token_keys
from tests.kubernetes.cluster import FullCluster
from tests.kubernetes.recipe import DEFAULT_KUBE

RBAC = f"/apis/{GROUP}/v1"
CORE = "/api/v1"
TIMEOUT_S = 30
PATHS = {
    "Pod": f"{CORE}/pods",
    "Node": f"{CORE}/nodes",
    "ServiceAccount": f"{CORE}/serviceaccounts",
    "Role": f"{RBAC}/roles",
    "ClusterRole": f"{RBAC}/clusterroles",
    "RoleBinding": f"{RBAC}/rolebindings",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
}


class Asks:
    """Sends requests as one user."""

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Iterable[tuple[str, str]] = (), media: str = "application/json"
    ) -> tuple[int, Any]:
        raise NotImplementedError

    def create(self, document: Document) -> Document:
        """Create an object where its kind is served."""
        meta = document["metadata"]
        whole = PATHS.get(document["kind"]) or f"{CORE}/{document['kind'].lower()}s"
        root, _, plural = whole.rpartition("/")
        namespace = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
        code, answer = self("POST", f"{root}{namespace}/{plural}", document)
        assert code == 201, answer
        created: Document = answer
        return created

    def close(self) -> None:
        """Nothing more is asked."""


class Caller(Asks):
    """A real server, over one connection."""

    def __init__(self, cluster: FullCluster, user: str = "", *groups: str, token: str = "") -> None:
        self._context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        if user:
            files = cluster.issue_client(user.replace(":", "-").replace("/", "-"), user, *groups).files
            self._context.load_cert_chain(files.certificate, files.key)
        self._token = token
        self._address = cluster.url.removeprefix("https://")
        self._connection: http.client.HTTPSConnection | None = None

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Iterable[tuple[str, str]] = (), media: str = "application/json"
    ) -> tuple[int, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._address, context=self._context, timeout=TIMEOUT_S)
        connection = self._connection
        connection.putrequest(method, path)
        content = b"" if body is None else json.dumps(body).encode()
        connection.putheader("Content-Length", str(len(content)))
        if body is not None:
            connection.putheader("Content-Type", media)
        if self._token:
            connection.putheader("Authorization", f"Bearer {self._token}")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class OurServer:
    """The embedded API in memory, for a test that is no coroutine."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        api = running_api(MemoryLog(), SystemClock(), token_keys())
        self._api = self._runner.run(self._stack.enter_async_context(api))

    def as_user(self, user: User) -> Asks:
        return _OurCaller(self._runner, self._api.transport(user))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


class _OurCaller(Asks):
    def __init__(self, runner: asyncio.Runner, transport: InProcessTransport) -> None:
        self._runner = runner
        self._transport = transport

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Iterable[tuple[str, str]] = (), media: str = "application/json"
    ) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, tuple(parse_qsl(query)), body=content, content_type=media)
        answer = self._runner.run(self._transport.send(request))
        return answer.status, json.loads(answer.body)


def needs_newest(kube: str) -> None:
    """Leave out a comparison that older minors answer in other words or with other defaults; ours are the newest one's."""
    if kube != DEFAULT_KUBE:
        pytest.skip(f"Kubernetes {kube} answers this otherwise than {DEFAULT_KUBE}, which is the one we follow")


def until(is_true: Callable[[], bool], what: str) -> None:
    """Ask until it is so: a real server learns of roles and Pods a moment after they are written."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < deadline, f"the server never came to know {what}"


def seen_objects(admin: Asks) -> ObjectsInMemory:
    """The server's objects that decide, in memory."""
    objects = ObjectsInMemory()
    for kind, path in PATHS.items():
        _, answer = admin("GET", path)
        for item in answer["items"]:
            objects.put({"kind": kind, **item})
    return objects


def review(attributes: Attributes) -> Document:
    """A question as the spec of an access review."""
    a = attributes
    if not a.is_resource:
        return {"nonResourceAttributes": {"verb": a.verb, "path": a.path}}
    members = {
        "verb": a.verb,
        "group": a.group,
        "resource": a.resource,
        "subresource": a.subresource,
        "namespace": a.namespace,
        "name": a.name,
    }
    asked: Document = {name: value for name, value in members.items() if value}
    if a.field_selector:
        asked["fieldSelector"] = {"rawSelector": a.field_selector}
    return {"resourceAttributes": asked}


def is_allowed(admin: Asks, user: str, groups: Iterable[str], attributes: Attributes) -> bool:
    spec = {"user": user, "groups": list(groups), **review(attributes)}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    _, answer = admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


def plural_of(kind: str) -> str:
    return LABELS[kind].partition(".")[0]
