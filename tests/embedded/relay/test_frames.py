"""Frames, protocols and the options of a remote command."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from applecart.embedded.relay.frames import V4, V5, channel_of, lost_frame, offered_protocols
from applecart.embedded.relay.stream_options import read_stream_options


@pytest.mark.parametrize(("frame", "channel"), [(b"", None), ("", None), (b"\x00", 0), ("\x04{}", 4), (b"\xff\x00", 255)])
def test_the_first_byte_names_the_channel(frame: bytes | str, channel: int | None) -> None:
    assert channel_of(frame) == channel


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], ()),
        ([""], ()),
        (["channel.k8s.io, base64.channel.k8s.io"], ()),
        ([f"{V5}"], (V5,)),
        ([f"{V4},{V5}"], (V4, V5)),
        ([f"x, {V5}", V4, V5], (V5, V4)),
    ],
)
def test_of_the_offered_protocols_those_are_taken_that_are_spoken(headers: list[str], expected: tuple[str, ...]) -> None:
    assert offered_protocols(headers) == expected


@given(st.lists(st.text()))
def test_any_header_offers_known_protocols_or_none(headers: list[str]) -> None:
    assert set(offered_protocols(headers)) <= {V5, V4}


def test_a_lost_command_ends_as_kubectl_reads_it() -> None:
    frame = lost_frame("why")
    status = json.loads(frame[1:])
    assert (frame[0], status["status"], status["reason"], status["code"]) == (3, "Failure", "InternalError", 500)


@pytest.mark.parametrize(
    ("action", "query", "expected"),
    [
        ("exec", [("command", "a"), ("command", ""), ("stdout", "1")], [("command", "a"), ("command", ""), ("output", "1")]),
        ("attach", [("command", "a"), ("stdin", "true")], [("input", "1")]),
        ("exec", [("stdin", "false"), ("stderr", "0"), ("tty", ""), ("stdout", "x")], [("output", "1"), ("tty", "1")]),
        ("exec", [("stderr", "1"), ("stdin", "1")], [("error", "1"), ("input", "1")]),
    ],
)
def test_the_agent_is_asked_under_the_names_of_a_kubelet(
    action: str, query: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    assert list(read_stream_options(action, MultiDict(query)).agent_query) == expected


@given(st.lists(st.tuples(st.sampled_from(["command", "stdin", "stdout", "tty", "container", "?"]), st.text())))
def test_the_words_of_a_command_keep_their_order_and_their_letters(query: list[tuple[str, str]]) -> None:
    options = read_stream_options("exec", MultiDict(query))
    words = [value for name, value in options.agent_query if name == "command"]
    assert words == [value for name, value in query if name == "command"]
