"""Where the API serves an object or a collection."""

from urllib.parse import quote

from applecart.api.meta import Key, Resource
from applecart.errors import BadInput


def collection_path(resource: Resource, namespace: str = "") -> str:
    """The collection of a kind, in one namespace or (namespace "") in all of them."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if namespace and resource.namespaced:
        return f"{root}/namespaces/{_segment(namespace)}/{resource.plural}"
    return f"{root}/{resource.plural}"


def object_path(resource: Resource, key: Key, subresource: str = "") -> str:
    """One object, or one of its subresources."""
    if resource.namespaced and not key.namespace:
        raise BadInput(f"{resource.kind} {key.name!r} needs a namespace")
    path = f"{collection_path(resource, key.namespace)}/{_segment(key.name)}"
    return f"{path}/{subresource}" if subresource else path


def _segment(text: str) -> str:
    """A path segment that cannot climb out of its place: an empty name would address the whole collection."""
    if not text or text in (".", ".."):
        raise BadInput(f"{text!r} is no name of a Kubernetes object")
    return quote(text, safe=":")
