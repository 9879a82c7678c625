"""Which answer a client takes: the encoding, and whether it wants objects, their metadata or a Table.

JSON and YAML are offered, protobuf never: clients that prefer it name JSON or `*/*` as well, and fall to it. The clauses of an
Accept header are ordered as by the library of the real server: one goes before another when it has a higher quality *or* names
a type where the other has a wildcard. Clauses that make no sense are left out. The refusals carry the real server's texts.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import Refusal, not_acceptable
from applecart.embedded.tables.render import META_GROUP

MAX_HEADER = 8_192  # characters that are looked at; the longest that clients send has some hundred
SORTED_AS_UPSTREAM = 12  # clauses: up to here the other library inserts one by one, and the order depends on it
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Clause(NamedTuple):
    """One alternative that a client takes."""

    type: str
    subtype: str
    parameters: dict[str, str]
    quality: float = 1.0

    def takes(self, media_type: str) -> bool:
        wanted = (self.type, self.subtype)
        kind, _, subtype = media_type.partition("/")
        return wanted in ((kind, subtype), (kind, "*"), ("*", "*"))


@lru_cache(maxsize=256)  # clients send the same few headers with every request
def read_accept(header: str) -> tuple[Clause, ...]:
    clauses = [clause for part in header[:MAX_HEADER].split(",") if part and (clause := _clause(part.strip(" ")))]
    if len(clauses) > SORTED_AS_UPSTREAM:
        return tuple(sorted(clauses, key=lambda one: (-one.quality, one.type == "*", one.subtype == "*")))
    for at in range(1, len(clauses)):
        while at > 0 and _goes_before(clauses[at], clauses[at - 1]):
            clauses[at], clauses[at - 1] = clauses[at - 1], clauses[at]
            at -= 1
    return tuple(clauses)


def _goes_before(one: Clause, other: Clause) -> bool:
    return (
        one.quality > other.quality or (one.type != "*" and other.type == "*") or (one.subtype != "*" and other.subtype == "*")
    )


def _clause(text: str) -> Clause | None:
    media_type, *parameters = text.split(";")
    kind, slash, subtype = media_type.partition("/")
    kind, subtype = kind.strip(" "), subtype.strip(" ")
    if not subtype:
        if kind != "*" or (slash and media_type.partition("/")[2]):
            return None
        subtype = "*"
    if "/" in subtype:
        return None
    found: dict[str, str] = {}
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if not value or "=" in value:
            continue
        if name.strip(" ") == "q":
            quality = float(value) if _NUMBER.fullmatch(value) else 0.0
        else:
            found[name.strip(" ")] = value.strip(" ")
    return Clause(kind, subtype, found, quality)


JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

NAMED_IN_REFUSALS = (JSON, YAML, PROTOBUF)  # the real server's text; ours answers no protobuf
STREAMS = tuple(f"{media_type};stream=watch" for media_type in (JSON, PROTOBUF))

Shape = Literal["object", "metadata", "metadata list", "table"]

_SHAPES: dict[str, Shape] = {
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata list",
    "Table": "table",
}
_META_VERSIONS = ("v1", "v1beta1")

# How the real server names its types in one refusal; events.k8s.io is stored as core.
_GO_PACKAGES = {"": "core", "events.k8s.io": "core", "rbac.authorization.k8s.io": "rbac"}


class Negotiated(msgspec.Struct, frozen=True):
    """What is sent."""

    media_type: str = JSON
    shape: Shape = "object"
    meta_version: str = "v1"  # of a Table or of metadata

    @property
    def is_yaml(self) -> bool:
        return self.media_type == YAML


@lru_cache(maxsize=512)  # clients send the same few headers with every request
def choose_answer(
    accept: str | None, *, version: str = "", is_custom: bool = False, is_list: bool = False, is_watch: bool = False
) -> Negotiated:
    """The answer for an Accept header (None or "" takes JSON); `version` is that of the kind. Refuses with 406."""
    if not accept:
        return Negotiated()
    clauses = read_accept(accept)
    for clause in clauses:
        if clause.subtype == "*" and clause.type != "*" and not is_custom:
            continue  # built-in kinds are chosen by a router that knows whole types and `*/*` only
        for media_type in (JSON, YAML):
            if clause.takes(media_type) and (answer := _answer(clause, media_type, version)):
                if is_watch and answer.is_yaml:
                    raise not_acceptable(STREAMS)
                return answer
    named = [clause for clause in clauses if clause.subtype != "*" or is_custom]
    if any(clause.takes(PROTOBUF) and not clause.parameters for clause in named):
        raise not_acceptable((JSON, YAML))
    if is_custom or any(clause.takes(media_type) for clause in named for media_type in NAMED_IN_REFUSALS):
        raise not_acceptable(NAMED_IN_REFUSALS)
    raise no_such_representation((*NAMED_IN_REFUSALS, *STREAMS) if is_list or is_watch else NAMED_IN_REFUSALS)


def _answer(clause: Clause, media_type: str, version: str) -> Negotiated | None:
    wanted = clause.parameters
    stream = wanted.get("stream", "")
    if stream and (stream != "watch" or media_type == YAML):
        return None
    if wanted.get("sv", "") not in ("", version):
        return None
    if not wanted.keys() & {"as", "g", "v"}:
        return Negotiated(media_type)
    shape = _SHAPES.get(wanted.get("as", ""))
    meta_version = wanted.get("v", "")
    if shape is None or wanted.get("g") != META_GROUP or meta_version not in _META_VERSIONS:
        return None
    return Negotiated(media_type, shape, meta_version)


def no_such_representation(available: tuple[str, ...]) -> Refusal:
    """The refusal of paths whose representations are fixed."""
    return Refusal(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}", {})


def refuse_wrong_number(answer: Negotiated, kind: Kind, *, is_list: bool) -> None:
    """Refuse metadata of one object for a list, and of a list for one object. A watch is neither: do not ask for one."""
    if answer.shape == "metadata" and is_list:
        asked, given, suffix = "PartialObjectMetadata", "a list", "List"
    elif answer.shape == "metadata list" and not is_list:
        asked, given, suffix = "PartialObjectMetadataList", "not a list", ""
    else:
        return
    name = f"unstructured.Unstructured{suffix}"
    if not kind.is_custom:
        group = kind.resource.group
        name = f"{_GO_PACKAGES.get(group, group.partition('.')[0])}.{kind.resource.kind}{suffix}"
    raise Refusal(406, "NotAcceptable", f"you requested {asked}, but the requested object is {given} (*{name})")


DiscoveryShape = Literal["legacy", "v2"]


class DiscoveryAnswer(msgspec.Struct, frozen=True):
    """How discovery is sent."""

    media_type: str = JSON
    shape: DiscoveryShape = "legacy"


@lru_cache(maxsize=256)
def choose_discovery(accept: str | None) -> DiscoveryAnswer:
    """The answer of `/api` and `/apis`: the aggregated document when it is named anywhere, the old ones otherwise."""
    clauses = read_accept(accept) if accept else ()
    for clause in clauses:
        wanted = clause.parameters
        version = wanted.get("v")
        if wanted.get("as") != "APIGroupDiscoveryList" or wanted.get("g") != "apidiscovery.k8s.io":
            continue
        for media_type in (JSON, YAML):
            if clause.takes(media_type) and version == "v2":
                return DiscoveryAnswer(media_type, "v2")
    return DiscoveryAnswer(choose_plain(accept))


@lru_cache(maxsize=256)
def choose_plain(accept: str | None) -> str:
    """The encoding of a document that has one shape only. Refuses with 406."""
    for clause in read_accept(accept) if accept else ():
        for media_type in (JSON, YAML):
            if clause.takes(media_type) and not clause.parameters.keys() & {"as", "g", "v"}:
                return media_type
    if not accept:
        return JSON
    if any(clause.takes(media_type) for clause in read_accept(accept) for media_type in NAMED_IN_REFUSALS):
        raise not_acceptable(NAMED_IN_REFUSALS)
    raise no_such_representation(NAMED_IN_REFUSALS)
