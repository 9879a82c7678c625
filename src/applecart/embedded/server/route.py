"""From method and path to what is asked of which kind.

Nothing of the body is looked at here: authorization decides on the result. A path that cannot be a resource is one of the
few others (health, discovery), named by itself.
"""

from collections.abc import Mapping
from functools import lru_cache

from applecart.embedded.attributes import Attributes
from applecart.embedded.field_selectors import parse_field_selector
from applecart.embedded.server.parameters import is_true

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_OF_NAMESPACES = ("status", "finalize")  # paths below a namespace that are the namespace's own


@lru_cache(16384)
def place_of(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Which resource a path names; None for paths outside of the resources."""
    parts = path.strip("/").split("/")
    match parts:
        case ["api", version, _, *_]:
            group, rest = "", parts[2:]
        case ["apis", group, version, _, *_]:
            rest = parts[3:]
        case _:
            return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    return group, version, namespace, plural, name, subresource


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    place = place_of(path)
    if place is None:
        return Attributes(verb=method.lower(), path=path)
    group, version, namespace, plural, name, subresource = place
    verb = _VERBS.get(method, method.lower())
    field_selector = query.get("fieldSelector", "")
    if not name:
        if verb == "get":
            verb = "watch" if is_true(query.get("watch")) else "list"
        elif verb == "delete":
            verb = "deletecollection"
        if verb in ("list", "watch") and "metadata.name" in field_selector:
            # Who may read one object by name may also watch it by name.
            name = parse_field_selector(field_selector).wanted("metadata.name") or ""
    return Attributes(
        verb=verb,
        path=path,
        is_resource=True,
        group=group,
        version=version,
        resource=plural,
        subresource=subresource,
        namespace=namespace,
        name=name,
        label_selector=query.get("labelSelector", "") if verb in ("list", "watch", "deletecollection") else "",
        field_selector=field_selector if verb in ("list", "watch", "deletecollection") else "",
    )
