"""Security contexts: who a Pod and its containers run as."""

from typing import Any

from applecart.embedded.field_errors import FieldError, invalid, not_supported, required
from applecart.embedded.kinds.pod_volumes import descending_path

ID_MAX = 2**31 - 1
ID_SAID = f"must be between 0 and {ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_GROUP_CHANGES = ("Always", "OnRootMismatch")


def validate_pod_security_context(context: dict[str, Any], spec: dict[str, Any], errors: list[FieldError]) -> None:
    at = "spec.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        _validate_id(context.get(name), f"{at}.{name}", errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _validate_id(group, f"{at}.supplementalGroups[{index}]", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{at}.shareProcessNamespace", True, text))
    change = context.get("fsGroupChangePolicy")
    if change is not None and change not in _GROUP_CHANGES:
        errors.append(not_supported(f"{at}.fsGroupChangePolicy", change, _GROUP_CHANGES))
    _validate_seccomp(context.get("seccompProfile"), f"{at}.seccompProfile", errors)


def validate_security_context(context: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for name in ("runAsUser", "runAsGroup"):
        _validate_id(context.get(name), f"{at}.{name}", errors)
    _validate_seccomp(context.get("seccompProfile"), f"{at}.seccompProfile", errors)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(at, context, text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(at, context, text))


def _validate_id(number: int | None, at: str, errors: list[FieldError]) -> None:
    if number is not None and not 0 <= number <= ID_MAX:
        errors.append(invalid(at, number, ID_SAID))


def _validate_seccomp(profile: dict[str, Any] | None, at: str, errors: list[FieldError]) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{at}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            errors.append(required(f"{at}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            descending_path(local, f"{at}.localhostProfile", errors)
    elif local is not None:
        errors.append(invalid(f"{at}.localhostProfile", profile, "can only be set when seccomp type is Localhost"))
