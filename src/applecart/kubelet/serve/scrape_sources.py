"""Who may scrape a guest's metrics through its host: addresses of private networks, never those of guests. Pure.

The private networks hold the guests' own too: a job in one VM could read what another one exports. So the network of guests
is refused whatever is allowed (a guest has no business on this port; its host's scraper never comes from there). Over IPv4 that
network is known beforehand. Over IPv6 it is another on every host: who listens on an IPv6 address must give it as `refused`,
or `PRIVATE_IPV6` where it cannot be known.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

DEFAULT_ALLOWED: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "127.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
        "::1/128",
    )
)
PRIVATE_IPV6 = (IPv6Network("fc00::/7"), IPv6Network("fe80::/10"))
GUESTS = IPv4Network("192.168.64.0/22")  # vmnet takes the first free /24 of these for its guests


def is_allowed(source: str, allowed: Sequence[Network] = DEFAULT_ALLOWED, refused: Sequence[Network] = ()) -> bool:
    """Whether an address, as a connection shows it, may scrape. What is no address may not."""
    try:
        address = ip_address(source.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address in GUESTS or any(address in network for network in refused):
        return False
    return any(address in network for network in allowed)
