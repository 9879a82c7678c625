"""Probes and lifecycle hooks of a container."""

from typing import Any

from applecart.embedded.field_errors import FieldError, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import header_name_problems, port_name_problems

NEGATIVE = "must be greater than or equal to 0"
PORT_SAID = "must be between 1 and 65535, inclusive"
_SCHEMES = ("HTTP", "HTTPS")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate_probes(container: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _validate_probe(name, probe, spec, f"{at}.{name}", errors)


def _validate_probe(name: str, probe: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    _validate_handler(probe, spec, at, errors)
    for count in _COUNTS:
        value = probe.get(count) or 0
        if value < 0:
            errors.append(invalid(f"{at}.{count}", value, NEGATIVE))
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        errors.append(invalid(f"{at}.terminationGracePeriodSeconds", grace_s, "must be greater than 0"))
    if name == "readinessProbe":
        if grace_s is not None:
            errors.append(invalid(f"{at}.terminationGracePeriodSeconds", grace_s, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        errors.append(invalid(f"{at}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))


def validate_lifecycle(lifecycle: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            _validate_handler(lifecycle[hook], spec, f"{at}.{hook}", errors)
    if lifecycle.get("stopSignal") is not None and not spec.get("os"):
        errors.append(forbidden(f"{at}.stopSignal", "may not be set for containers with empty `spec.os.name`"))


def _validate_handler(handler: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    said = [name for name in _HANDLERS if handler.get(name) is not None]
    if not said:
        errors.append(required(at, "must specify a handler type"))
        return
    first = said[0]
    action, here = handler[first], f"{at}.{first}"
    if first == "exec":
        if not action.get("command"):
            errors.append(required(f"{here}.command"))
    elif first == "httpGet":
        _validate_http(action, here, errors)
    elif first == "sleep":
        _validate_sleep(action.get("seconds") or 0, spec.get("terminationGracePeriodSeconds"), here, errors)
    else:
        _validate_port(action.get("port", 0), f"{here}.port", errors)
    errors += [forbidden(f"{at}.{name}", "may not specify more than 1 handler type") for name in said[1:]]


def _validate_http(action: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    if not action.get("path"):
        errors.append(required(f"{at}.path"))
    _validate_port(action.get("port", 0), f"{at}.port", errors)
    if action.get("scheme") not in _SCHEMES:
        errors.append(not_supported(f"{at}.scheme", action.get("scheme"), _SCHEMES))
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        errors += [invalid(f"{at}.httpHeaders", name, problem) for problem in header_name_problems(name)]


def _validate_sleep(seconds: int, grace_s: int | None, at: str, errors: list[FieldError]) -> None:
    if grace_s is not None and not 0 <= seconds <= grace_s:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        errors.append(invalid(at, seconds, text))


def _validate_port(port: Any, at: str, errors: list[FieldError]) -> None:
    """A number, or the name of a port of the container."""
    if isinstance(port, str):
        errors += [invalid(at, port, problem) for problem in port_name_problems(port)]
    elif not isinstance(port, int) or not 0 < port < 65536:
        errors.append(invalid(at, port, PORT_SAID))
