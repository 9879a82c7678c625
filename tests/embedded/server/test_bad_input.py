"""No body makes the server fail: JSON, YAML and protobuf of every kind, broken in their values and in their bytes."""

import re

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.server.bodies import BODY_LIMIT_BYTES
from tests.embedded.server.strategies import (
    CUSTOM_PATH,
    JSON,
    PATCHES,
    PROTOBUF,
    SAMPLES,
    TABLE,
    YAML,
    Call,
    Document,
    bear,
    broken,
    broken_bytes,
    few_inputs,
    life,
    one_of,
    post,
)
from tests.embedded.structure.wire_bodies import body as protobuf_body

MAPS = "/api/v1/namespaces/default/configmaps"
samples = st.sampled_from(SAMPLES)
BUILT_IN = [(path, document) for path, document in SAMPLES if path != CUSTOM_PATH]

# YAML that stands for no JSON, or that a careless reader stumbles over.
YAML_PIECES = [
    "&a [*a]", "&a {x: *a}", "*a", "<<: *a", "<<: {a: b}", "<<: [a]", "!!binary aGk=", '!!binary "#"', "!!binary é",
    "!!python/object:os.system x", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1, a: 2]", "!!timestamp 2026-01-01",
    "!!timestamp a", "!!timestamp 2026-13-45", "2026-01-02", "0x1F", "017", "1_000", "190:20:30", ".inf", ".nan", "~", "yes",
    '"\\ud800"', '"\\0"', '"\\U00110000"', "? [a]\n: b", "? {a: b}\n: c", "? ~\n: b", "? 1.5\n: b", "--- a", "---", "...",
    "%YAML 1.2", "%TAG ! x", "!a b", "!!int a", '!!int ""', '!!float ""', '!!bool ""', "!!null a", "!!map [a]", "!!seq {a: b}",
    "!!str {a: b}", "|\n  a", "\t", "a: b: c", ": ", "[", "{", "#", '"', "1" * 5000, "1e400", "=", "{?}", "&a &b c",
]  # fmt: skip


def config(annotation: str) -> bytes:
    """A ConfigMap with this JSON as the value of an annotation."""
    return b'{"metadata":{"name":"a","annotations":{"x":%s}}}' % annotation.encode("utf-8", "surrogatepass")


def deep(depth: int, opening: str, closing: str) -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@st.composite
def broken_lives(draw: st.DrawFn) -> list[Call]:
    path, document = draw(samples)
    return life(path, draw(broken(document)))


@st.composite
def broken_json(draw: st.DrawFn) -> list[Call]:
    path, document = draw(samples)
    body = draw(broken_bytes(msgspec.json.encode(document)))
    return [
        Call("POST", path, body, query={"fieldValidation": "Strict"}),
        Call("POST", path, body),
        Call("GET", path, accept=TABLE),
    ]


@st.composite
def broken_yaml(draw: st.DrawFn) -> list[Call]:
    path, document = draw(samples)
    text = yaml.safe_dump(document, default_flow_style=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 2))):
        piece = draw(st.sampled_from(YAML_PIECES))
        values = list(re.finditer(r": (\S+)", text))
        if draw(st.booleans()) and values:
            place = draw(st.sampled_from(values))
            text = text[: place.start(1)] + piece + text[place.end(1) :]
        else:
            at = draw(st.sampled_from([0, len(text)]) | st.integers(0, len(text)))
            text = f"{text[:at]}\n{piece}\n{text[at:]}"
    body, one = text.encode(), one_of(path, document)
    apply = Call("PATCH", one, body, PATCHES[3], query={"fieldManager": "m"})
    return [Call("POST", path, body, YAML), apply, Call("GET", path, accept=YAML), Call("DELETE", one, body, YAML)]


@st.composite
def broken_protobuf(draw: st.DrawFn) -> list[Call]:
    path, document = draw(st.sampled_from(BUILT_IN))
    body, one = draw(broken_bytes(protobuf_body(document))), one_of(path, document)
    return [
        Call("POST", path, body, PROTOBUF),
        Call("GET", path, accept=TABLE),
        Call("PUT", one, body, PROTOBUF),
        Call("DELETE", one, body, PROTOBUF),
    ]


@few_inputs
@given(broken_lives())
def test_an_object_with_any_value_anywhere_is_refused_or_lives_its_whole_life(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(broken_json())
def test_json_with_broken_bytes_is_refused_or_read(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(broken_yaml())
def test_broken_yaml_is_refused_or_read(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(broken_protobuf())
def test_protobuf_with_broken_bytes_is_refused_or_read(calls: list[Call]) -> None:
    bear(*calls)


@pytest.mark.parametrize(("path", "document"), SAMPLES, ids=[path for path, _ in SAMPLES])
def test_the_documents_that_are_broken_here_are_accepted_whole(path: str, document: Document) -> None:
    assert [answer.status for answer in bear(post(path, document), Call("GET", one_of(path, document)))] == [201, 200]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b" ", 400),
        (b"\xef\xbb\xbf{}", 400),
        (b"\x00", 400),
        (b"{}{}", 400),
        (b'{"metadata":{"name":"a","name":"b"}}', 201),
        (b'{"metadata":{"name":NaN}}', 400),
        (b'{"metadata":{"name":Infinity}}', 400),
        (b'{"metadata":{"generation":1e400}}', 400),
        (b'{"metadata":{"generation":' + b"1" * 5000 + b"}}", 400),
        (config('"\xff"').replace(b"\xc3\xbf", b"\xff"), 400),
        (config('"\ud800"'), 400),
        (config('"\\ud800"'), 400),
        (b'{"\xed\xa0\x80" 1}', 400),  # a surrogate before what is wrong was an internal error
        (config('"\\u0000"'), 201),
        (deep(100, "[", "]"), 400),
        (deep(10_000, "[", "]"), 400),
        (deep(1_000_000, "[", "]"), 413),
        (deep(10_000, '{"a":', "}"), 400),
        (b'{"metadata":{"name":"a"},"data":' + deep(900, '{"a":', "}") + b"}", 400),
        (b'{"metadata":{"name":"a"},"data":{"a":"' + b"x" * BODY_LIMIT_BYTES + b'"}}', 422),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_json_at_its_limits(body: bytes, status: int) -> None:
    assert bear(Call("POST", MAPS, body))[0].status == status


@pytest.mark.parametrize("is_list", [True, False])
@pytest.mark.parametrize(("depth", "status"), [(100, 201), (190, 201), (300, 400), (600, 400), (900, 400), (10_000, 400)])
def test_an_object_that_is_accepted_can_be_read_in_every_form(depth: int, status: int, is_list: bool) -> None:
    """One of 400 levels was accepted, and could not be shown as YAML; from 500 on it could not be changed either."""
    opening, closing = ("[", "]") if is_list else ('{"a":', "}")
    free = b'{"metadata":{"name":"deep"},"spec":{"free":{"a":%s}}}' % deep(depth, opening, closing)
    one = f"{CUSTOM_PATH}/deep"
    reads = [Call("GET", one, accept=accept) for accept in (JSON, YAML, TABLE)]
    labels = Call("PATCH", one, b'{"metadata":{"labels":{"a":"b"}}}', PATCHES[1])
    applied = Call("PATCH", one, free, PATCHES[3], query={"fieldManager": "m", "force": "1"})
    assert bear(Call("POST", CUSTOM_PATH, free), *reads, labels, applied, Call("DELETE", one))[0].status == status


def doubling(first: str, next_one: str, levels: int) -> bytes:
    lines = [f"a0: &a0 {first}", *(f"a{n}: &a{n} {next_one.format(f'*a{n - 1}')}" for n in range(1, levels))]
    return "\n".join(["metadata: {name: a}", *lines]).encode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (deep(30_000, '["]",', "]"), 400),  # so many levels ended the process: the C parser builds by recursion
        (b"? " * 100_000 + b"a", 400),
        (b"? - " * 50_000 + b"a", 400),
        (b"- " * 100_000 + b"a", 400),
        (b"metadata: {name: a}\ndata: &a {x: *a}", 400),
        (b"metadata: {name: a}\ndata: &a [*a]", 400),
        (doubling("[x, x, x, x, x, x, x, x, x, x]", "[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]", 11), 400),
        (doubling("{x: 1}", "{{<<: [{0}, {0}]}}", 60), 201),
        (b'metadata: {name: a}\ndata: {k: !!int ""}', 400),
        (b'metadata: {name: a}\ndata: {k: !!bool ""}', 400),
        (b"metadata: {name: a}\ndata: {k: !!timestamp a}", 400),
        (b"metadata: {name: a}\n---\nmetadata: {name: b}", 400),
        (b"metadata: {name: a}\ndata: {k: 2026-01-02}", 201),
        (b"base: &b {k: v}\nmetadata: {name: a}\ndata: {<<: *b}", 201),
        (b'metadata: {name: a}\ndata: {k: "' + b"[{ * & " * 300 + b'"}', 201),  # brackets and stars in text are only text
        (b"\xff", 400),
        (b"", 422),  # an object without a name
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_yaml_at_its_limits(body: bytes, status: int) -> None:
    assert bear(Call("POST", MAPS, body, YAML))[0].status == status
