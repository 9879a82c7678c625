"""What a probe asks, and how often: the API's probe with its defaults filled in, or a sentence why it cannot be asked here.

Pure. A guest is asked over `tart exec` or from its host over TCP. What would not be about the guest (another host), or cannot
be asked over a plain connection (HTTPS, grpc), is refused before anything boots: a probe that is skipped in silence makes a
dead guest Ready.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from applecart.api.containers import Container, IntOrString, Probe
from applecart.errors import Permanent

PERIOD_S = 10  # the defaults of the API
TIMEOUT_S = 1
SUCCESSES = 1
FAILURES = 3
HTTP_SUCCESS = range(200, 400)  # as every kubelet counts it: a redirect is an answer
HIGHEST_PORT = 65535
USER_AGENT = "kube-probe/applecart"  # guests that log requests tell probes apart by the first word
# What is outside of these could begin another header, or another request.
_PATH = re.compile(r"/[!-~]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")


class UnsupportedProbe(Permanent):
    """The probe can never be asked of a VM; the text says which and what to write instead."""


class Kind(StrEnum):
    STARTUP = "startup"
    READINESS = "readiness"
    LIVENESS = "liveness"


class ExecCheck(msgspec.Struct, frozen=True):
    command: tuple[str, ...]


class TcpCheck(msgspec.Struct, frozen=True):
    port: int


class HttpCheck(msgspec.Struct, frozen=True):
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]  # a later one replaces an earlier one of its name


Check = ExecCheck | TcpCheck | HttpCheck


class Plan(msgspec.Struct, frozen=True):
    """One probe of a container, ready to be carried out."""

    kind: Kind
    check: Check
    initial_delay_s: int
    period_s: int
    timeout_s: int
    successes: int
    failures: int
    grace_s: int | None  # how long the guest may take to end when this probe ends it; None means as long as the Pod says


def plans(container: Container) -> tuple[Plan, ...]:
    """The probes of the container. Raises `UnsupportedProbe`."""
    return tuple(_plan(kind, probe, container) for kind, probe in _probes(container))


def unsupported_probes(container: Container) -> str | None:
    """Why a Pod with this container can never work here as far as its probes go; None when it can."""
    try:
        plans(container)
    except UnsupportedProbe as refused:
        return str(refused)
    return None


def _probes(container: Container) -> Iterator[tuple[Kind, Probe]]:
    if container.startup_probe:
        yield Kind.STARTUP, container.startup_probe
    if container.readiness_probe:
        yield Kind.READINESS, container.readiness_probe
    if container.liveness_probe:
        yield Kind.LIVENESS, container.liveness_probe


def _plan(kind: Kind, probe: Probe, container: Container) -> Plan:
    return Plan(
        kind,
        _check(f"the {kind} probe of container {container.name}", probe, container),
        initial_delay_s=max(0, probe.initial_delay_seconds),
        period_s=max(1, probe.period_seconds or PERIOD_S),
        timeout_s=max(1, probe.timeout_seconds or TIMEOUT_S),
        # The API accepts nothing but 1 for the other two; a threshold there would only delay what they decide.
        successes=max(1, probe.success_threshold or SUCCESSES) if kind is Kind.READINESS else SUCCESSES,
        failures=max(1, probe.failure_threshold or FAILURES),
        grace_s=probe.termination_grace_period_seconds,
    )


def _check(whose: str, probe: Probe, container: Container) -> Check:
    if probe.exec:
        if not probe.exec.command:
            raise UnsupportedProbe(f"{whose} has an empty exec command; name a program that is inside the image")
        return ExecCheck(probe.exec.command)
    if tcp := probe.tcp_socket:
        _refuse_other_host(whose, "tcpSocket", tcp.host)
        return TcpCheck(_port(whose, tcp.port, container))
    if http := probe.http_get:
        _refuse_other_host(whose, "httpGet", http.host)
        if (http.scheme or "HTTP").upper() != "HTTP":
            raise UnsupportedProbe(
                f"{whose} asks over {http.scheme}, which is not supported for a VM; use scheme HTTP, or an exec probe"
            )
        for header in http.http_headers:
            if not _HEADER_NAME.fullmatch(header.name) or not _HEADER_VALUE.fullmatch(header.value):
                raise UnsupportedProbe(f"{whose} has the header {header.name!r}, whose name or value HTTP does not allow")
        headers = (("User-Agent", USER_AGENT), *((header.name, header.value) for header in http.http_headers))
        return HttpCheck(_port(whose, http.port, container), _path(whose, http.path), headers)
    raise UnsupportedProbe(f"{whose} asks by none of exec, httpGet and tcpSocket; grpc is not supported for a VM")


def _refuse_other_host(whose: str, field: str, host: str) -> None:
    if host:
        raise UnsupportedProbe(
            f"{whose} names the host {host!r}, and an answer from there says nothing about the guest; "
            f"remove {field}.host (for a virtual host, set the header Host)"
        )


def _port(whose: str, port: IntOrString, container: Container) -> int:
    """A number, or the name of one of the container's ports."""
    if isinstance(port, str):
        named = next((it.container_port for it in container.ports if it.name == port), None)
        if named is None and not (port.isascii() and port.isdigit() and len(port) <= len(str(HIGHEST_PORT))):
            raise UnsupportedProbe(f"{whose} names the port {port!r}, and the container has no port of that name")
        port = int(port) if named is None else named
    if not 1 <= port <= HIGHEST_PORT:
        raise UnsupportedProbe(f"{whose} names the port {port}; a port is between 1 and {HIGHEST_PORT}")
    return port


def _path(whose: str, path: str | None) -> str:
    path = path or "/"
    if not path.startswith("/"):
        path = f"/{path}"
    if not _PATH.fullmatch(path):
        raise UnsupportedProbe(f"{whose} has the path {path!r}; percent-encode what is no plain character of a URL")
    return path
