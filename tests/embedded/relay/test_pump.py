"""Frames of a remote command, and both ways of them."""

import asyncio
import errno
import json
from dataclasses import dataclass, field

import pytest
from aiohttp import WSMessage, WSMsgType
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from applecart.clock import run_virtual
from applecart.embedded.relay.pump import FROM_AGENT, FROM_CLIENT, LOST, V4, V5, channel_of, lost_frame, offered_protocols, pump
from applecart.embedded.relay.streams import agent_query
from tests.virtual_time import elapse


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
    assert list(agent_query(action, MultiDict(query))) == expected


@given(st.lists(st.tuples(st.sampled_from(["command", "stdin", "stdout", "tty", "container", "?"]), st.text())))
def test_the_words_of_a_command_keep_their_order_and_their_letters(query: list[tuple[str, str]]) -> None:
    words = [value for name, value in agent_query("exec", MultiDict(query)) if name == "command"]
    assert words == [value for name, value in query if name == "command"]


SUCCESS = b'\x03{"status":"Success"}'


@dataclass
class MemoryEnd:
    """One side of a connection: what it will say, and what it was told."""

    coming: asyncio.Queue[WSMessage] = field(default_factory=asyncio.Queue)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1 << 30))
    told: list[bytes | str] = field(default_factory=list)
    received: int = 0
    close_code: int | None = None
    closed_with: int | None = None

    def says(self, *frames: bytes | str) -> None:
        for frame in frames:
            kind = WSMsgType.BINARY if isinstance(frame, bytes) else WSMsgType.TEXT
            self.coming.put_nowait(WSMessage(kind, frame, None))

    def ends(self, code: int) -> None:
        self.coming.put_nowait(WSMessage(WSMsgType.CLOSED, code, None))

    async def receive(self) -> WSMessage:
        message = await self.coming.get()
        self.received += 1
        if message.type is WSMsgType.CLOSED:
            self.close_code = message.data
        return message

    async def send_bytes(self, data: bytes) -> None:
        await self._send(data)

    async def send_str(self, data: str) -> None:
        await self._send(data)

    async def _send(self, data: bytes | str) -> None:
        if self.close_code is not None:
            raise ConnectionResetError("closed")
        await self.room.acquire()
        self.told.append(data)

    async def close(self, *, code: int = 1000, message: bytes = b"") -> bool:
        self.closed_with = code
        return True


async def test_frames_go_both_ways_in_their_order() -> None:
    client, agent = MemoryEnd(), MemoryEnd()
    client.says(b"\x00a", "\x00b", b"\x04{}", b"\xff\x00")
    joined = asyncio.create_task(pump(client, agent))
    await elapse(1)
    agent.says(b"\x01x", b"\x02y", SUCCESS)
    agent.ends(1000)
    await joined
    assert agent.told == [b"\x00a", "\x00b", b"\x04{}", b"\xff\x00"]
    assert client.told == [b"\x01x", b"\x02y", SUCCESS]
    assert (client.closed_with, agent.closed_with) == (1000, 1000)


async def test_a_side_is_read_no_faster_than_the_other_takes() -> None:
    client, agent = MemoryEnd(room=asyncio.Semaphore(3)), MemoryEnd()
    agent.says(*[b"\x01x"] * 100)
    joined = asyncio.create_task(pump(client, agent))
    await elapse(3600)
    assert (len(client.told), agent.received) == (3, 4)
    client.room.release()
    await elapse(1)
    assert (len(client.told), agent.received) == (4, 5)
    joined.cancel()
    await asyncio.gather(joined, return_exceptions=True)


@pytest.mark.parametrize(("code", "told"), [(1000, 1000), (1006, 1011), (1011, 1011), (1001, 1001), (4000, 4000), (1005, 1011)])
async def test_an_agent_that_ends_without_a_word_is_spoken_for(code: int, told: int) -> None:
    client, agent = MemoryEnd(), MemoryEnd()
    agent.says(b"\x01partial")
    agent.ends(code)
    await pump(client, agent)
    first, last = client.told
    assert first == b"\x01partial"
    assert isinstance(last, bytes)
    assert json.loads(last[1:])["message"] == f"Internal error occurred: {LOST}"
    assert (last[0], client.closed_with) == (3, told)


async def test_a_client_that_goes_closes_the_agent() -> None:
    client, agent = MemoryEnd(), MemoryEnd()
    client.ends(1006)
    await pump(client, agent)
    assert agent.closed_with == 1011
    assert agent.told == []


@pytest.mark.parametrize("said", [SUCCESS, None])
async def test_a_client_that_types_as_the_agent_goes_is_told_how_its_command_ended(said: bytes | None) -> None:
    """What it typed could not be sent, and that ended the connection without a word: kubectl took it for a success."""
    client, agent = MemoryEnd(), MemoryEnd()
    joined = asyncio.create_task(pump(client, agent))
    await elapse(1)
    agent.close_code = 1006  # known to whoever writes before whoever reads hears of it
    client.says(b"\x00a")
    await elapse(0.1)
    if said is not None:
        agent.says(said)
    agent.ends(1006)
    await joined
    assert client.told == [SUCCESS if said is not None else lost_frame(LOST)]


@pytest.mark.parametrize("fails", ["client", "agent"])
async def test_a_surprise_in_either_direction_is_raised_and_the_client_told(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, agent = MemoryEnd(), MemoryEnd()

    async def surprised() -> WSMessage:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr({"client": client, "agent": agent}[fails], "receive", surprised)
    with pytest.raises(OSError, match="too many"):
        await pump(client, agent)
    assert client.told == [lost_frame(LOST)]
    assert (client.closed_with, agent.closed_with) == (1000, 1000)


async def test_a_pump_that_is_cancelled_closes_both() -> None:
    client, agent = MemoryEnd(), MemoryEnd()
    joined = asyncio.create_task(pump(client, agent))
    await elapse(1)
    joined.cancel()
    await asyncio.gather(joined, return_exceptions=True)
    assert (client.closed_with, agent.closed_with) == (1000, 1000)


@given(st.lists(st.binary(max_size=8) | st.text(max_size=4)), st.lists(st.binary(max_size=8) | st.text(max_size=4)))
def test_only_frames_of_the_right_channels_pass_and_none_is_changed(typed: list[bytes | str], said: list[bytes | str]) -> None:
    async def play() -> tuple[MemoryEnd, MemoryEnd]:
        client, agent = MemoryEnd(), MemoryEnd()
        client.says(*typed)
        agent.says(*said)
        joined = asyncio.create_task(pump(client, agent))
        await elapse(1)
        agent.says(SUCCESS)
        agent.ends(1000)
        await joined
        return client, agent

    def passing(frames: list[bytes | str], channels: frozenset[int]) -> list[bytes | str]:
        return [one for one in frames if one and (one[0] if isinstance(one, bytes) else ord(one[0])) in channels]

    client, agent = run_virtual(play())
    assert agent.told == passing(typed, FROM_CLIENT)
    assert client.told == [*passing(said, FROM_AGENT), SUCCESS]
