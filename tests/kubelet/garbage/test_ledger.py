"""The ledger of pulled images: what was there before, or came by another hand, is never ours."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kubelet.garbage.ledger import Ledger
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.images import parse
from tests.tart.stores import DIGEST_A, DIGEST_B, make_image
from tests.virtual_time import elapse

REPOSITORY = "ghcr.io/acme/macos"
A, B = f"{REPOSITORY}@{DIGEST_A}", f"{REPOSITORY}@{DIGEST_B}"
TAG = parse(f"{REPOSITORY}:15")


class Store:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.path = folder / "tart"
        self._folder = folder
        self._clock = clock

    def ledger(self) -> Ledger:
        """As a new agent opens it."""
        return Ledger(self._folder / "state", Home(self.path), Files(), self._clock)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return Store(tmp_path, clock)


def test_what_a_pull_brought_is_ours_also_after_a_restart(store: Store) -> None:
    ledger = store.ledger()
    ledger.begin(TAG)
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    ledger.end(TAG)
    assert ledger.pulled() == store.ledger().pulled() == {A}


def test_what_was_there_before_the_pull_is_not_ours(store: Store) -> None:
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    ledger = store.ledger()
    ledger.begin(TAG)
    ledger.end(TAG)
    assert ledger.pulled() == frozenset()


def test_what_another_hand_pulled_meanwhile_is_not_ours(store: Store) -> None:
    ledger = store.ledger()
    ledger.begin(TAG)
    make_image(store.path, REPOSITORY, DIGEST_B, "16")
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    ledger.end(TAG)
    assert ledger.pulled() == {A}


def test_a_tag_that_moved_brings_one_more_and_keeps_the_first(store: Store) -> None:
    ledger = store.ledger()
    for digest in (DIGEST_A, DIGEST_B):
        ledger.begin(TAG)
        make_image(store.path, REPOSITORY, digest, "15")
        ledger.end(TAG)
    assert ledger.pulled() == {A, B}


def test_a_pull_again_of_what_is_ours_keeps_it_ours(store: Store) -> None:
    ledger = store.ledger()
    for _ in range(2):
        ledger.begin(TAG)
        make_image(store.path, REPOSITORY, DIGEST_A, "15")
        ledger.end(TAG)
    assert ledger.pulled() == {A}


def test_a_pull_whose_agent_died_is_ours_once_it_is_done(store: Store) -> None:
    store.ledger().begin(TAG)
    again = store.ledger()
    assert again.pulled() == frozenset()
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    assert again.pulled() == {A}


def test_a_pull_that_failed_gives_nothing_away_to_a_later_hand(store: Store) -> None:
    ledger = store.ledger()
    ledger.begin(TAG)
    ledger.end(TAG)
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    assert ledger.pulled() == frozenset()


async def test_a_pull_whose_agent_died_is_forgotten_after_a_day(store: Store) -> None:
    store.ledger().begin(TAG)
    await elapse(timedelta(hours=25).total_seconds())
    other = parse("ghcr.io/acme/other:1")
    ledger = store.ledger()
    ledger.begin(other)
    ledger.end(other)
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    assert ledger.pulled() == frozenset()


def test_an_image_that_left_the_store_is_not_ours_when_it_comes_back(store: Store) -> None:
    ledger = store.ledger()
    ledger.begin(TAG)
    make_image(store.path, REPOSITORY, DIGEST_A, "15")
    ledger.end(TAG)
    ledger.forget_gone()
    assert ledger.pulled() == {A}
    shutil.rmtree(store.path / "cache")
    ledger.forget_gone()
    assert ledger.pulled() == store.ledger().pulled() == frozenset()
