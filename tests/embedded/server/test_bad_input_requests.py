"""No path, query, header, method or question makes the server fail, whoever asks."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.server.request import Answer
from tests.embedded.server.strategies import (
    CUSTOM,
    CUSTOM_PATH,
    JSON,
    PATCHES,
    PROTOBUF,
    SAMPLES,
    STRANGERS,
    TABLE,
    YAML,
    Call,
    Document,
    awkward_numbers,
    bear,
    broken,
    broken_bytes,
    few_inputs,
    one_of,
    post,
    texts,
)
from tests.embedded.structure.samples import POD

CORE = "/api/v1/namespaces/default"
PODS, ACCOUNTS = f"{CORE}/pods", f"{CORE}/serviceaccounts"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io/v1", "authorization.k8s.io/v1"
strangers = st.sampled_from(STRANGERS)
METHODS = ["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "", "FOO"]
PARAMETERS = [
    "watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "timeoutSeconds",
    "allowWatchBookmarks", "sendInitialEvents", "dryRun", "fieldManager", "fieldValidation", "force", "gracePeriodSeconds",
    "propagationPolicy", "orphanDependents", "pretty", "includeObject", "x",
]  # fmt: skip
PARAMETER_VALUES = [
    "", "0", "1", "-1", "true", "false", "All", "None", "Metadata", "NotOlderThan", "Exact", "Strict", "9" * 25, "9" * 5000,
    "a=b", "a in (b,c)", "a in (", "a notin ()", "!a", "a>1", "a<x", ",", "=", "!=", "metadata.name=x", "metadata.name!=x",
    "spec.nodeName=", "metadata.name=\\", "metadata.name=a,metadata.name=b", "a" * 300, "A/b/c=d", "é=ü", "\x00", "٣", "²",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "bm90anNvbg", "%%%", "e30=", "W10", "1_0", " 1", "(" * 500,
]  # fmt: skip
ACCEPTS = [
    "", "*/*", JSON, TABLE, YAML, PROTOBUF, ";;;", ",", ";=", "/", "application/json;q=x", "application/json;q=1e999",
    "application/json;as=Table;v=v9;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ";as=Table",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "application/json;as=", "a/b;" * 3000, "é",
]  # fmt: skip
SEGMENTS = [
    "api", "apis", "v1", "namespaces", "default", "pods", "rich", "status", "scale", "..", ".", "", "%2F", "%00", "\x00", "é",
    "a" * 3000, "finalize", "watch", "proxy", "binding", "eviction", "token", "apps", "structure.applecart.dev", "samples",
    "exec", "bindings", "authorization.k8s.io", "subjectaccessreviews", "events.k8s.io", "events", "*", " ", "?", "openapi",
]  # fmt: skip
PLACES = [
    "/api",
    "/apis",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/openapi/v2",
    "/version",
    "/healthz",
    "/metrics",
    "/openid/v1/jwks",
]

queries = st.dictionaries(st.sampled_from(PARAMETERS), st.sampled_from(PARAMETER_VALUES) | texts, max_size=5)
accepts = st.sampled_from(ACCEPTS) | texts
content_types = st.sampled_from(
    [JSON, YAML, PROTOBUF, *PATCHES, "", "a", "application/json; charset=utf-16", "application/cbor"]
)

SCALE: Document = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "sample", "namespace": "default", "uid": "", "resourceVersion": ""},
    "spec": {"replicas": 3},
    "status": {"replicas": 0},
}
DELETE_OPTIONS: Document = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 30,
    "propagationPolicy": "Foreground",
    "dryRun": ["All"],
    "preconditions": {"uid": "a", "resourceVersion": "5"},
}
_ASKED = {
    "namespace": "default",
    "verb": "get",
    "resource": "pods",
    "fieldSelector": {"rawSelector": "a=b"},
    "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
}
_BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "rich"}, "target": {"kind": "Node", "name": "mac-1"}}
_BOUND_TO = {"kind": "Pod", "apiVersion": "v1", "name": "rich", "uid": ""}
# What is answered and not stored.
QUESTIONS: list[tuple[str, Document]] = [
    (f"/apis/{AUTHENTICATION}/tokenreviews", {"kind": "TokenReview", "spec": {"token": "a.b.c", "audiences": ["x"]}}),
    (f"/apis/{AUTHENTICATION}/selfsubjectreviews", {"kind": "SelfSubjectReview"}),
    (
        f"/apis/{AUTHORIZATION}/subjectaccessreviews",
        {
            "kind": "SubjectAccessReview",
            "spec": {"user": "a", "groups": ["b"], "extra": {"a": ["b"]}, "resourceAttributes": _ASKED},
        },
    ),
    (
        f"/apis/{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews",
        {"kind": "LocalSubjectAccessReview", "metadata": {}, "spec": {"user": "jane", "resourceAttributes": _ASKED}},
    ),
    (
        f"/apis/{AUTHORIZATION}/selfsubjectaccessreviews",
        {"kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}},
    ),
    (f"/apis/{AUTHORIZATION}/selfsubjectrulesreviews", {"kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}),
    (f"{CORE}/bindings", _BINDING),
    (f"{PODS}/rich/binding", _BINDING),
    (
        f"{PODS}/rich/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "rich"}, "deleteOptions": DELETE_OPTIONS},
    ),
    (
        f"{ACCOUNTS}/sample/token",
        {"kind": "TokenRequest", "spec": {"audiences": ["a"], "expirationSeconds": 3600, "boundObjectRef": _BOUND_TO}},
    ),
]
SEEDS = [post(path, document) for path, document in SAMPLES if path in (PODS, ACCOUNTS)]


@st.composite
def questions(draw: st.DrawFn) -> list[Call]:
    path, document = draw(st.sampled_from(QUESTIONS))
    body = msgspec.json.encode(draw(broken(document)))
    if draw(st.integers(0, 9)) == 0:
        body = draw(broken_bytes(body))
    asked = Call("POST", path, body, accept=draw(accepts), query=draw(queries), user=draw(strangers))
    return [*SEEDS, asked, Call("GET", PODS, accept=TABLE)]


@st.composite
def deletions(draw: st.DrawFn) -> list[Call]:
    path, document = draw(st.sampled_from(SAMPLES))
    one = one_of(path, document)
    options = draw(broken(DELETE_OPTIONS) | st.fixed_dictionaries({"gracePeriodSeconds": awkward_numbers}))
    calls = [
        Call("DELETE", draw(st.sampled_from([one, path])), body, query=draw(queries), user=draw(strangers))
        for body in (msgspec.json.encode(options), b"")
    ]
    return [post(path, document), *calls, Call("GET", one)]


@st.composite
def scalings(draw: st.DrawFn) -> list[Call]:
    scale = f"{CUSTOM_PATH}/sample/scale"
    body = msgspec.json.encode(draw(broken(SCALE)))
    patch = Call("PATCH", scale, body, draw(st.sampled_from(PATCHES)))
    return [post(CUSTOM_PATH, CUSTOM), Call("PUT", scale, body), patch, Call("GET", scale, accept=draw(accepts))]


@st.composite
def requests(draw: st.DrawFn) -> list[Call]:
    path, document = draw(st.sampled_from(SAMPLES))
    one = one_of(path, document)
    body = draw(st.sampled_from([b"", b"{}", b"null", b"[]", msgspec.json.encode(document)]))
    headers = draw(
        st.dictionaries(st.sampled_from(["user-agent", "if-none-match"]), texts | st.sampled_from(["\udcff/1", "/"]))
    )
    place = draw(st.sampled_from([path, path, one, f"{one}/status", f"{one}/scale", *PLACES]))
    method = draw(st.sampled_from(METHODS))
    asked = Call(method, place, body, draw(content_types), draw(accepts), draw(queries), headers, draw(strangers))
    return [post(path, document), asked]


@st.composite
def paths(draw: st.DrawFn) -> list[Call]:
    start = draw(st.sampled_from(["/", "//", f"{CORE}/", "/apis/structure.applecart.dev/v1/"]))
    path = start + "/".join(draw(st.lists(st.sampled_from(SEGMENTS), max_size=6))) + draw(st.sampled_from(["", "/", "//"]))
    body = draw(st.sampled_from([b"", b"{}", msgspec.json.encode(POD), msgspec.json.encode(CUSTOM)]))
    return [Call(draw(st.sampled_from(METHODS)), path, body, draw(content_types), query=draw(queries), user=draw(strangers))]


@few_inputs
@given(questions())
def test_any_review_binding_eviction_or_token_request_is_answered(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(deletions())
def test_any_options_of_a_deletion_are_refused_or_followed(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(scalings())
def test_any_scale_is_refused_or_set(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(requests())
def test_any_query_header_and_method_is_answered(calls: list[Call]) -> None:
    bear(*calls)


@few_inputs
@given(paths())
def test_any_path_is_answered(calls: list[Call]) -> None:
    bear(*calls)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (post(f"{PODS}/rich/binding", {"metadata": {"name": "rich"}, "target": {}}), "target.name: Required value"),
        (
            post(
                f"{PODS}/rich/eviction",
                {"metadata": {"name": "rich"}, "deleteOptions": {"dryRun": ["All", "All"]}},
                query={"dryRun": "All"},
            ),
            "Non-matching dry-run options in request and content: [All] and [All All]",
        ),
        (
            Call("GET", f"{CUSTOM_PATH}/bare/scale"),
            'Internal error occurred: the spec replicas field ".spec.free.n" does not exist',
        ),
    ],
    ids=["binding", "eviction", "scale"],
)
def test_what_the_real_server_calls_an_internal_error_is_a_bad_request_in_the_same_words(call: Call, words: str) -> None:
    bare = {**CUSTOM, "metadata": {"name": "bare"}}
    version = f"{_DEFINITIONS}/samples.structure.applecart.dev"
    paths = [{"op": "replace", "path": "/spec/versions/0/subresources/scale/specReplicasPath", "value": ".spec.free.n"}]
    moved = Call("PATCH", version, msgspec.json.encode(paths), PATCHES[0])
    answer = bear(*SEEDS, moved, post(CUSTOM_PATH, bare), call)[-1]
    assert (answer.status, _message(answer)) == (400, words)


_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _message(answer: Answer) -> Any:
    return msgspec.json.decode(answer.body)["message"]


def test_a_grace_of_three_hundred_billion_years_is_no_problem() -> None:
    pod = {**POD, "spec": {**POD["spec"], "nodeName": "mac-1", "terminationGracePeriodSeconds": 2**63 - 1}}
    bear(
        post(PODS, pod),
        Call("DELETE", f"{PODS}/rich"),
        Call("DELETE", f"{PODS}/rich", b'{"gracePeriodSeconds":9223372036854775806}'),
    )
