import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api import annotations as names
from applecart.errors import BadInput
from applecart.kubelet.screen.request import SHOWN, Request, Shown, annotation_changes, request_of
from tests.kubelet.screen.stage import TOKEN, hash_of, pod

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
READY = Shown("mac-1.relay", 5900, AT)


def test_nobody_asked(tmp_path: Path) -> None:
    assert request_of(pod(), tmp_path) is None
    assert request_of(pod(more={names.VNC_RELAY_TOKEN_HASH: hash_of(TOKEN)}), tmp_path) is None


@pytest.mark.parametrize("written", [None, ""])
def test_a_session_without_a_token_hash_asks_for_nothing_yet(tmp_path: Path, written: str | None) -> None:
    more = {} if written is None else {names.VNC_RELAY_TOKEN_HASH: written}
    assert request_of(pod(session="s-1", token=None, more=more), tmp_path) is None


def test_a_session_with_a_token_hash_asks(tmp_path: Path) -> None:
    assert request_of(pod(session="s-1"), tmp_path) == Request("s-1", hash_of(TOKEN))


def test_a_hash_that_no_token_can_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no SHA-256"):
        request_of(pod(session="s-1", token=None, more={names.VNC_RELAY_TOKEN_HASH: "tooshort"}), tmp_path)


def test_an_operator_asks_by_a_file_with_the_hash_of_a_token(tmp_path: Path) -> None:
    (tmp_path / "ci_job").write_text(hash_of(TOKEN) + "\n")
    assert request_of(pod(), tmp_path) == Request("", hash_of(TOKEN))
    assert request_of(pod("other"), tmp_path) is None


@pytest.mark.parametrize("content", ["", "\n", "yes", "a" * 4096])
def test_an_operators_file_without_a_hash_is_refused_with_the_fix(tmp_path: Path, content: str) -> None:
    """Weakness 29: the operator's way in needed no token at all."""
    (tmp_path / "ci_job").write_text(content)
    with pytest.raises(BadInput, match=r"ci_job holds no token hash.*SHA-256"):
        request_of(pod(), tmp_path)


def test_a_session_on_the_pod_comes_before_an_operators_file(tmp_path: Path) -> None:
    (tmp_path / "ci_job").write_text(hash_of(b"operators"))
    assert request_of(pod(session="s-1"), tmp_path) == Request("s-1", hash_of(TOKEN))
    assert request_of(pod(session="s-1", token=None), tmp_path) is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "ci_job"
    if kind == "link":
        (tmp_path / "elsewhere").write_text(hash_of(TOKEN))
        file.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        request_of(pod(), tmp_path)


def test_a_ready_relay_is_told_completely() -> None:
    assert annotation_changes({}, READY) == {
        names.VNC_STATE: "ready",
        names.VNC_RELAY_HOST: "mac-1.relay",
        names.VNC_RELAY_PORT: "5900",
        names.VNC_RELAY_READY_AT: "2026-01-01T12:00:00Z",
    }


def test_what_is_told_already_is_not_written_again() -> None:
    told = {name: text for name, text in annotation_changes({}, READY).items() if text is not None}
    assert annotation_changes(told, READY) == {}
    assert annotation_changes({**told, names.VNC_RELAY_PORT: "1"}, READY) == {names.VNC_RELAY_PORT: "5900"}


def test_what_is_no_longer_true_goes_and_nothing_else() -> None:
    told = {names.VNC_STATE: "ready", names.VNC_RELAY_PORT: "5900", names.VNC_SESSION_ID: "s-1", "other": "x"}
    assert annotation_changes(told, None) == {names.VNC_STATE: None, names.VNC_RELAY_PORT: None}


SHOWNS = st.none() | st.builds(Shown, st.text(), st.integers(0, 65535), st.datetimes(timezones=st.just(UTC)))


@given(current=st.dictionaries(st.sampled_from([*SHOWN, "other"]), st.text()), shown=SHOWNS)
def test_once_written_there_is_nothing_left_to_write(current: dict[str, str], shown: Shown | None) -> None:
    after: dict[str, str | None] = {**current, **annotation_changes(current, shown)}
    assert annotation_changes({name: text for name, text in after.items() if text is not None}, shown) == {}
    assert after.get("other") == current.get("other")
