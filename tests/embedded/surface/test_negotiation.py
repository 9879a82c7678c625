"""Accept headers, read, and the answer one chooses. The contract tests ask a real server the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.surface.negotiation import (
    SORTED_AS_UPSTREAM,
    DiscoveryAnswer,
    Negotiated,
    choose_answer,
    choose_discovery,
    choose_plain,
    read_accept,
    refuse_wrong_number,
)
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM


def order(header: str) -> list[str]:
    return [f"{clause.type}/{clause.subtype}" for clause in read_accept(header)]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        (",,", []),
        ("application/json", ["application/json"]),
        ("a/b, c/d", ["a/b", "c/d"]),
        ("a/b;q=0.5, c/d", ["c/d", "a/b"]),
        ("a/b;q=0.5,c/d;q=0.5", ["a/b", "c/d"]),
        ("*/*, a/b", ["a/b", "*/*"]),
        ("a/*, a/b", ["a/b", "a/*"]),
        ("*/*;q=1,a/b;q=0.1", ["a/b", "*/*"]),  # a named type goes before a wildcard of higher quality
        ("a/b;q=x,c/d;q=0.1", ["c/d", "a/b"]),  # a quality that is no number is the lowest
        ("*", ["*/*"]),
        ("junk", []),
        ("a/b/c", []),
        ("a/", []),
        (" a / b ", ["a/b"]),
    ],
)
def test_clauses_are_read_best_first(header: str, expected: list[str]) -> None:
    assert order(header) == expected


def test_parameters_are_read_without_their_spaces_and_only_when_they_have_a_value() -> None:
    (clause,) = read_accept("application/json; as = Table ;v=v1;g=meta.k8s.io;empty=;twice=a=b;bare;q=0.5")
    assert clause.parameters == {"as": "Table", "v": "v1", "g": "meta.k8s.io"}
    assert clause.quality == 0.5


@pytest.mark.parametrize(
    ("clause", "media_type", "takes"),
    [
        ("application/json", "application/json", True),
        ("application/*", "application/json", True),
        ("*/*", "application/json", True),
        ("*/json", "application/json", False),
        ("text/*", "application/json", False),
        ("application/yaml", "application/json", False),
    ],
)
def test_a_clause_takes_its_type_and_what_its_wildcards_cover(clause: str, media_type: str, takes: bool) -> None:
    assert read_accept(clause)[0].takes(media_type) is takes


def test_a_header_of_very_many_clauses_is_sorted_by_quality() -> None:
    many = ",".join(f"a/b{number};q=0.{number:03}" for number in range(1, 500))
    found = read_accept(many)
    assert len(found) > SORTED_AS_UPSTREAM
    assert [clause.quality for clause in found] == sorted((clause.quality for clause in found), reverse=True)


@given(st.text(" ab/*;,=q0.5", max_size=60))
def test_no_header_is_an_error(header: str) -> None:
    for clause in read_accept(header):
        assert clause.subtype
        assert "/" not in clause.subtype


META = "v=v1;g=meta.k8s.io"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
KUBECTL_GET = f"{JSON};as=Table;{META},{JSON};as=Table;v=v1beta1;g=meta.k8s.io,{JSON}"
AGGREGATED = "g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, Negotiated()),
        ("", Negotiated()),
        ("*/*", Negotiated()),
        (JSON, Negotiated()),
        (YAML, Negotiated(YAML)),
        (f"{PROTOBUF},{JSON}", Negotiated()),
        (f"{PROTOBUF}, */*", Negotiated()),
        (f"{JSON};q=0.5,{YAML}", Negotiated(YAML)),
        (f"{JSON};pretty=1", Negotiated()),
        (f"{JSON};stream=watch", Negotiated()),
        (KUBECTL_GET, Negotiated(shape="table")),
        (f"{YAML};as=Table;{META}", Negotiated(YAML, "table")),
        (f"{JSON};as=Table;v=v1beta1;g=meta.k8s.io", Negotiated(shape="table", meta_version="v1beta1")),
        (f"{JSON};as=Table;v=v3;g=meta.k8s.io,{JSON}", Negotiated()),
        (f"{PROTOBUF};as=PartialObjectMetadata;{META},{JSON};as=PartialObjectMetadata;{META}", Negotiated(shape="metadata")),
        (f"{JSON};as=PartialObjectMetadataList;{META}", Negotiated(shape="metadata list")),
    ],
)
def test_a_header_chooses(accept: str | None, expected: Negotiated) -> None:
    assert choose_answer(accept) == expected


@pytest.mark.parametrize(
    ("accept", "more", "sentence"),
    [
        ("text/html", {}, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, " + PROTOBUF),
        ("text/html", {"is_list": True}, f"{JSON};stream=watch, {PROTOBUF};stream=watch"),
        ("text/html", {"is_custom": True}, f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}"),
        (f"{JSON};as=Other;{META}", {}, "only the following media types are accepted"),
        (f"{JSON};v=v1", {}, "only the following media types are accepted"),
        (f"{JSON};sv=v2", {"version": "v1"}, "only the following media types are accepted"),
        (YAML, {"is_watch": True}, f"only the following media types are accepted: {JSON};stream=watch"),
    ],
)
def test_a_header_that_fits_nothing_is_refused(accept: str, more: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        choose_answer(accept, **more)
    assert caught.value.code == 406
    assert caught.value.reason == "NotAcceptable"
    assert sentence in caught.value.message


def test_a_client_that_takes_protobuf_only_is_told_what_is_there() -> None:
    with pytest.raises(Refusal, match=f"^only the following media types are accepted: {JSON}, {YAML}$"):
        choose_answer(PROTOBUF)


@pytest.mark.parametrize(
    ("shape", "kind", "is_list", "sentence"),
    [
        ("metadata", CUSTOM[0], True, "a list (*unstructured.UnstructuredList)"),
        ("metadata list", CUSTOM[0], False, "not a list (*unstructured.Unstructured)"),
        ("metadata", BUILT_IN[0], True, "a list (*core.ConfigMapList)"),
        ("metadata list", BUILT_IN[-1], False, "not a list (*core.Event)"),
    ],
)
def test_metadata_of_the_wrong_number_is_refused(shape: str, kind: object, is_list: bool, sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        refuse_wrong_number(Negotiated(shape=shape), kind, is_list=is_list)  # type: ignore[arg-type]
    assert caught.value.message.endswith(sentence)


@pytest.mark.parametrize(
    ("shape", "is_list"), [("metadata", False), ("metadata list", True), ("table", True), ("table", False), ("object", True)]
)
def test_the_right_number_is_sent(shape: str, is_list: bool) -> None:
    refuse_wrong_number(Negotiated(shape=shape), BUILT_IN[0], is_list=is_list)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, DiscoveryAnswer()),
        (JSON, DiscoveryAnswer()),
        (YAML, DiscoveryAnswer(YAML)),
        (f"{JSON};v=v2;{AGGREGATED}", DiscoveryAnswer(shape="v2")),
        (f"{JSON},{JSON};v=v2;{AGGREGATED};q=0.1", DiscoveryAnswer(shape="v2")),
        (f"{JSON};v=v2;{AGGREGATED},{JSON};v=v2beta1;{AGGREGATED},{JSON}", DiscoveryAnswer(shape="v2")),
        (f"{JSON};v=v2beta1;{AGGREGATED},{JSON}", DiscoveryAnswer()),
        (f"{JSON};v=v9;{AGGREGATED},{JSON}", DiscoveryAnswer()),
        (f"{YAML};v=v2;{AGGREGATED}", DiscoveryAnswer(YAML, "v2")),
    ],
)
def test_discovery_is_aggregated_when_a_client_knows_it(accept: str | None, expected: DiscoveryAnswer) -> None:
    assert choose_discovery(accept) == expected


@pytest.mark.parametrize("version", ["v9", "v2beta1"])
def test_discovery_in_a_version_nobody_serves_is_refused(version: str) -> None:
    with pytest.raises(Refusal, match="only the following media types are accepted"):
        choose_discovery(f"{JSON};v={version};{AGGREGATED}")


def test_discovery_as_a_page_is_refused() -> None:
    with pytest.raises(Refusal, match="Available representations: application/json"):
        choose_discovery("text/html")


@pytest.mark.parametrize(
    ("accept", "expected"), [(None, JSON), ("*/*", JSON), (f"{YAML},{JSON}", YAML), ("application/*", JSON)]
)
def test_a_document_of_one_shape_is_sent_in_json_or_yaml(accept: str | None, expected: str) -> None:
    assert choose_plain(accept) == expected


@given(st.text("applicton/jsyml*;, =vgq01.-TAxb", max_size=50))
def test_every_header_is_answered_or_refused(accept: str) -> None:
    for choose in (choose_answer, choose_discovery, choose_plain):
        try:
            choose(accept)
        except Refusal as refusal:
            assert refusal.code == 406  # noqa: PT017 (most headers are answered)
