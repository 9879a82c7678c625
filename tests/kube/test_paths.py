"""Where objects are served, and that no name can lead elsewhere."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.coordination import Lease
from applecart.api.meta import Key, Resource
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.errors import BadInput
from applecart.kube.paths import collection_path, object_path


@pytest.mark.parametrize(
    ("resource", "namespace", "expected"),
    [
        (Pod.resource, "", "/api/v1/pods"),
        (Pod.resource, "ci", "/api/v1/namespaces/ci/pods"),
        (Node.resource, "", "/api/v1/nodes"),
        (Node.resource, "ci", "/api/v1/nodes"),
        (Lease.resource, "ci", "/apis/coordination.k8s.io/v1/namespaces/ci/leases"),
    ],
)
def test_collections(resource: Resource, namespace: str, expected: str) -> None:
    assert collection_path(resource, namespace) == expected


@pytest.mark.parametrize(
    ("resource", "key", "subresource", "expected"),
    [
        (Pod.resource, Key("ci", "a"), "", "/api/v1/namespaces/ci/pods/a"),
        (Pod.resource, Key("ci", "a"), "status", "/api/v1/namespaces/ci/pods/a/status"),
        (Node.resource, Key("", "mac-1"), "", "/api/v1/nodes/mac-1"),
        (Lease.resource, Key("ci", "a"), "", "/apis/coordination.k8s.io/v1/namespaces/ci/leases/a"),
        # RBAC names hold colons, and the API server wants them as they are.
        (Node.resource, Key("", "system:node"), "", "/api/v1/nodes/system:node"),
    ],
)
def test_objects(resource: Resource, key: Key, subresource: str, expected: str) -> None:
    assert object_path(resource, key, subresource) == expected


def test_a_namespaced_object_without_a_namespace_is_refused_with_its_name() -> None:
    with pytest.raises(BadInput, match="Pod 'a' needs a namespace"):
        object_path(Pod.resource, Key("", "a"))


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_address_something_else_is_refused(name: str) -> None:
    """Deleting the object with the empty name would delete the whole collection."""
    with pytest.raises(BadInput, match="no name"):
        object_path(Pod.resource, Key("ci", name))


@pytest.mark.parametrize("namespace", [".", ".."])
def test_a_namespace_that_would_address_something_else_is_refused(namespace: str) -> None:
    with pytest.raises(BadInput):
        collection_path(Pod.resource, namespace)


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_other_name_stays_inside_its_segment(namespace: str, name: str) -> None:
    try:
        path = object_path(Pod.resource, Key(namespace, name))
    except BadInput:
        assert {namespace, name} & {".", ".."}
        return
    segments = path.split("/")
    assert len(segments) == 7
    assert not set(path) & set("?# ")
    assert (unquote(segments[4]), unquote(segments[6])) == (namespace, name)
