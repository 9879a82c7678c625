"""Who asked to see a guest's screen, and what the Pod says about it then. Pure but for one small file.

Two may ask: dispatch, by a session id and the hash of a token on the Pod; or an operator on the host, by the file
`requests/<namespace>_<pod>` that holds the hash of a token of theirs. Both need the hash: whoever reaches the port must know
the token. A guest can ask for nothing.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.api import annotations as names
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.errors import BadInput
from applecart.kubelet.guest.guest_files import Refused, open_plain
from applecart.kubelet.screen.token import read_hash

LONGEST_REQUEST_BYTES = 256  # a hash has 43 characters
SHOWN = (names.VNC_STATE, names.VNC_RELAY_HOST, names.VNC_RELAY_PORT, names.VNC_RELAY_READY_AT)


class Request(msgspec.Struct, frozen=True):
    session: str  # "" of an operator on the host
    token_hash: str


class Shown(msgspec.Struct, frozen=True):
    """A relay that listens, as viewers are told of it."""

    host: str
    port: int
    ready_at: datetime


def file_stem(pod: Key) -> str:
    return f"{pod.namespace}_{pod.name}"


def request_of(pod: Pod, requests: Path) -> Request | None:
    """None when nobody asked. Raises BadInput when somebody did, and wrongly."""
    annotations = pod.metadata.annotations
    session = annotations.get(names.VNC_SESSION_ID, "")
    if not session:
        return _operators(requests, file_stem(pod.key))
    written = annotations.get(names.VNC_RELAY_TOKEN_HASH, "")
    if not written:
        return None  # dispatch writes it when it is ready to let the viewer in
    found = read_hash(written)
    if found is None:
        raise BadInput(f"the annotation {names.VNC_RELAY_TOKEN_HASH} is no SHA-256 in base64url; ask for the screen again")
    return Request(session, found)


def _operators(requests: Path, name: str) -> Request | None:
    if not os.path.lexists(requests / name):
        return None
    try:
        handle, _ = open_plain(requests, name)
    except (OSError, Refused) as error:
        raise BadInput(
            f"the request {requests / name} cannot be read ({error}); write a plain file as the agent's user"
        ) from None
    try:
        text = os.read(handle, LONGEST_REQUEST_BYTES).decode("ascii", "replace")
    finally:
        os.close(handle)
    found = read_hash(text)
    if found is None:
        raise BadInput(
            f"the request {requests / name} holds no token hash, and nothing is shown without a token; write the SHA-256 of a "
            "token of yours into it, in base64url"
        )
    return Request("", found)


def annotation_changes(current: Mapping[str, str], shown: Shown | None) -> dict[str, str | None]:
    """What to write so that the Pod says it, None for what must go; nothing when it says so already.

    The time is the relay's own, not that of the look: a new one at every look would wake its own writer for ever.
    """
    wanted: Mapping[str, str] = {} if shown is None else {
        names.VNC_STATE: names.VNC_READY_VALUE,
        names.VNC_RELAY_HOST: shown.host,
        names.VNC_RELAY_PORT: str(shown.port),
        names.VNC_RELAY_READY_AT: timestamp(shown.ready_at),
    }  # fmt: skip
    return {name: wanted.get(name) for name in SHOWN if current.get(name) != wanted.get(name)}


def timestamp(at: datetime) -> str:
    """As the API writes times."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
