"""Whether a finished job's cache becomes its account's master. Pure, except for reading what the guest left, the careful way.

Every condition must hold, and whatever is missing, torn or strange counts against it: a guest that crashed left no
`cache-dirty`, one that lost the race was told `conflict`, and what was never materialized for an account belongs to nobody.
"""

import re
from pathlib import Path

import msgspec

from applecart.api.metric_names.label_values import CachePromote
from applecart.api.pods import SUCCEEDED
from applecart.kubelet.cache.records import Branch, Step
from applecart.kubelet.entry import Exit
from applecart.kubelet.guest.guest_files import read_tail

DIRTY_FILE = "cache-dirty"
RESULT_FILE = "cache-promote-result"
UPLOAD_FILE = "volume-upload-ms"
FILL_FILE = "cache-fill-percent"
LONGEST_BYTES = 64
_ACCEPTED = re.compile(rb"accepted ([1-9][0-9]{0,17})")
_UPLOAD_MS = re.compile(rb"[0-9]{1,9}")
_PERCENT = re.compile(rb"[0-9]{1,3}")


class Offer(msgspec.Struct, frozen=True):
    """What the guest left about its cache."""

    is_dirty: bool | None = None  # None: it never got as far as to say
    result: CachePromote | None = None
    generation: int = 0  # that the fleet gave it, when it was accepted
    upload_s: float | None = None
    fill_percent: int | None = None


def read_offer(status: Path) -> Offer:
    dirty = _word(status, DIRTY_FILE)
    result, generation = _result(_word(status, RESULT_FILE))
    upload, fill = _word(status, UPLOAD_FILE), _word(status, FILL_FILE)
    percent = int(fill) if _PERCENT.fullmatch(fill) else None
    return Offer(
        is_dirty={b"1": True, b"0": False}.get(dirty),
        result=result,
        generation=generation,
        upload_s=int(upload) / 1000 if _UPLOAD_MS.fullmatch(upload) else None,
        fill_percent=percent if percent is not None and percent <= 100 else None,
    )


def reason_to_discard(branch: Branch, exit: Exit | None, offer: Offer, *, has_image: bool) -> str:
    """Empty when it is to be promoted."""
    for is_so, why in (
        (branch.step is not Step.MATERIALIZED, "no job was given a cache"),
        (not branch.account, "the job may not change its account's cache"),
        (exit is None or exit.phase != SUCCEEDED or exit.code != 0, "the job's VM did not end cleanly"),
        (offer.is_dirty is None, "the guest did not get as far as to say whether its cache changed"),
        (not offer.is_dirty, "the cache did not change"),
        (offer.result is None, "the guest did not publish its cache"),
        (offer.result is CachePromote.REJECTED, "another job published first"),
        (offer.result is not CachePromote.ACCEPTED or offer.generation <= 0, "publishing the cache failed"),
        (not has_image, "the image is gone"),
    ):
        if is_so:
            return why
    return ""


def loses_cas(*, is_cas_on: bool, had_cas: bool, has_cas: bool) -> bool:
    """An image from a host that knows no compiler cache must not replace one that holds it. Where people switched that cache
    off the loss is meant."""
    return is_cas_on and had_cas and not has_cas


def _result(word: bytes) -> tuple[CachePromote | None, int]:
    if found := _ACCEPTED.fullmatch(word):
        return CachePromote.ACCEPTED, int(found[1])
    if word == b"conflict":
        return CachePromote.REJECTED, 0
    return (CachePromote.ERROR, 0) if word else (None, 0)


def _word(status: Path, name: str) -> bytes:
    found = read_tail(status, name, LONGEST_BYTES)
    return found.data.strip() if found is not None and found.is_whole else b""
