"""The newest cache of an account, as a guest tells it."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.cache.head import ABSENT, Head, NoHead, parse_head, read_head

DIGEST = "0123456789abcdef0123456789abcdef01234567"
URL = "https://objects.example.com/runner-volume-masters/42/x.image?X-Amz-Signature=abc%2Fdef&X-Amz-Expires=21600"


def said(**changes: object) -> bytes:
    return json.dumps({"generation": 4, "digest": DIGEST, "download_url": URL} | changes).encode()


def test_a_head_as_agreed_is_understood_and_its_address_is_a_secret() -> None:
    head = parse_head(said(more="ignored"))
    assert isinstance(head, Head)
    assert (head.generation, head.digest, head.url.reveal()) == (4, DIGEST, URL)
    assert "Signature" not in repr(head)


@pytest.mark.parametrize(
    "changes",
    [
        {"generation": 0},
        {"generation": -1},
        {"generation": 10**30},
        {"generation": "4"},
        {"generation": None},
        {"download_url": None},
        {"download_url": ""},
        {"download_url": "file:///etc/passwd"},
        {"download_url": "http://169.254.169.254/latest"},
        {"download_url": 'https://x"\noutput = /etc/hosts'},
        {"download_url": "https://x y"},
        {"download_url": "https://x\\n"},
        {"digest": ""},
        {"digest": "../../7/tuist-cache/master"},
        {"digest": DIGEST.upper()},
        {"digest": DIGEST + "\n"},
    ],
)
def test_anything_else_is_no_head_and_says_why(changes: dict[str, object]) -> None:
    found = parse_head(said(**changes))
    assert isinstance(found, NoHead)
    assert found.because
    assert "objects.example.com" not in found.because


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_text_is_too_strange(data: bytes) -> None:
    assert isinstance(parse_head(data), NoHead)


def test_deep_nesting_is_no_head() -> None:
    assert isinstance(parse_head(b'{"digest":' + b"[" * 100_000), NoHead)


def test_a_head_is_read_only_from_a_plain_file_of_a_reasonable_size(tmp_path: Path) -> None:
    assert read_head(tmp_path) == ABSENT
    (tmp_path / "volume-head.json").write_bytes(said(more="x" * 100_000))
    assert "too long" in getattr(read_head(tmp_path), "because", "")
    (tmp_path / "volume-head.json").unlink()
    os.mkfifo(tmp_path / "volume-head.json")
    assert read_head(tmp_path) == ABSENT
