"""Who may not create, and tries to by another verb: the answers of a real server, and ours."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.embedded.auth.objects_in_memory import asks, binding, plain, role, rule, user
from tests.embedded.auth.real_server import Asks, Caller, OurServer, is_allowed, until
from tests.embedded.server.test_gate import APPLY, CREATED_BY_PUT, NEW_THINGS
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

EDITOR = "edits-and-never-creates"


def prepared(admin: Asks) -> None:
    admin("POST", "/api/v1/namespaces", plain("Namespace", "", "ci"))
    admin.create(role(EDITOR, rule("get update patch delete", "*", "*")))
    admin.create(binding(EDITOR, EDITOR, f"user:{EDITOR}"))


@pytest.fixture(scope="module")
def callers(real_cluster: FullCluster) -> Iterator[tuple[Asks, Asks]]:
    """One user of a real server and of ours."""
    admin, server = Caller(real_cluster, "kubernetes-admin", "system:masters"), OurServer()
    for one in (admin, server.as_user(user("admin", "system:masters"))):
        prepared(one)
    until(lambda: is_allowed(admin, EDITOR, (), asks("patch", "configmaps", "ci")), "the role")
    real = Caller(real_cluster, EDITOR)
    yield real, server.as_user(user(EDITOR))
    real.close()
    admin.close()
    server.close()


@pytest.mark.parametrize("query", ["", "dryRun=All"])
@pytest.mark.parametrize(
    ("plural", "method"),
    [*((plural, "PATCH") for plural in NEW_THINGS), *((plural, "PUT") for plural in CREATED_BY_PUT), ("configmaps", "PUT")],
)
def test_both_servers_refuse_alike(callers: tuple[Asks, Asks], plural: str, method: str, query: str) -> None:
    base, document = NEW_THINGS[plural]
    media = APPLY if method == "PATCH" else "application/json"
    path = f"{base}/{plural}/new?{query}&fieldManager=test"
    expected, got = (caller(method, path, document, media=media) for caller in callers)
    assert got == expected
    assert expected[0] == (404 if (plural, method) == ("configmaps", "PUT") else 403)


@pytest.mark.parametrize("data", [{"not a key": ""}, {"a": "b"}])
def test_both_servers_tell_a_bad_object_first(callers: tuple[Asks, Asks], data: dict[str, str]) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": data}
    path = "/api/v1/namespaces/ci/configmaps/new?fieldManager=test"
    expected, got = (caller("PATCH", path, document, media=APPLY) for caller in callers)
    assert got == expected


def test_both_servers_take_a_namespace_that_is_none_before_the_lack_of_a_right(callers: tuple[Asks, Asks]) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    path = "/api/v1/namespaces/nowhere/configmaps/new?fieldManager=test"
    expected, got = (caller("PATCH", path, document, media=APPLY) for caller in callers)
    assert got == expected


@pytest.mark.parametrize("body", [None, {"preconditions": {"uid": "another"}}, {"preconditions": {"resourceVersion": "1"}}])
def test_both_servers_keep_the_namespaces_that_everything_needs(
    callers: tuple[Asks, Asks], body: dict[str, object] | None
) -> None:
    expected, got = (caller("DELETE", "/api/v1/namespaces/default", body) for caller in callers)
    assert expected[0] == (403 if body is None else 409)
    assert plainly(got) == plainly(expected)


def plainly(answer: tuple[int, Any]) -> tuple[int, Any]:
    """Without what differs between any two clusters."""
    code, document = answer
    return code, {**document, "message": re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=meta: )\d+", "...", document["message"])}
