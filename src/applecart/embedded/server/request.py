"""A request and its answer, whoever carries them, and what the request asks for: verb, resource and parameters.

Authorization decides on the attributes, so they are read from method, path and query alone, in one place and before anything of
the body is believed. A path that cannot be a resource is one of the few others (health, discovery), named by itself.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from applecart.api.meta import Resource
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.field_errors import FieldError, not_supported, quoted
from applecart.embedded.refusals import Refusal, bad_request, invalid
from applecart.embedded.remembered import remembered
from applecart.embedded.selectors import parse_field_selector

JSON = "application/json"
END = b"\n"  # of an answer in JSON: whoever asks by hand has a prompt on a line of its own


@dataclass(slots=True)
class ApiRequest:
    method: str
    path: str  # decoded, without query
    query: Mapping[str, str]  # the first value of each parameter
    user: User
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    read_body: Callable[[], Awaitable[bytes]] | None = None  # for a body that waits until it is known who may send it
    warnings: list[str] = field(default_factory=list)  # gathered on the way, sent beside the answer

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")


@dataclass(slots=True)
class Answer:
    """An answer whose body is known."""

    status: int
    body: bytes = b""
    content_type: str = JSON  # "" sends none
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # one header each


@dataclass(slots=True)
class StreamAnswer:
    """An answer whose body comes in pieces: a watch, or a list too long to build at once."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


async def in_one_piece(body: bytes) -> AsyncIterator[bytes]:
    yield body


_OPTIONS_GROUP = "meta.k8s.io"


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_true(text: str | None) -> bool:
    """A parameter that is there is true, unless it says otherwise; also when it is empty."""
    return text is not None and text.lower() not in ("0", "false")


def integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        number = int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else None
    except ValueError:
        number = None
    if number is None or not -(1 << 63) <= number < 1 << 63:
        why = "invalid syntax" if number is None else "value out of range"
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}")
    return number


def revision(text: str) -> int:
    """A resourceVersion as a number. Raises ValueError with the words of the server's own parser."""
    if text.isascii() and text.isdigit():
        if int(text) < 1 << 64:
            return int(text)
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Refusal:
    """The refusal of an options object, which has no name."""
    return invalid(Resource(_OPTIONS_GROUP, "v1", kind, kind.lower()), "", errors)


def dry_run_problems(stages: Sequence[object]) -> list[FieldError]:
    """`All` is the only stage there is."""
    return [] if all(stage == "All" for stage in stages) else [not_supported("dryRun", list(stages), ("All",))]


def is_dry_run(query: Mapping[str, str], kind: str) -> bool:
    """Whether nothing may be stored; `kind` is that of the options, for the refusal."""
    stages = [query["dryRun"]] if "dryRun" in query else []
    if errors := dry_run_problems(stages):
        raise invalid_options(kind, errors)
    return bool(stages)


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_OF_NAMESPACES = ("status", "finalize")  # paths below a namespace that are the namespace's own


@remembered(16384)
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
            verb = "watch" if method == "GET" and is_true(query.get("watch")) else "list"
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
