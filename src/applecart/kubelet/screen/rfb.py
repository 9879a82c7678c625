"""The greeting of RFB (RFC 6143, 7.1) in both directions, for its three published versions.

The relay greets each side on its own, so a viewer of one version sees a server of another: the versions differ only in how the
password is settled, and everything after that is passed on untouched. The viewer is asked for no password, because its token
has let it in; the guest's server gets the one Tart chose, and nobody else ever sees it.
"""

import re
from enum import IntEnum

from applecart.kubelet.screen.des import BLOCK_BYTES, encrypt_block
from applecart.kubelet.screen.wire import Wire, WrongWords
from applecart.secrets import Secret

OUR_VERSION = b"RFB 003.008\n"
VERSION_BYTES = 12
NO_PASSWORD = 1
PASSWORD = 2
CHALLENGE_BYTES = 16
LONGEST_REASON_BYTES = 256  # of a refusal; the count before it may promise gigabytes
_VERSION = re.compile(rb"RFB (\d{3})\.(\d{3})\n")
_FINE = bytes(4)


class Version(IntEnum):
    """How a peer settles the password."""

    V3_3 = 3  # the server decides
    V3_7 = 7  # the viewer chooses from a list
    V3_8 = 8  # and is told how it went, also without a password


def read_version(words: bytes) -> Version:
    """Unpublished ones count as the nearest below: 3.5 is 3.3, and Apple's 3.889 is 3.8."""
    found = _VERSION.fullmatch(words)
    if found is None:
        raise WrongWords("the peer does not speak RFB")
    major, minor = int(found[1]), int(found[2])
    if (major, minor) < (3, 3):
        raise WrongWords(f"the peer speaks RFB {major}.{minor}, which is older than any published version")
    if major > 3 or minor >= Version.V3_8:
        return Version.V3_8
    return Version.V3_7 if minor == Version.V3_7 else Version.V3_3


async def greet_viewer(viewer: Wire) -> Version:
    await viewer.write(OUR_VERSION)
    return read_version(await viewer.exactly(VERSION_BYTES))


async def let_in(viewer: Wire, version: Version) -> None:
    """After the greeting: no password needed."""
    if version is Version.V3_3:
        await viewer.write(NO_PASSWORD.to_bytes(4))
        return
    await viewer.write(bytes([1, NO_PASSWORD]))
    chosen = (await viewer.exactly(1))[0]
    if chosen != NO_PASSWORD:
        raise WrongWords(f"the viewer wants security type {chosen}, which was not offered")
    if version is Version.V3_8:
        await viewer.write(_FINE)


async def turn_away(viewer: Wire, version: Version, reason: str) -> None:
    """After the greeting, in place of `let_in`: viewers show the reason to their person."""
    words = reason.encode()
    nothing_offered = bytes(4) if version is Version.V3_3 else bytes(1)
    await viewer.write(nothing_offered + len(words).to_bytes(4) + words)


async def log_in(screen: Wire, password: Secret) -> None:
    """Everything up to the first word of the viewer's own session."""
    version = read_version(await screen.exactly(VERSION_BYTES))
    await screen.write(b"RFB 003.%03d\n" % version)
    kind = await _security_type(screen, version)
    if kind == PASSWORD:
        await screen.write(password_answer(await screen.exactly(CHALLENGE_BYTES), password))
    if kind == PASSWORD or version is Version.V3_8:
        result = int.from_bytes(await screen.exactly(4))
        if result:
            why = await _reason(screen) if version is Version.V3_8 else f"result {result}"
            raise WrongWords(f"the guest's screen refused the password that Tart printed: {why}")


async def _security_type(screen: Wire, version: Version) -> int:
    if version is Version.V3_3:
        offered = [int.from_bytes(await screen.exactly(4))]
    else:
        offered = list(await screen.exactly((await screen.exactly(1))[0]))
    if not any(offered):
        raise WrongWords(f"the guest's screen takes nobody: {await _reason(screen)}")
    kind = PASSWORD if PASSWORD in offered else NO_PASSWORD
    if kind not in offered:
        raise WrongWords(f"the guest's screen offers only security types {offered[:10]}, of which the relay knows none")
    if version is not Version.V3_3:
        await screen.write(bytes([kind]))
    return kind


async def _reason(screen: Wire) -> str:
    length = int.from_bytes(await screen.exactly(4))
    words = await screen.exactly(min(length, LONGEST_REASON_BYTES))
    return repr(words.decode("utf-8", "replace"))


def password_answer(challenge: bytes, password: Secret) -> bytes:
    """The challenge under the password's first eight bytes, each with its bits in reverse (a slip of the first VNC)."""
    start = password.reveal().encode()[:BLOCK_BYTES].ljust(BLOCK_BYTES, b"\0")
    key = bytes(int(f"{byte:08b}"[::-1], 2) for byte in start)
    blocks = [challenge[at : at + BLOCK_BYTES] for at in range(0, CHALLENGE_BYTES, BLOCK_BYTES)]
    return b"".join(encrypt_block(key, block) for block in blocks)
