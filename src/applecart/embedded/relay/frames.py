"""The frames of a remote command: a first byte that names the channel, then bytes.

Channels go one way each. What a client may not send, and frames that name no channel, are dropped, as a kubelet would drop
them; an agent that reads them would have to get this right for every client there is.
"""

from typing import Any

import msgspec

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)  # the newer one closes one stream of several, which stdin that ends needs

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
FROM_CLIENT = frozenset({STDIN, RESIZE, CLOSE})
FROM_AGENT = frozenset({STDOUT, STDERR, ERROR, CLOSE})


def channel_of(frame: bytes | str) -> int | None:
    """The channel of a frame, which may come as text; None when it names none."""
    if not frame:
        return None
    return ord(frame[0]) if isinstance(frame, str) else frame[0]


def offered_protocols(headers: list[str]) -> tuple[str, ...]:
    """Those that a client offers and that are spoken here, in the client's order."""
    offered = [name.strip() for header in headers for name in header.split(",")]
    return tuple(dict.fromkeys(name for name in offered if name in PROTOCOLS))


def status_frame(status: dict[str, Any]) -> bytes:
    """How a remote command ends: a Status on the error channel."""
    return bytes((ERROR,)) + msgspec.json.encode(status)


def lost_frame(why: str) -> bytes:
    """The end of a command of which nobody knows how it ended."""
    return status_frame(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {why}",
            "reason": "InternalError",
            "details": {"causes": [{"message": why}]},
            "code": 500,
        }
    )
