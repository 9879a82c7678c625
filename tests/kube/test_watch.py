"""Reading a watch's bytes: every split, every kind of damage."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.runners import RunnerPool
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.codec import Frame, Garbled
from applecart.kube.errors import Expired
from applecart.kube.transport import Request, Response, Stream
from applecart.kube.watch import FrameReader, watch
from tests.kube.faults import Whole


def line(revision: int, kind: str = "MODIFIED", **metadata: Any) -> bytes:
    obj = {"metadata": {"name": "a", "namespace": "ci", "resourceVersion": str(revision), **metadata}}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def reader(revision: str = "1") -> FrameReader:
    return FrameReader(ConfigMap, revision, "GET /api/v1/configmaps")


def revisions(frames: list[Frame[Any]]) -> list[str]:
    return [frame.object.revision for frame in frames]


TOO_OLD = (
    json.dumps(
        {
            "type": "ERROR",
            "object": {
                "kind": "Status",
                "status": "Failure",
                "reason": "Expired",
                "code": 410,
                "message": "too old resource version: 1 (9)",
            },
        }
    ).encode()
    + b"\n"
)


@given(st.data())
def test_how_the_network_cuts_the_bytes_does_not_matter(data: st.DataObject) -> None:
    whole = b"".join(line(revision) for revision in range(2, 8))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    lines = reader()
    frames = [f for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) for f in lines.feed(whole[start:end])]
    assert revisions(frames) == ["2", "3", "4", "5", "6", "7"]
    assert lines.error is None
    lines.end()


def test_blank_lines_are_nothing() -> None:
    lines = reader()
    assert revisions(lines.feed(b"\n" + line(2) + b"\r\n")) == ["2"]
    assert lines.error is None


def test_what_came_before_a_bad_line_is_kept() -> None:
    lines = reader()
    assert revisions(lines.feed(line(2) + b'{"type":"MODI\n' + line(3))) == ["2"]
    assert isinstance(lines.error, Garbled)


def test_an_expired_revision_is_an_expired_error() -> None:
    lines = reader()
    assert revisions(lines.feed(line(2) + TOO_OLD)) == ["2"]
    assert isinstance(lines.error, Expired)
    assert "too old resource version" in str(lines.error)


def test_a_stream_that_ends_inside_an_event_did_not_end() -> None:
    lines = reader()
    lines.feed(line(2)[:-5])
    with pytest.raises(Garbled, match="ended inside an event"):
        lines.end()


@given(st.data())
def test_bytes_that_come_twice_never_take_the_watch_back_in_time(data: st.DataObject) -> None:
    """A proxy that repeated part of a stream made an informer show the past until the next event."""
    whole = b"".join(line(revision) for revision in range(2, 8))
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, len(whole)))
    frames = reader().feed(whole[:end] + whole[start:end] + whole[end:])
    seen = [int(revision) for revision in revisions(frames)]
    assert seen == sorted(seen)


def test_a_bookmark_may_repeat_the_last_revision() -> None:
    lines = reader()
    frames = lines.feed(line(5) + line(5, "BOOKMARK"))
    assert [frame.type for frame in frames] == ["MODIFIED", "BOOKMARK"]
    assert lines.error is None


def test_a_bookmark_of_a_kind_that_requires_a_spec_has_none() -> None:
    """Every watch of RunnerPools and definitions ended at each bookmark, once a minute, and /readyz was red meanwhile."""
    lines = FrameReader(RunnerPool, "1", "GET /apis/tuist.dev/v1alpha1/runnerpools")
    assert revisions(lines.feed(line(5, "BOOKMARK", name="", namespace=""))) == ["5"]
    assert lines.error is None
    assert lines.feed(b'{"type":"BOOKMARK","object":{"metadata":7}}\n') == []
    assert isinstance(lines.error, Garbled)


def test_revisions_that_are_no_numbers_have_no_order() -> None:
    lines = reader("opaque")
    obj = {"metadata": {"name": "a", "namespace": "ci", "resourceVersion": "xyz"}}
    assert len(lines.feed(json.dumps({"type": "ADDED", "object": obj}).encode() + b"\n")) == 1
    assert lines.error is None


def test_a_null_where_an_object_or_list_belongs_is_an_absence() -> None:
    """Go writes null for a nil map; one such object must not stop the watch of a whole kind."""
    lines = reader()
    assert revisions(lines.feed(line(2, labels=None, annotations=None, finalizers=None) + line(3))) == ["2", "3"]
    assert lines.error is None


def test_an_error_event_without_a_status_is_refused() -> None:
    lines = reader()
    assert lines.feed(b'{"type":"ERROR","object":"oops"}\n') == []
    assert isinstance(lines.error, Garbled)


@pytest.mark.parametrize("metadata", [{"name": ""}, {"namespace": ""}])
def test_an_object_that_says_not_which_one_it_is_is_refused(metadata: dict[str, str]) -> None:
    lines = reader()
    assert revisions(lines.feed(line(2) + line(3, **metadata))) == ["2"]
    assert isinstance(lines.error, Garbled)


def test_an_event_of_the_wrong_shape_is_refused() -> None:
    lines = reader()
    assert lines.feed(b'{"type":"ADDED","object":{"metadata":{"labels":["no","map"]}}}\n') == []
    assert isinstance(lines.error, Garbled)


class OneAnswer:
    """An API whose watch is these bytes, in one piece."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def open(self, _: Request) -> Stream:
        return Whole(Response(200, self._body))

    async def send(self, request: Request) -> Response:
        raise AssertionError(request)

    async def aclose(self) -> None: ...


async def test_what_came_in_one_piece_with_a_bad_line_is_handed_out_before_the_watch_fails(clock: Clock) -> None:
    api = OneAnswer(line(2) + line(3) + b"garbage\n")
    seen: list[str] = []

    async def follow() -> None:
        async for frames in watch(Client(api, clock), ConfigMap, "1"):
            seen.extend(revisions(frames))

    with pytest.raises(Garbled):
        await follow()
    assert seen == ["2", "3"]
