"""References from a Pod to its own fields and to its containers' resources (the downward API)."""

import re
from typing import Any

from applecart.api.quantity import BadQuantity, quantity_of
from applecart.embedded.field_errors import FieldError, invalid, not_supported, required
from applecart.embedded.kinds.names import annotation_key_problems, qualified_name_problems

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN = {*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = {"1m", "1"}
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_OF_SIZES = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_subscripted = re.compile(r"(.*)\['(.*)'\]", re.DOTALL).fullmatch


def validate_field_ref(ref: dict[str, Any], allowed: tuple[str, ...], at: str, errors: list[FieldError]) -> None:
    version, path = ref.get("apiVersion") or "", ref.get("fieldPath") or ""
    if not version:
        errors.append(required(f"{at}.apiVersion"))
        return
    if not path:
        errors.append(required(f"{at}.fieldPath"))
        return
    found = _subscripted(path)
    if version != "v1":
        text = f"error converting fieldPath: unsupported pod version: {version}"
        errors.append(invalid(f"{at}.fieldPath", path, text))
    elif found is not None and found[1] in ("metadata.annotations", "metadata.labels"):
        check = annotation_key_problems if found[1] == "metadata.annotations" else qualified_name_problems
        key = found[2].lower() if found[1] == "metadata.annotations" else found[2]
        errors += [invalid(at, key, problem) for problem in check(found[2])]
    elif found is not None:
        text = f"error converting fieldPath: field label does not support subscript: {path}"
        errors.append(invalid(f"{at}.fieldPath", path, text))
    elif path not in _KNOWN:
        errors.append(invalid(f"{at}.fieldPath", path, f"error converting fieldPath: field label not supported: {path}"))
    elif path not in allowed:
        errors.append(not_supported(f"{at}.fieldPath", path, allowed))


def validate_resource_field_ref(ref: dict[str, Any], at: str, errors: list[FieldError], *, is_volume: bool) -> None:
    resource = ref.get("resource") or ""
    if is_volume and not ref.get("containerName"):
        errors.append(required(f"{at}.containerName"))
    elif not resource:
        errors.append(required(f"{at}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{at}.resource", resource, _RESOURCES))
    _validate_divisor(resource, ref.get("divisor"), f"{at}.divisor", errors)


def _validate_divisor(resource: str, divisor: Any, at: str, errors: list[FieldError]) -> None:
    if divisor is None:
        return
    try:
        amount = quantity_of(divisor)
    except BadQuantity as error:
        errors.append(invalid(at, divisor, str(error)))
        return
    if amount.nanos == 0:
        return
    what = resource.partition(".")[2]
    if what == "cpu" and amount.canonical not in _CPU_DIVISORS:
        errors.append(invalid(at, resource, "only divisor's values 1m and 1 are supported with the cpu resource"))
    subject = _OF_SIZES.get(what) or ("hugepages" if what.startswith("hugepages-") else "")
    if subject and amount.canonical not in _SIZES:
        text = f"only divisor's values {', '.join(_SIZES)} are supported with the {subject} resource"
        errors.append(invalid(at, resource, text))
