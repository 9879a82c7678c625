"""Image references: every good one keeps its parts, every bad one ends in a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.tart.failures import BadImage
from applecart.tart.images import ImageRef, parse, repository_of

DIGEST = "sha256:" + "a" * 64

GOOD = [
    ("ghcr.io/acme/macos:15", ImageRef("ghcr.io", "acme/macos", "15")),
    ("ghcr.io/acme/macos", ImageRef("ghcr.io", "acme/macos")),
    (f"ghcr.io/acme/macos@{DIGEST}", ImageRef("ghcr.io", "acme/macos", digest=DIGEST)),
    (f"ghcr.io/acme/macos:15@{DIGEST}", ImageRef("ghcr.io", "acme/macos", "15", DIGEST)),
    ("registry.local:5000/macos:v1.2_a-B", ImageRef("registry.local:5000", "macos", "v1.2_a-B")),
    ("localhost/macos", ImageRef("localhost", "macos")),
    ("localhost:5000/a/b/c/d", ImageRef("localhost:5000", "a/b/c/d")),
    ("10.0.0.1:80/my__repo/x--y.z", ImageRef("10.0.0.1:80", "my__repo/x--y.z")),
]

BAD = [
    ("", "empty"),
    (" ", "spaces"),
    ("ghcr.io/acme/mac os", "spaces"),
    ("ghcr.io/acme/macos\n", "spaces"),
    ("ghcr.io/acme/mäc", "spaces"),
    ("macos", "registry host"),
    ("macos:15", "registry host"),
    ("acme/macos:15", "registry host"),
    ("tuist-golden-0123456789abcdef", "registry host"),
    ("/macos", "registry host"),
    ("ghcr.io", "registry host"),
    ("ghcr.io/", "repository"),
    ("ghcr.io/acme/macos:", "tag"),
    ("ghcr.io/acme/macos:a:b", "tag"),
    ("ghcr.io/acme/macos:" + "x" * 129, "tag"),
    ("ghcr.io/acme/macos:-x", "tag"),
    ("ghcr.io/acme/macos@", "sha256"),
    ("ghcr.io/acme/macos@sha256:abc", "sha256"),
    ("ghcr.io/acme/macos@sha256:" + "A" * 64, "sha256"),
    ("ghcr.io/acme/macos@sha512:" + "a" * 128, "sha256"),
    (f"ghcr.io/acme/macos@{DIGEST}:15", "sha256"),
    ("ghcr.io/Acme/macos", "lower case"),
    ("GHCR.io/acme/macos", "lower case"),
    ("ghcr.io:0/macos", "port"),
    ("ghcr.io:70000/macos", "port"),
    ("ghcr.io:/macos", "port"),
    ("-ghcr.io/macos", "host"),
    ("ghcr.io/../etc", "part of its repository"),
    ("ghcr.io/a//b", "part of its repository"),
    ("ghcr.io/a/", "part of its repository"),
    ("../x.y/macos", "host"),
    ("ghcr.io/" + "a" * 256, "255"),
]


@pytest.mark.parametrize(("text", "ref"), GOOD)
def test_a_good_reference_keeps_its_parts_and_its_spelling(text: str, ref: ImageRef) -> None:
    assert parse(text) == ref
    assert ref.name == text


@pytest.mark.parametrize(("text", "why"), BAD)
def test_a_bad_reference_is_refused_with_a_sentence_that_says_why(text: str, why: str) -> None:
    with pytest.raises(BadImage, match=why):
        parse(text)


def test_a_sentence_about_a_hostile_text_stays_short() -> None:
    with pytest.raises(BadImage) as refusal:
        parse("x" * 100_000)
    assert len(str(refusal.value)) < 500


def test_tart_is_asked_for_the_digest_when_a_reference_has_a_tag_too() -> None:
    """Tart's grammar takes one of them, and only the digest says which content is meant."""
    assert parse(f"ghcr.io/acme/macos:15@{DIGEST}").pull_name == f"ghcr.io/acme/macos@{DIGEST}"
    assert parse(f"ghcr.io/acme/macos:15@{DIGEST}").digest_name == f"ghcr.io/acme/macos@{DIGEST}"


def test_no_tag_means_latest_and_says_nothing_about_content() -> None:
    assert parse("ghcr.io/acme/macos").pull_name == "ghcr.io/acme/macos:latest"
    assert parse("ghcr.io/acme/macos").digest_name is None


def test_the_repository_of_a_digest_keeps_its_port() -> None:
    assert repository_of(f"localhost:5000/macos@{DIGEST}") == "localhost:5000/macos"


components = st.from_regex(r"[a-z0-9]{1,8}([._-][a-z0-9]{1,8})?", fullmatch=True)
refs = st.builds(
    ImageRef,
    st.sampled_from(["ghcr.io", "localhost", "localhost:5000", "a.b.c:443"]),
    st.lists(components, min_size=1, max_size=4).map("/".join),
    st.just("") | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True),
    st.just("") | st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True),
)


@given(refs)
def test_parsing_what_a_reference_calls_itself_gives_it_back(ref: ImageRef) -> None:
    assert parse(ref.name) == ref
    assert parse(ref.pull_name).repository_name == ref.repository_name


@given(st.text() | st.text("abc./:@-_AZ019 ").map(lambda tail: "ghcr.io/" + tail))
def test_any_text_is_a_reference_or_a_refusal_and_never_a_path_out_of_the_store(text: str) -> None:
    try:
        ref = parse(text)
    except BadImage:
        return
    parts = [*ref.host.split("/"), *ref.repository.split("/")]
    assert not {"", ".", ".."} & set(parts)
    assert "/" not in ref.tag
    assert ref.tag not in (".", "..")
