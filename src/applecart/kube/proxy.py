"""Which HTTP proxy, if any, stands between us and the API server.

A kubeconfig's proxy-url decides; without it the usual variables do, with Go's reading of NO_PROXY (host names, suffixes,
addresses, networks, `*`) because that is what the same machine's kubectl follows. Reads nothing but its arguments.
"""

import contextlib
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from applecart.kube.endpoint import Endpoint


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL. It may hold a password: never show it."""
    if endpoint.proxy_url:
        return endpoint.proxy_url
    parts = urlsplit(endpoint.server)
    variable = f"{parts.scheme}_proxy"
    proxy = environ.get(variable) or environ.get(variable.upper()) or ""
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if not proxy or _is_exempt(parts.hostname or "", parts.port, exempt):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_exempt(host: str, port: int | None, exempt: str) -> bool:
    address = None
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(host, port, address, rule.strip().lower()) for rule in exempt.split(",") if rule.strip())


def _matches(host: str, port: int | None, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, rule: str) -> bool:
    if rule == "*":
        return True
    if address is not None:
        with contextlib.suppress(ValueError):
            return address in ipaddress.ip_network(rule, strict=False)
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdigit():
        if port != int(rule_port):
            return False
        rule = name
    rule = rule.removeprefix("*")
    return host.endswith(rule) if rule.startswith(".") else host == rule or host.endswith(f".{rule}")
