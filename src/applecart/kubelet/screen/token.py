"""What opens a relay: a token that the viewer sends first, of which the host knows only the hash.

The first line is `tuist-vnc-token <token>`; the hash is SHA-256 in base64url without padding, in the Pod's annotation or, for
an operator on the host, in a request file. Without a well-formed hash nothing opens. Tokens are never kept, logged or compared
in a way that tells how much of them was right.
"""

import base64
import hashlib
import hmac
import re

WORD = b"tuist-vnc-token"
LONGEST_LINE_BYTES = 512  # a token of any sensible length, and nothing that could fill a host's memory
_HASH = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url


def token_hash(token: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(token).digest()).rstrip(b"=").decode()


def read_hash(text: str) -> str | None:
    """The hash that a text holds, with or without its padding; None when it holds none."""
    core = text.strip().removesuffix("=")
    return core if _HASH.fullmatch(core) else None


def is_opened_by(line: bytes, expected_hash: str) -> bool:
    word, _, token = line.removesuffix(b"\r").partition(b" ")
    is_same = hmac.compare_digest(token_hash(token).encode(), expected_hash.encode())
    return is_same and word == WORD and bool(token)
