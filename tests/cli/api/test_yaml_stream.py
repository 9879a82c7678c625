"""YAML that every parser reads alike."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from applecart.cli.api.yaml_stream import as_yaml, documents
from applecart.errors import BadInput

# What YAML parsers are known to disagree on, and what breaks naive writers.
WORDS = (
    "1e3 12345e67 0x1F 0o17 017 1_000 .5 1. +1 -1 1:30 on off yes no y n Y NO true null ~ nan .inf = << - -- --- ... "
    "2026-01-01 2026-01-01T00:00:00Z a: #a a# : ? | > ! & * % @ ` [ ] { } , \\ ' \" v1.36.3 a/b:c 192.168.0.1"
)
BLANKS = ("", " ", " a", "a ", "a\n", "a\nb", "\n", "\na", " a\nb", "a \nb", "a\n\n", "\t", "a\tb", "a: b")
AWKWARD = (*WORDS.split(), *BLANKS, "\u00e9", "\u2028", "\x00")

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(AWKWARD),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def read_back(document: Any) -> Any:
    return list(documents(as_yaml(document), "test"))


@pytest.mark.parametrize("text", AWKWARD)
def test_a_text_stays_a_text(text: str) -> None:
    document = {"data": {"as value": text, text: "as key"}}
    assert read_back(document) == [document]
    assert yaml.safe_load(as_yaml(document)) == document


@pytest.mark.parametrize("word", ["y", "N", "on", "none", "inf"])
def test_a_word_that_some_parser_takes_for_something_else_is_quoted(word: str) -> None:
    assert as_yaml({"a": word}) == f'---\na: "{word}"\n'


@given(st.dictionaries(st.text(), values, min_size=1))
def test_any_document_is_read_back_as_it_was(document: dict[str, Any]) -> None:
    assert read_back(document) == [document]


def test_a_stream_has_one_document_for_each_and_long_texts_keep_their_lines() -> None:
    script = "#!/bin/sh\necho ---\n---\nexit 0\n"
    stream = as_yaml({"a": script}) + as_yaml({"b": 1})
    assert "echo ---\n" in stream, "it can be read by a person"
    assert list(documents(stream, "test")) == [{"a": script}, {"b": 1}]


def test_empty_documents_and_comments_are_passed_over() -> None:
    assert list(documents("# made by hand\n---\n---\n# nothing\n---\na: 1\n", "test")) == [{"a": 1}]


@pytest.mark.parametrize("text", ["[1]", "a", "a: [", "a: &x [*x]", "? [a]\n: b", "!!python/object:os.system a", "[" * 9999])
def test_what_is_no_object_is_refused_by_its_number(text: str) -> None:
    with pytest.raises(BadInput, match=r"test, document \d: "):
        list(documents(f"a: 1\n---\n{text}\n", "test"))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = list(documents(text, "test"))
    except BadInput:
        return
    assert all(isinstance(document, dict) for document in found)


@pytest.mark.kubernetes
def test_kubectl_reads_every_awkward_text_as_a_text(kube_programs: Path) -> None:
    printable = [text for text in AWKWARD if text != "\x00"]
    data = {f"k{number}": text for number, text in enumerate(printable)}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "awkward"}, "data": data}
    command = [str(kube_programs / "kubectl"), "label", "--local", "-o", "json", "-f", "-", "read=by-kubectl"]
    shown = subprocess.run(command, input=as_yaml(document), capture_output=True, text=True, check=False, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["data"] == data
