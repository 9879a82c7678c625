import asyncio
from contextlib import suppress
from random import Random

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock, run_virtual
from applecart.errors import ApplecartError, Unreachable
from applecart.kubelet.screen.rfb import Version, greet_viewer, let_in, log_in, password_answer, read_version, turn_away
from applecart.kubelet.screen.wire import Wire, WrongWords
from applecart.secrets import Secret
from applecart.sim.vnc_server import SimulatedScreen, pair
from tests.kubelet.screen.stage import PASSWORD

FINE = bytes(4)
CHALLENGE = bytes(range(16))


class Script:
    """A peer that says what is written, in small pieces, and then ends."""

    def __init__(self, words: bytes, piece: int = 3) -> None:
        self.heard = b""
        self._left = words
        self._piece = piece

    async def read(self) -> bytes:
        said, self._left = self._left[: self._piece], self._left[self._piece :]
        return said

    async def write(self, data: bytes) -> None:
        self.heard += data

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    ("words", "version"),
    [
        (b"RFB 003.003\n", Version.V3_3),
        (b"RFB 003.005\n", Version.V3_3),
        (b"RFB 003.006\n", Version.V3_3),
        (b"RFB 003.007\n", Version.V3_7),
        (b"RFB 003.008\n", Version.V3_8),
        (b"RFB 003.889\n", Version.V3_8),
        (b"RFB 004.001\n", Version.V3_8),
    ],
)
def test_an_unpublished_version_counts_as_the_published_one_below(words: bytes, version: Version) -> None:
    assert read_version(words) is version


@pytest.mark.parametrize(
    "words", [b"RFB 003.002\n", b"RFB 000.000\n", b"RFB 003.008\r", b"HTTP/1.1 200", b"", b"RFB 03.0008\n"]
)
def test_what_is_no_version_is_refused(words: bytes) -> None:
    with pytest.raises(WrongWords):
        read_version(words)


def test_the_password_is_taken_with_its_bits_in_reverse() -> None:
    """The key and the outcome under which the first VNC stored the word "password" in its settings."""
    key = bytes([23, 82, 107, 6, 35, 78, 88, 7]).decode("ascii")
    answer = password_answer(b"password" * 2, Secret(key))
    assert answer.hex() == "dbd83cfd727a1458" * 2


@given(password=st.text(st.characters(codec="ascii"), max_size=12), challenge=st.binary(min_size=16, max_size=16))
def test_only_the_first_eight_characters_of_a_password_count(password: str, challenge: bytes) -> None:
    reversed_bits = [sum(1 << (7 - bit) for bit in range(8) if ord(one) >> bit & 1) for one in password[:8]]
    oracle = Cipher(TripleDES(bytes(reversed_bits).ljust(8, b"\0") * 3), ECB()).encryptor()
    assert password_answer(challenge, Secret(password)) == oracle.update(challenge)


# The guest's side


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"RFB 003.003\n" + b"\0\0\0\x01", b"RFB 003.003\n"),
        (b"RFB 003.007\n" + b"\x01\x01", b"RFB 003.007\n\x01"),
        (b"RFB 003.008\n" + b"\x02\x10\x01" + FINE, b"RFB 003.008\n\x01"),
        (b"RFB 003.889\n" + b"\x01\x01" + FINE, b"RFB 003.008\n\x01"),
    ],
)
async def test_a_screen_without_a_password_is_entered_in_its_own_version(said: bytes, heard: bytes) -> None:
    """Weakness 31: without a password, only version 3.8 says how it went; waiting for it in another hung for ever."""
    screen = Script(said + b"the session")
    wire = Wire(screen)
    await log_in(wire, Secret(PASSWORD))
    assert screen.heard == heard
    assert await wire.exactly(11) == b"the session"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"RFB 003.003\n" + b"\0\0\0\x02" + CHALLENGE + FINE, b"RFB 003.003\n"),
        (b"RFB 003.007\n" + b"\x02\x01\x02" + CHALLENGE + FINE, b"RFB 003.007\n\x02"),
        (b"RFB 003.008\n" + b"\x01\x02" + CHALLENGE + FINE, b"RFB 003.008\n\x02"),
    ],
)
async def test_a_screen_with_a_password_gets_it_in_its_own_version(said: bytes, heard: bytes) -> None:
    screen = Script(said + b"the session")
    wire = Wire(screen)
    await log_in(wire, Secret(PASSWORD))
    assert screen.heard == heard + password_answer(CHALLENGE, Secret(PASSWORD))
    assert await wire.exactly(11) == b"the session"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"RFB 003.003\n" + b"\0\0\0\x02" + CHALLENGE + b"\0\0\0\x01", "refused the password"),
        (b"RFB 003.007\n" + b"\x01\x02" + CHALLENGE + b"\0\0\0\x02", "refused the password"),
        (b"RFB 003.008\n" + b"\x01\x02" + CHALLENGE + b"\0\0\0\x01\0\0\0\x04nope", "refused the password.*nope"),
        (b"RFB 003.008\n" + b"\x00" + b"\0\0\0\x04busy", "takes nobody.*busy"),
        (b"RFB 003.003\n" + bytes(4) + b"\0\0\0\x04busy", "takes nobody.*busy"),
        (b"RFB 003.008\n" + b"\x00" + b"\xff\xff\xff\xff" + b"x" * 256, "takes nobody"),
        (b"RFB 003.008\n" + b"\x02\x05\x1e", "knows none"),
        (b"RFB 003.003\n" + b"\0\0\0\x1e", "knows none"),
        (b"SSH-2.0-OpenSSH_9.0\r\n", "does not speak RFB"),
    ],
)
async def test_a_screen_that_says_no_is_told_by_its_reason(said: bytes, why: str) -> None:
    with pytest.raises(WrongWords, match=why):
        await log_in(Wire(Script(said)), Secret(PASSWORD))


@pytest.mark.parametrize("cut", range(0, 36, 5))
async def test_a_screen_that_ends_in_between_is_unreachable(cut: int) -> None:
    said = b"RFB 003.008\n" + b"\x01\x02" + CHALLENGE + FINE
    with pytest.raises(Unreachable):
        await log_in(Wire(Script(said[: min(cut, len(said) - 1)])), Secret(PASSWORD))


@given(st.binary(max_size=80), st.sampled_from([b"", b"RFB 003.003\n", b"RFB 003.007\n", b"RFB 003.008\n"]))
def test_no_words_of_a_screen_end_in_anything_but_an_error_of_ours(noise: bytes, start: bytes) -> None:
    async def scenario() -> None:
        with suppress(ApplecartError):
            await log_in(Wire(Script(start + noise)), Secret(PASSWORD))

    run_virtual(scenario())


# The viewer's side


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"RFB 003.003\n", b"\0\0\0\x01"),
        (b"RFB 003.007\n\x01", b"\x01\x01"),
        (b"RFB 003.008\n\x01", b"\x01\x01" + FINE),
    ],
)
async def test_a_viewer_of_any_version_is_let_in_without_a_password(said: bytes, heard: bytes) -> None:
    viewer = Script(said)
    wire = Wire(viewer)
    await let_in(wire, await greet_viewer(wire))
    assert viewer.heard == b"RFB 003.008\n" + heard


async def test_a_viewer_that_wants_what_was_not_offered_is_refused() -> None:
    viewer = Wire(Script(b"RFB 003.008\n\x02"))
    with pytest.raises(WrongWords, match="type 2, which was not offered"):
        await let_in(viewer, await greet_viewer(viewer))


@pytest.mark.parametrize(("version", "nothing"), [(Version.V3_3, bytes(4)), (Version.V3_7, b"\0"), (Version.V3_8, b"\0")])
async def test_a_viewer_that_is_turned_away_can_show_why(version: Version, nothing: bytes) -> None:
    viewer = Script(b"")
    await turn_away(Wire(viewer), version, "try again")
    assert viewer.heard == nothing + b"\0\0\0\x09try again"


# Both, with the simulated screen


# A 3.3 server decides for one type alone: the first.
SCREENS = [(minor, security) for minor in (3, 7, 8, 889) for security in ((1,), (2,), (1, 2), (2, 30))]


@pytest.mark.parametrize(("minor", "security"), SCREENS)
async def test_every_published_screen_is_entered(clock: Clock, minor: int, security: tuple[int, ...]) -> None:
    screen = SimulatedScreen(Secret(PASSWORD), clock.random, version=b"RFB 003.%03d\n" % minor, security=security)
    wire = Wire(screen.dial())
    await log_in(wire, Secret(PASSWORD))
    await wire.write(b"\x01")
    assert (await wire.exactly(29))[-5:] == b"guest"
    assert (screen.viewers, screen.is_shared) == (1, [True])
    await wire.aclose()


@pytest.mark.parametrize("minor", [3, 7, 8])
async def test_a_wrong_password_opens_no_screen(clock: Clock, minor: int) -> None:
    screen = SimulatedScreen(Secret(PASSWORD), clock.random, version=b"RFB 003.%03d\n" % minor)
    wire = Wire(screen.dial())
    with pytest.raises(WrongWords, match="refused the password"):
        await log_in(wire, Secret("wrong-words-of-nobody"))
    assert screen.viewers == 0
    await wire.aclose()


@given(st.binary(max_size=60))
def test_the_simulated_screen_stands_any_viewer(noise: bytes) -> None:
    async def scenario() -> None:
        ours, theirs = pair()
        screen = SimulatedScreen(Secret(PASSWORD), Random(0), security=(1,))
        await theirs.write(b"RFB 003.008\n\x01\x01" + noise)
        serving = asyncio.create_task(screen.serve(ours))
        await asyncio.sleep(1)
        await theirs.aclose()
        await serving

    run_virtual(scenario())
