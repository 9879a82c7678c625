"""The newest cache of an account, as dispatch told the guest and the guest tells us in `volume-head.json`.

The guest may be hostile, so what it says is believed only as far as it can do no harm: a digest becomes part of a file's name
and must be hex, an address is only ever fetched over HTTPS and holds a signature, so it is a secret.
"""

import re
from pathlib import Path

import msgspec

from applecart.kubelet.guest.guest_files import read_tail
from applecart.secrets import Secret

HEAD_FILE = "volume-head.json"
LONGEST_HEAD_BYTES = 32 << 10
LARGEST_GENERATION = 10**18
_DIGEST = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"https://[!#$%&'()*+,\-./:;=?@A-Z\[\]_a-z~0-9]{1,16000}")  # nothing that a quoted line could end with


class _Said(msgspec.Struct):
    generation: int = 0
    digest: str = ""
    download_url: str | None = None


class Head(msgspec.Struct, frozen=True):
    generation: int
    digest: str
    url: Secret


class NoHead(msgspec.Struct, frozen=True):
    """There is nothing to fetch, and why."""

    because: str


ABSENT = NoHead("the guest left no volume head")


def read_head(status: Path) -> Head | NoHead:
    found = read_tail(status, HEAD_FILE, LONGEST_HEAD_BYTES)
    if found is None:
        return ABSENT
    return parse_head(found.data) if found.is_whole else NoHead("the guest's volume head is too long")


def parse_head(data: bytes) -> Head | NoHead:
    try:
        said = msgspec.json.decode(data, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NoHead("the guest's volume head is not what was agreed on")
    if not 0 < said.generation <= LARGEST_GENERATION:
        return NoHead("the account has published no cache yet")
    if not said.download_url:
        return NoHead("the volume head has no address to fetch it from")
    url = Secret(said.download_url)
    if not _URL.fullmatch(said.download_url):
        return NoHead("the volume head's address is not an HTTPS address")
    if not _DIGEST.fullmatch(said.digest):
        return NoHead("the volume head has no digest")
    return Head(said.generation, said.digest, url)
