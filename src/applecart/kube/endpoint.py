"""Which API server to speak to, and where each part of that answer was written.

An `Endpoint` is the same whether a kubeconfig or a Pod's environment named the server. The `*_from` texts say which file and
field a person must change; they end up in error sentences, so they never hold a value.
"""

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from applecart.errors import BadInput

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    server: str  # without a slash at the end; may have a path, as servers behind Rancher do
    server_from: str  # 'field server of cluster "prod" in /home/ci/.kube/config'
    ca_pem: str = ""  # empty: the machine's own trust store
    ca_from: str = ""
    tls_server_name: str = ""
    tls_server_name_from: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    proxy_from: str = ""
    disable_compression: bool = False
    namespace: str = "default"

    @property
    def is_https(self) -> bool:
        return self.server.startswith("https://")


def checked_url(url: str, written_in: str, example: str) -> str:
    """The URL if a client can use it; else a sentence about the field it was written in."""
    try:
        parts = urlsplit(url)
        port_is_usable = parts.port is None or parts.port > 0
    except ValueError:
        raise BadInput(f"{written_in} is no URL; write it like {example}") from None
    if parts.scheme not in ("http", "https"):
        raise BadInput(f"{written_in} does not start with https:// or http://; write it like {example}")
    if parts.username is not None or parts.password is not None:
        raise BadInput(f"{written_in} holds a user name or password, which would show in logs; remove it from the URL")
    if not _is_host(parts.hostname or "") or not port_is_usable:
        raise BadInput(f"{written_in} names no usable host and port; write it like {example}")
    if parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise BadInput(f"{written_in} holds more than a host, a port and a path; write it like {example}")
    return url.rstrip("/")


def _is_host(host: str) -> bool:
    if _HOST_NAME.fullmatch(host):
        return True
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


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
