"""What an operator is told about relying on the embedded API for more than it is made for."""

import logging

import pytest

from applecart.cli.api.notices import LOOK_EVERY_S, NODES_ADVISED, notice_of_exposure, notice_of_size, watch_size
from applecart.clock import Clock


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_exposes_nothing(host: str) -> None:
    assert notice_of_exposure(host, 6443) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "api.example.org"])
def test_any_other_address_is_told_with_what_is_within_reach(host: str) -> None:
    notice = notice_of_exposure(host, 6443)
    assert notice
    assert f"port 6443 of {host}" in notice
    assert "Secrets included" in notice


def test_up_to_the_advised_number_of_nodes_nothing_is_said() -> None:
    assert notice_of_size(NODES_ADVISED) is None
    assert "serves 101 Nodes" in (notice_of_size(NODES_ADVISED + 1) or "")


async def test_the_size_is_told_once_when_it_is_passed(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    counts = iter([5, NODES_ADVISED, NODES_ADVISED + 20])
    began_s = clock.monotonic()
    with caplog.at_level(logging.WARNING):
        await watch_size(lambda: next(counts))
    assert clock.monotonic() - began_s == pytest.approx(2 * LOOK_EVERY_S)
    assert [record.getMessage() for record in caplog.records] == [notice_of_size(NODES_ADVISED + 20)]
