"""Whom a relay does not let in, and what peers that speak no VNC can do to it: nothing."""

import asyncio
import logging
from ipaddress import ip_network
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.clock import Clock, VirtualClock, VirtualLoop, run_virtual
from applecart.kubelet.screen.endpoint import Endpoint
from applecart.kubelet.screen.relay import IDLE_S, MOST_CONNECTIONS, TOKEN_S, Relay
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED
from applecart.observe.logs import logger
from applecart.secrets import Secret
from applecart.tart.mac import Connection, Mac
from tests.kubelet.screen.stage import (
    PASSWORD,
    PERSON,
    PORT,
    TOKEN,
    OneRelay,
    hash_of,
    line_of,
    nothing_runs,
)
from tests.virtual_time import elapse


@pytest.fixture
def stage(clock: Clock) -> OneRelay:
    return OneRelay(clock)


@pytest.mark.parametrize(
    "words",
    [
        b"tuist-vnc-token wrong\n",
        b"tuist-vnc-token\n",
        b"RFB 003.008\n",
        b"\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 511 + b"\n",
        line_of(TOKEN + b"x"),
    ],
)
async def test_a_wrong_or_missing_token_is_shown_nothing(stage: OneRelay, words: bytes) -> None:
    viewer = stage.dial()
    await viewer.send(words)
    assert await viewer.rest() == b""
    assert stage.mac.dialled == []


async def test_a_token_line_that_does_not_end_is_cut_by_size(stage: OneRelay) -> None:
    """Weakness 29: the line was read without a limit, so anybody could fill the agent's memory."""
    viewer = stage.dial()
    await viewer.send(b"tuist-vnc-token " + b"x" * 600)
    assert await viewer.rest() == b""
    assert asyncio.get_running_loop().time() < 1


async def test_a_token_line_that_does_not_come_is_cut_by_time(stage: OneRelay) -> None:
    """Weakness 29: a connection that says nothing was held for ever."""
    viewer = stage.dial()
    await viewer.send(b"tuist-vnc-")
    assert await viewer.rest() == b""
    assert asyncio.get_running_loop().time() == pytest.approx(TOKEN_S, abs=0.1)


@pytest.mark.parametrize("source", ["8.8.8.8", "192.168.64.5", "", "somewhere", "::ffff:192.168.65.2"])
async def test_strangers_and_guests_are_not_even_asked(stage: OneRelay, source: str) -> None:
    """Weakness 29: guests were among the allowed sources, so one job could look at another's screen."""
    viewer = stage.dial(source)
    assert await viewer.rest() == b""
    assert asyncio.get_running_loop().time() < 1


async def test_only_the_networks_that_are_allowed_may_look(clock: Clock) -> None:
    stage = OneRelay(clock, allowed=[ip_network("100.64.0.0/10")])
    assert await stage.dial(PERSON).rest() == b""
    assert await stage.dial("100.64.1.2").enter() == b"job's screen"
    await stage.relay.aclose()


async def test_connections_beyond_a_handful_are_refused(stage: OneRelay) -> None:
    for _ in range(MOST_CONNECTIONS):
        stage.dial()
    assert await stage.dial().rest() == b""
    assert asyncio.get_running_loop().time() < 1
    await elapse(TOKEN_S + 1)
    assert await stage.dial().enter() == b"job's screen"
    await stage.relay.aclose()


class Noise:
    """A peer that says anything, and then ends or stays silent."""

    def __init__(self, words: bytes, piece: int, *, stays: bool) -> None:
        self.is_closed = False
        self._left = words
        self._piece = piece
        self._stays = stays

    async def read(self) -> bytes:
        said, self._left = self._left[: self._piece], self._left[self._piece :]
        if not said and self._stays:
            await asyncio.Event().wait()
        return said

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        self.is_closed = True


def _words(*starts: bytes) -> st.SearchStrategy[bytes]:
    return st.builds(lambda start, more: start + more, st.sampled_from(starts), st.binary(max_size=64))


VIEWERS = _words(
    b"",
    b"tuist-vnc-token ",
    line_of(TOKEN),
    line_of(TOKEN) + b"RFB 003.003\n",
    line_of(TOKEN) + b"RFB 003.007\n\x01\x01",
    line_of(TOKEN) + b"RFB 003.008\n\x01\x01",
)
SCREENS = _words(
    b"", b"RFB 003.003\n", b"RFB 003.003\n\0\0\0\x01", b"RFB 003.008\n\x01\x01" + bytes(4), b"RFB 003.008\n\x01\x02"
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=VIEWERS, shown=SCREENS, piece=st.integers(1, 40), stays=st.tuples(st.booleans(), st.booleans()))
def test_no_words_of_either_side_break_the_relay_or_leave_anything_behind(
    caplog: pytest.LogCaptureFixture, said: bytes, shown: bytes, piece: int, stays: tuple[bool, bool]
) -> None:
    viewer, screen = Noise(said, piece, stays=stays[0]), Noise(shown, piece, stays=stays[1])
    dialled: list[Noise] = []

    class NoiseMac:
        async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
            dialled.append(screen)
            return screen

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = VirtualClock(loop)
        relay = Relay(
            cast(Mac, NoiseMac()),
            clock,
            logger("test"),
            token_hash=hash_of(TOKEN),
            endpoint=lambda: Endpoint(PORT, Secret(PASSWORD)),
            allowed=DEFAULT_ALLOWED,
        )
        relay.accept(viewer, PERSON)
        await asyncio.sleep(2 * IDLE_S)
        assert nothing_runs()

    run_virtual(scenario())
    worse = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert worse == []  # an error that nobody foresaw
    assert viewer.is_closed
    assert all(one.is_closed for one in dialled)
