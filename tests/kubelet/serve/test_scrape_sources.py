"""Who may scrape."""

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.scrape_sources import GUESTS, is_allowed
from applecart.tart.guest_connection import bridge_networks
from tests.tart.test_guest_connection import IFCONFIG


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("10.1.2.3", True),
        ("172.31.0.1", True),
        ("192.168.1.7", True),
        ("100.100.1.1", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:10.0.0.1", True),
        ("fe80::1%en0", True),
        ("fd00::1", True),
        ("8.8.8.8", False),
        ("172.32.0.1", False),
        ("2001:db8::1", False),
        ("", False),
        ("not an address", False),
    ],
)
def test_private_networks_may_scrape(source: str, expected: bool) -> None:
    """Incident 40: for a while a host forwarded the metrics of its guests to the whole internet."""
    assert is_allowed(source) is expected


@pytest.mark.parametrize("source", ["192.168.64.2", "192.168.67.255", "::ffff:192.168.65.9"])
def test_a_guest_may_not_scrape_another(source: str) -> None:
    """Weakness 29: the allowed private networks held the network of the guests themselves."""
    assert not is_allowed(source)
    assert not is_allowed(source, [ip_network("192.168.64.0/24"), ip_network("0.0.0.0/0")])


@given(st.integers(int(GUESTS.network_address), int(GUESTS.broadcast_address)))
def test_no_guest_at_all(number: int) -> None:
    assert not is_allowed(str(IPv4Address(number)))


@pytest.mark.parametrize("source", ["fd12:3456:789a:1::5", "fe80::42", "fe80::42%bridge100"])
def test_what_is_refused_wins_over_what_is_allowed(source: str) -> None:
    """Over IPv6 guests have addresses that differ from host to host, all of them in networks that are allowed by default."""
    refused = bridge_networks(IFCONFIG)
    assert is_allowed(source)
    assert not is_allowed(source, refused=refused)
    assert is_allowed("fd7a:115c:a1e0::1", refused=refused)
    assert is_allowed("10.0.0.9", refused=refused)


def test_given_networks_replace_the_default() -> None:
    allowed = [ip_network("203.0.113.0/24")]
    assert is_allowed("203.0.113.9", allowed)
    assert not is_allowed("10.0.0.1", allowed)


@given(st.text())
def test_any_text_is_allowed_or_not(source: str) -> None:
    is_allowed(source)
