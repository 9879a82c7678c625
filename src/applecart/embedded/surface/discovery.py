"""Discovery: what the server serves, in the two forms that clients ask for.

The old form is one document per group and version; the aggregated one is everything below `/api` or `/apis` at once, with an
ETag. A `Discovery` is made from one set of kinds and never changes; whoever changes the set makes a new one. Aggregated
documents are made when they are first asked for.
"""

import base64
import hashlib
from collections.abc import Iterable

import msgspec

from applecart.embedded.kinds.kind import Subresource
from applecart.embedded.schema.budget import spend
from applecart.embedded.surface.negotiation import DiscoveryAnswer
from applecart.embedded.surface.openapi import Document
from applecart.embedded.surface.served import Served, groups_of

# The order in which the real server lists the verbs of custom kinds; those of built-in ones are sorted.
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
STEPS_OF_AN_ENTRY = 15  # with a hundred short names and as many categories
HASH_BYTES = 8  # of a storage version, as the real server cuts it
# Kinds that the real server stores in another version than it serves; clients compare the hash, nothing here depends on it.
STORED_AS = {("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1"}


class Aggregated(msgspec.Struct, frozen=True):
    """An aggregated document. A 304 repeats the headers, the content type too: kubectl's cache takes it from there."""

    document: Document
    body: bytes  # the document as JSON
    etag: str
    content_type: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": self.content_type, "ETag": self.etag, "Vary": "Accept", "Cache-Control": "public"}

    def is_known(self, if_none_match: str | None) -> bool:
        """Whether the client has this document already."""
        return if_none_match == self.etag


class Discovery:
    """The documents of one set of kinds."""

    def __init__(self, kinds: Iterable[Served]) -> None:
        self._groups = groups_of(kinds)
        self._aggregated: dict[tuple[bool, DiscoveryAnswer], Aggregated] = {}

    def core_versions(self, server_address: str) -> Document:
        """`/api`; the address is the one the client used."""
        return {
            "kind": "APIVersions",
            "versions": list(self._groups.get("", ())),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
        }

    def group_list(self) -> Document:
        """`/apis`."""
        named = [group for group in self._groups if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(group) for group in named]}

    def group(self, name: str) -> Document | None:
        """`/apis/{group}`; None when there is none."""
        if not name or name not in self._groups:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def resource_list(self, group: str, version: str) -> Document | None:
        """`/api/v1` or `/apis/{group}/{version}`; None when there is none."""
        kinds = self._groups.get(group, {}).get(version)
        if kinds is None:
            return None
        entries = [entry for kind in kinds for entry in _entries(kind)]
        if not kinds[0].is_custom:
            entries.sort(key=lambda entry: str(entry["name"]))
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }

    def aggregated(self, answer: DiscoveryAnswer, *, is_core: bool) -> Aggregated:
        """Everything below `/api` or `/apis` at once."""
        key = (is_core, answer)
        if key not in self._aggregated:
            api_version = f"apidiscovery.k8s.io/{answer.shape}"
            mine = [name for name in self._groups if is_core == (name == "")]
            spend(STEPS_OF_AN_ENTRY * sum(len(kinds) for name in mine for kinds in self._groups[name].values()))
            items = [self._aggregated_group(name) for name in mine]
            document = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}
            digest = hashlib.sha512(msgspec.json.encode(items)).hexdigest().upper()
            content_type = f"{answer.media_type};g=apidiscovery.k8s.io;v={answer.shape};as=APIGroupDiscoveryList"
            self._aggregated[key] = Aggregated(document, msgspec.json.encode(document), f'"{digest}"', content_type)
        return self._aggregated[key]

    def _group(self, name: str) -> Document:
        versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in self._groups[name]]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _aggregated_group(self, name: str) -> Document:
        versions = [
            {"version": version, "resources": [_aggregated_entry(kind) for kind in kinds], "freshness": "Current"}
            for version, kinds in self._groups[name].items()
        ]
        return {"metadata": {"name": name} if name else {}, "versions": versions}


def _entries(kind: Served) -> Iterable[Document]:
    resource = kind.resource
    yield {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(kind),
        **_names(kind),
        **({"storageVersionHash": storage_version_hash(kind)} if "watch" in kind.verbs else {}),
    }
    for sub in kind.subresources:
        yield {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **({"group": sub.group, "version": sub.version} if sub.version else {}),
            "kind": sub.kind,
            "verbs": list(sub.verbs),
        }


def _aggregated_entry(kind: Served) -> Document:
    resource = kind.resource
    subresources = kind.subresources if kind.is_custom else sorted(kind.subresources, key=lambda sub: sub.name)
    return {
        "resource": resource.plural,
        "responseKind": _response_kind(kind, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
        **_names(kind),
        **({"subresources": [_aggregated_subresource(kind, sub) for sub in subresources]} if subresources else {}),
    }


def _aggregated_subresource(kind: Served, sub: Subresource) -> Document:
    answered = {"group": sub.group, "version": sub.version, "kind": sub.kind} if sub.version else None
    return {
        "subresource": sub.name,
        "responseKind": answered or _response_kind(kind, sub.kind),
        "verbs": list(sub.verbs),
    }


def _response_kind(kind: Served, name: str) -> Document:
    """Built-in kinds leave group and version open, which means those of the list."""
    resource = kind.resource
    is_custom = kind.is_custom
    return {"group": resource.group if is_custom else "", "version": resource.version if is_custom else "", "kind": name}


def _verbs(kind: Served) -> list[str]:
    if kind.is_custom:
        return [verb for verb in CUSTOM_VERBS if verb in kind.verbs]
    return sorted(kind.verbs)


def _names(kind: Served) -> Document:
    return {
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": list(kind.categories)} if kind.categories else {}),
    }


def storage_version_hash(kind: Served) -> str:
    """Changes when objects are stored in another version, which tells clients to migrate."""
    stored = kind.storage
    version = STORED_AS.get((stored.group, stored.kind), stored.version)
    digest = hashlib.sha256(f"{stored.group}/{version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:HASH_BYTES]).decode("ascii")
