"""Whether a finished job's cache becomes its account's master."""

import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.api.metric_names.label_values import CachePromote
from applecart.api.pods import FAILED
from applecart.kubelet.cache.promotion import Offer, loses_cas, read_offer, reason_to_discard
from applecart.kubelet.cache.records import Branch, Step
from tests.kubelet.cache.stage import CLEAN

GOOD_OFFER = Offer(True, CachePromote.ACCEPTED, 4)
GOOD_BRANCH = Branch("uid", "vm", Step.MATERIALIZED, "42")
FAILED_EXIT = msgspec.structs.replace(CLEAN, phase=FAILED, code=1)

BRANCHES = [
    GOOD_BRANCH,
    *(msgspec.structs.replace(GOOD_BRANCH, step=step) for step in Step),
    Branch("uid", "vm", Step.MATERIALIZED),
]
OFFERS = [
    GOOD_OFFER,
    Offer(None, CachePromote.ACCEPTED, 4),
    Offer(False, CachePromote.ACCEPTED, 4),
    Offer(True, None, 4),
    Offer(True, CachePromote.ACCEPTED, 0),
    Offer(True, CachePromote.REJECTED, 4),
    Offer(True, CachePromote.ERROR, 4),
]


def test_only_when_everything_holds_is_a_cache_promoted() -> None:
    promoted = [
        (branch, exit, offer, has_image)
        for branch, exit, offer, has_image in itertools.product(BRANCHES, [CLEAN, FAILED_EXIT, None], OFFERS, [True, False])
        if not reason_to_discard(branch, exit, offer, has_image=has_image)
    ]
    assert set(promoted) == {(GOOD_BRANCH, CLEAN, GOOD_OFFER, True)}


@pytest.mark.parametrize(
    ("is_cas_on", "had_cas", "has_cas", "is_lost"),
    [(True, True, False, True), (True, True, True, False), (True, False, False, False), (False, True, False, False)],
)
def test_only_where_the_compiler_cache_is_wanted_can_it_be_lost(
    is_cas_on: bool, had_cas: bool, has_cas: bool, is_lost: bool
) -> None:
    """Weakness 34, as a decision."""
    assert loses_cas(is_cas_on=is_cas_on, had_cas=had_cas, has_cas=has_cas) is is_lost


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("cache-dirty", "1\n", Offer(is_dirty=True)),
        ("cache-dirty", "0", Offer(is_dirty=False)),
        ("cache-dirty", "true", Offer()),
        ("cache-promote-result", "accepted 12\n", Offer(result=CachePromote.ACCEPTED, generation=12)),
        ("cache-promote-result", "conflict", Offer(result=CachePromote.REJECTED)),
        ("cache-promote-result", "error", Offer(result=CachePromote.ERROR)),
        ("cache-promote-result", "accepted", Offer(result=CachePromote.ERROR)),
        ("cache-promote-result", "accepted 1" + "0" * 100, Offer()),
        ("volume-upload-ms", "1500", Offer(upload_s=1.5)),
        ("volume-upload-ms", "-1", Offer()),
        ("cache-fill-percent", "100", Offer(fill_percent=100)),
        ("cache-fill-percent", "101", Offer()),
    ],
)
def test_what_a_guest_left(tmp_path: Path, file: str, text: str, expected: Offer) -> None:
    (tmp_path / file).write_text(text)
    assert read_offer(tmp_path) == expected


@given(data=st.binary(max_size=80))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_no_report_is_too_strange(tmp_path: Path, data: bytes) -> None:
    for name in ("cache-dirty", "cache-promote-result", "volume-upload-ms", "cache-fill-percent"):
        (tmp_path / name).write_bytes(data)
    offer = read_offer(tmp_path)
    assert offer.generation >= 0
    assert offer.generation == 0 or offer.result is CachePromote.ACCEPTED
