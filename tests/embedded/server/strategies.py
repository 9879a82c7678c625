"""What strangers send, and a server that has to bear it.

Valid documents of every served kind are broken in a few places with any JSON value, or in a few bytes. `bear` gives a fresh
server each time (it starts in two milliseconds), so that a failure depends on nothing but its input, and holds every answer to
the same promise: no 500, an error is a `Status`, and the server works afterwards.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from applecart.clock import VirtualClock, VirtualLoop
from applecart.embedded.auth.user import ANONYMOUS, User
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, place_of
from applecart.embedded.server.server import ADMIN, RunningApi, running_api
from tests.embedded.memory_log import MemoryLog
from tests.embedded.structure.samples import CLUSTER_WIDE, CRD, NAMESPACED
from tests.kube.embedded_api import token_keys
from tests.soak import soaks

Document = dict[str, Any]
# Few, because each has a server of its own; a defect that a longer search finds becomes a case of its own.
few_inputs = settings(max_examples=soaks(20, 500), suppress_health_check=list(HealthCheck))
NAMESPACE = "default"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
LISTENING_S = 5.0  # to a watch, which would go on for an hour
TOO_NEW = 504  # the real server's answer to a revision that is not there yet

CUSTOM: Document = {
    "apiVersion": "structure.applecart.dev/v1",
    "kind": "Sample",
    "metadata": {"name": "sample", "labels": {"a": "b"}},
    "spec": {"size": 1, "ratio": 1.5, "names": ["a", "ab"], "free": {"x": [1]}, "labels": {"a": "b"}, "port": "http"},
    "status": {"ready": True, "n": 1},
}
CUSTOM_PATH = f"/apis/structure.applecart.dev/v1/namespaces/{NAMESPACE}/samples"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

DEFINITION: Document = {  # of another kind than the one that every server here has
    **CRD,
    "metadata": {"name": "others.more.applecart.dev"},
    "spec": {**CRD["spec"], "group": "more.applecart.dev", "names": {"kind": "Other", "plural": "others"}},
}


def _placed(samples: Sequence[tuple[str, Document]]) -> list[tuple[str, Document]]:
    text = msgspec.json.encode(samples).decode().replace("{ns}", NAMESPACE)
    return [(path, document) for path, document in msgspec.json.decode(text)]


# Where each kind is created, and a document that is accepted there.
SAMPLES: list[tuple[str, Document]] = [
    *_placed(NAMESPACED),
    *((path, document) for path, document in _placed(CLUSTER_WIDE) if path != CRD_PATH),
    (CRD_PATH, DEFINITION),
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sample"}}),
    (CUSTOM_PATH, CUSTOM),
]


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    user: User = ADMIN


STRANGERS = (
    ADMIN,
    User("system:node:mac-1", ("system:nodes", "system:authenticated")),
    User("jane", ("system:authenticated",)),
    ANONYMOUS,
)


# Values

awkward_texts = st.sampled_from(
    ["", "a", "A", "-", ".", "..", "a/b", "\x00", "\ufeff", "\u2028", "\U0001f34e", "é", " ", "0", "1e9", "-1", "1Gi", "None",
     "null", "true", "2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10.0.0.1", "::1", "%", "$patch",
     "{}", "[", "a" * 64, "a" * 254, "1" * 400, "9" * 30 + "Gi", "All", "Node", "Pod", "default", "sample", "metadata.name",
     "a=b", "(((", "x" * 70_000]
)  # fmt: skip
texts = awkward_texts | st.text(max_size=6)
awkward_numbers = st.sampled_from(
    [
        0,
        -1,
        1,
        65536,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**53 + 1,
        2**63 - 1,
        2**63,
        -(2**63),
        2**64,
        10**30,
        0.5,
        -0.0,
        1e308,
        1e-320,
    ]
)
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | awkward_numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def nested(depth: int, is_list: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


deep_json = st.builds(nested, st.sampled_from([30, 100, 300, 510]), st.booleans())


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a value."""
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield (*path, name)
        yield from places(child, (*path, name))


@st.composite
def broken(draw: st.DrawFn, document: Any, most: int = 3) -> Any:
    """The document with one to three places that hold, lack or gain any value."""
    copy = msgspec.json.decode(msgspec.json.encode(document))
    for _ in range(draw(st.integers(1, most))):
        found = list(places(copy))
        if not found:
            return draw(any_json)
        *parents, last = draw(st.sampled_from(found))
        holder: Any = copy
        for name in parents:
            holder = holder[name]
        match draw(st.sampled_from(["set", "set", "set", "remove", "add", "deep"])):
            case "remove":
                del holder[last]
            case "add" if isinstance(holder, dict):
                holder[draw(texts)] = draw(any_json)
            case "add":
                holder.append(draw(any_json | st.just(holder[last])))
            case "deep":
                holder[last] = draw(deep_json)
            case _:
                holder[last] = draw(any_json)
    return copy


@st.composite
def broken_bytes(draw: st.DrawFn, body: bytes) -> bytes:
    """The bytes with a few of them changed, cut out, doubled or put in."""
    changed = bytearray(body)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(changed)))
        piece = draw(
            st.binary(max_size=3) | st.sampled_from([b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"{", b"["])
        )
        length = draw(st.sampled_from([0, 1, 2, 20, 1000]))
        changed[at : at + length] = piece
    return bytes(changed)


# The server


class Broken(AssertionError):
    """The server did not bear a call; the trace it logged comes along."""


@contextmanager
def traces() -> Iterator[list[str]]:
    """What the server logs as a defect meanwhile."""
    seen: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                seen.append(logging.Formatter().format(record))

    listener, root = Listener(), logging.getLogger()
    root.addHandler(listener)
    try:
        yield seen
    finally:
        root.removeHandler(listener)


def bear(*calls: Call) -> list[Answer]:
    """The answers of a fresh server to these calls, one after the other; raises Broken when it broke a promise."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_bear(VirtualClock(loop), calls))
    finally:
        loop.close()


async def _bear(clock: VirtualClock, calls: Sequence[Call]) -> list[Answer]:
    with traces() as seen:
        async with running_api(MemoryLog(), clock, token_keys()) as running:
            await _seed(running)
            answers = []
            for call in calls:
                answer = await ask(running, call)
                judge(call, answer, seen)
                answers.append(answer)
            await _probe(running, seen)
        return answers


async def ask(running: RunningApi, call: Call) -> Answer:
    headers = {"content-type": call.content_type, "accept": call.accept, "user-agent": "stranger/1", **call.headers}
    request = ApiRequest(call.method, call.path, call.query, call.user, headers, call.body)
    answer = await running.api.handle(request)
    if isinstance(answer, Answer):
        return answer
    pieces = await _pieces(answer)
    return Answer(answer.status, b"".join(pieces), answer.content_type, answer.headers, answer.warnings)


async def _pieces(answer: StreamAnswer) -> list[bytes]:
    pieces: list[bytes] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(LISTENING_S):
            async for piece in answer.chunks:
                pieces.append(piece)
    close = getattr(answer.chunks, "aclose", None)
    if close is not None:
        await close()
    return pieces


def judge(call: Call, answer: Answer, seen: Sequence[str] = ()) -> None:
    """Holds an answer to what every answer promises."""
    if seen or (answer.status >= 500 and answer.status != TOO_NEW):
        shown = f"{call.method} {call.path} {dict(call.query)} {call.content_type} {call.body[:600]!r}"
        raise Broken(f"{answer.status} to {shown}\n{answer.body[:300]!r}\n" + "\n".join(seen))
    if answer.status >= 400 and place_of(call.path) and answer.content_type == JSON:
        status = msgspec.json.decode(answer.body)
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.status)
    for value in (*answer.headers.values(), *answer.warnings):
        assert value.isprintable(), f"a header cannot carry {value!r}"
        value.encode()


async def _seed(running: RunningApi) -> None:
    assert (await ask(running, post(CRD_PATH, CRD))).status == 201


async def _probe(running: RunningApi, seen: Sequence[str]) -> None:
    """The server still writes, reads, lists and cleans up behind definitions."""
    config: Document = {"metadata": {"generateName": "probe-"}, "data": {"a": "b"}}
    for call, wanted in (
        (post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", config), 201),
        (Call("GET", "/api/v1/configmaps"), 200),
        (Call("GET", "/apis"), 200),
        (Call("GET", "/openapi/v3"), 200),
    ):
        answer = await ask(running, call)
        judge(call, answer, seen)
        assert answer.status == wanted, answer
    assert running.core.background.down() is None, "what runs beside the requests has ended"


def one_of(path: str, document: Document) -> str:
    return f"{path}/{document['metadata']['name']}"


def post(path: str, document: Any, **more: Any) -> Call:
    return Call("POST", path, msgspec.json.encode(document), **more)


def life(path: str, document: Any) -> list[Call]:
    """Create it, then everything that can be asked about what was created."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    one = f"{path}/{name if isinstance(name, str) and name else 'sample'}"
    return [
        post(path, document),
        Call("GET", one),
        Call("GET", path, accept=TABLE),
        Call("GET", path, accept=YAML),
        Call("PATCH", one, b'{"metadata":{"labels":{"x":"y"}}}', PATCHES[1]),
        Call("PUT", one, msgspec.json.encode(document)),
        Call("GET", path, query={"watch": "1"}),
        Call("DELETE", one),
    ]
