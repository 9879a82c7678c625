"""kubectl beside our documents: a server that answers discovery, OpenAPI and version from them, and nothing else.

What kubectl makes of them is what counts: that it finds every kind by every name, explains custom kinds, and sends what it
creates with strict field validation.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from applecart.embedded.surface.discovery import Discovery
from applecart.embedded.surface.negotiation import choose_discovery
from applecart.embedded.surface.openapi_v3 import OpenApi
from applecart.embedded.surface.served import GIT_VERSION, VIRTUAL_KINDS, version_document
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM, GROUP, schema_of

pytestmark = pytest.mark.kubernetes

KUBECTL_TIMEOUT_S = 30
ALL = (*BUILT_IN, *VIRTUAL_KINDS, *CUSTOM)


class Paths:
    """The server. It keeps what it was asked, so that a test can see what kubectl decided."""

    def __init__(self, *, is_aggregated: bool) -> None:
        self.asked: list[str] = []
        self.patched: list[str] = []
        self.stored: dict[str, Any] = {}  # what was created, by its collection
        self._is_aggregated = is_aggregated
        self._discovery = Discovery(ALL)
        self._openapi = OpenApi(ALL, schema_of)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.rel_url}")
        parts = request.path.strip("/").split("/")
        match parts:
            case ["version"]:
                return web.json_response(version_document())
            case ["api" | "apis"] if self._is_aggregated:
                found = self._discovery.aggregated(choose_discovery(request.headers.get("Accept")), is_core=parts == ["api"])
                if found.is_known(request.headers.get("If-None-Match")):
                    return web.Response(status=304, headers=found.headers)
                return web.Response(body=found.body, headers=found.headers)
            case ["api"]:
                return web.json_response(self._discovery.core_versions(request.host))
            case ["apis"]:
                return web.json_response(self._discovery.group_list())
            case ["api", version] | ["apis", _, version]:
                return web.json_response(self._discovery.resource_list(parts[1] if len(parts) == 3 else "", version))
            case ["openapi", "v3"]:
                return web.Response(body=self._openapi.index(), content_type="application/json")
            case ["openapi", "v3", *rest]:
                found_document = self._openapi.document("/".join(rest))
                if found_document is None:
                    return web.Response(status=404)
                described, digest = found_document
                return web.Response(body=described, headers={"Content-Type": "application/json", "ETag": f'"{digest}"'})
        if request.method == "POST":
            self.stored[request.path] = await request.json()
            return web.json_response(self.stored[request.path], status=201)
        collection, _, name = request.path.rpartition("/")
        found_object = self.stored.get(collection)
        if found_object and found_object["metadata"]["name"] == name:
            if request.method == "PATCH":
                self.patched.append(f"{request.content_type} {await request.text()}")
            return web.json_response(found_object)
        return web.json_response({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, status=404)


class Kubectl:
    def __init__(self, program: Path, url: str, home: Path, paths: Paths) -> None:
        self._arguments = [str(program), "--server", url, "--cache-dir", str(home / "cache"), "--kubeconfig", "/dev/null"]
        self._home = home
        self.paths = paths

    async def run(self, *arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            *self._arguments,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": str(self._home), "NO_PROXY": "*"},
        )
        async with asyncio.timeout(KUBECTL_TIMEOUT_S):
            output, _ = await process.communicate(stdin.encode())
        assert process.returncode == 0, output.decode()
        return output.decode()


@pytest.fixture(params=["aggregated", "legacy"])
async def kubectl(request: pytest.FixtureRequest, kube_programs: Path, tmp_path: Path) -> AsyncIterator[Kubectl]:
    paths = Paths(is_aggregated=request.param == "aggregated")
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", paths.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield Kubectl(kube_programs / "kubectl", f"http://{host}:{port}", tmp_path, paths)
    await runner.cleanup()


async def test_kubectl_lists_every_kind_with_its_names(kubectl: Kubectl) -> None:
    listed = await kubectl.run("api-resources", "--no-headers", "-o", "wide")
    assert {line.split()[0] for line in listed.splitlines()} == {kind.resource.plural for kind in ALL}
    assert [line.split()[1] for line in listed.splitlines() if line.startswith("customresourcedefinitions")] == ["crd,crds"]
    # The second time the documents come from kubectl's cache or as a 304, and must mean the same.
    assert await kubectl.run("api-resources", "--no-headers", "-o", "wide") == listed


async def test_kubectl_knows_the_version(kubectl: Kubectl) -> None:
    assert f"Server Version: {GIT_VERSION}" in await kubectl.run("version")


async def test_kubectl_explains_a_custom_kind_by_its_short_name(kubectl: Kubectl) -> None:
    explained = await kubectl.run("explain", "gd.spec")
    assert f"GROUP:      {GROUP}" in explained
    assert "What is wanted of it." in explained
    assert "replicas\t<integer>" in explained


async def test_kubectl_explains_the_metadata_of_a_custom_kind(kubectl: Kubectl) -> None:
    assert "finalizers\t<[]string>" in await kubectl.run("explain", "gadgets.metadata")


async def test_kubectl_says_of_a_built_in_kind_that_it_is_not_described(kubectl: Kubectl) -> None:
    explained = await kubectl.run("explain", "pods")
    assert "KIND:       Pod" in explained
    assert "not described by this server" in explained


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"),
        (f"{GROUP}/v1", "Gadget", f"/apis/{GROUP}/v1/namespaces/default/gadgets"),
        (f"{GROUP}/v1", "Anvil", f"/apis/{GROUP}/v1/anvils"),
    ],
)
async def test_kubectl_creates_with_strict_validation(kubectl: Kubectl, api_version: str, kind: str, path: str) -> None:
    manifest = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}})
    await kubectl.run("create", "-f", "-", stdin=manifest)
    assert f"POST {path}?fieldManager=kubectl-create&fieldValidation=Strict" in kubectl.paths.asked


@pytest.mark.parametrize(
    ("api_version", "kind", "media_type"),
    [("v1", "Secret", "application/strategic-merge-patch+json"), (f"{GROUP}/v1", "Anvil", "application/merge-patch+json")],
)
async def test_kubectl_applies_a_change_without_a_warning(
    kubectl: Kubectl, api_version: str, kind: str, media_type: str
) -> None:
    """With strategic merge offered but no schema, kubectl computes its patch in vain and warns with every apply."""
    first, second = (
        json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one", "labels": {"a": value}}})
        for value in ("1", "2")
    )
    name = f"{kind.lower()}.{GROUP}/one" if kind == "Anvil" else "secret/one"
    assert await kubectl.run("apply", "-f", "-", stdin=first) == f"{name} created\n"
    assert await kubectl.run("apply", "-f", "-", stdin=second) == f"{name} configured\n"
    (patch,) = kubectl.paths.patched
    assert patch.startswith(f"{media_type} ")
    assert '"labels":{"a":"2"}' in patch
