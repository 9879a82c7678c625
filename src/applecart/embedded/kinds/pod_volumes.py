"""Volumes of a Pod, where containers mount them, and the Pod's own fields as files and variables (the downward API).

Covers the sources that make sense without storage drivers. Other sources are stored as they are: nothing here mounts them.
"""

import re
from collections.abc import Callable
from typing import Any

from applecart.api.quantity import quantity_of
from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import (
    annotation_key_problems,
    label_problems,
    qualified_name_problems,
    validate_choice,
    validate_name,
)

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
MODE_SAID = "must be a number between 0 and 0777 (octal), both inclusive"
TOKEN_MIN_S = 600
TOKEN_MAX_S = 2**32
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_SOURCES = ("emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
Check = Callable[[dict[str, Any], str, list[FieldError]], None]
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


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
    amount = quantity_of(divisor)
    if amount.nanos == 0:
        return
    what = resource.partition(".")[2]
    if what == "cpu" and amount.canonical not in _CPU_DIVISORS:
        errors.append(invalid(at, resource, "only divisor's values 1m and 1 are supported with the cpu resource"))
    subject = _OF_SIZES.get(what) or ("hugepages" if what.startswith("hugepages-") else "")
    if subject and amount.canonical not in _SIZES:
        text = f"only divisor's values {', '.join(_SIZES)} are supported with the {subject} resource"
        errors.append(invalid(at, resource, text))


def validate_volumes(volumes: list[dict[str, Any]], path: str, errors: list[FieldError]) -> set[str]:
    """The names that containers may mount: those of volumes without a problem."""
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        problems: list[FieldError] = []
        _validate_source(volume, at, problems)
        name = volume.get("name") or ""
        validate_name(name, f"{at}.name", label_problems, problems)
        if name in names:
            problems.append(duplicate(f"{at}.name", name))
        if problems:
            errors += problems
        else:
            names.add(name)
    return names


def _validate_source(volume: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if len(sources) > 1:
        # The first source counts, the others are too many: a real server asks for them in this order.
        sources.sort(key=lambda source: _SOURCES.index(source) if source in _SOURCES else len(_SOURCES))
    if not sources:
        errors.append(required(at, "must specify a volume type"))
    for extra in sources[1:]:
        errors.append(forbidden(f"{at}.{extra}", "may not specify more than 1 volume type"))
    for source in sources[:1]:
        if (check := _CHECKS.get(source)) is not None:
            check(volume[source], f"{at}.{source}", errors)


def _empty_dir(source: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity_of(limit).nanos < 0:
        errors.append(forbidden(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _host_path(source: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    path = source.get("path") or ""
    if not path:
        errors.append(required(f"{at}.path"))
        return
    _no_backsteps(path, f"{at}.path", errors)
    if (kind := source.get("type")) is not None:
        validate_choice(kind, f"{at}.type", _HOST_PATH_TYPES, errors)


def _named(member: str) -> Check:
    """A source that names what it refers to, and may say which files become of it."""

    def check(source: dict[str, Any], at: str, errors: list[FieldError]) -> None:
        if not source.get(member):
            errors.append(required(f"{at}.{member}"))
        _mode(source.get("defaultMode"), f"{at}.defaultMode", errors)
        _items(source, at, errors)

    return check


def _downward(source: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    _mode(source.get("defaultMode"), f"{at}.defaultMode", errors)
    for item in source.get("items") or ():
        _downward_file(item, at, errors)


def _projected(source: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    _mode(source.get("defaultMode"), f"{at}.defaultMode", errors)
    paths: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{at}.sources[{index}]"
        for kind in ("secret", "configMap"):
            one = projection.get(kind)
            if one is None:
                continue
            if not one.get("name"):
                errors.append(required(f"{here}.{kind}.name"))
            for item in _items(one, f"{here}.{kind}", errors):
                _claim_path(item, one.get("name") or "", paths, at, errors)
        for item in (projection.get("downwardAPI") or {}).get("items") or ():
            _downward_file(item, f"{here}.downwardAPI", errors)
            _claim_path(item.get("path") or "", item.get("path") or "", paths, at, errors)
        if (token := projection.get("serviceAccountToken")) is not None:
            _token(token, at, f"{here}.serviceAccountToken", errors)
        if sum(1 for value in projection.values() if value is not None) > 1:
            errors.append(forbidden(here, "may not specify more than 1 volume type per source"))


def _token(token: dict[str, Any], at: str, here: str, errors: list[FieldError]) -> None:
    seconds = token.get("expirationSeconds") or 0
    if seconds < TOKEN_MIN_S:
        errors.append(invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > TOKEN_MAX_S:
        errors.append(invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.get("path"):
        errors.append(required(f"{at}.path"))
    else:
        _local_path(token["path"], f"{at}.path", errors)


def _claim_path(path: str, shown: str, paths: set[str], at: str, errors: list[FieldError]) -> None:
    if path and path in paths:
        errors.append(invalid(at, shown, "conflicting duplicate paths"))
    paths.add(path)


def _items(source: dict[str, Any], at: str, errors: list[FieldError]) -> list[str]:
    """Keys and the paths they are written to; answers the paths."""
    paths = []
    for index, item in enumerate(source.get("items") or ()):
        here = f"{at}.items[{index}]"
        path = item.get("path") or ""
        if not item.get("key"):
            errors.append(required(f"{here}.key"))
        if not path:
            errors.append(required(f"{here}.path"))
        _local_path(path, f"{here}.path", errors)
        _mode(item.get("mode"), f"{here}.mode", errors)
        paths.append(path)
    return paths


def _downward_file(item: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    path = item.get("path") or ""
    if not path:
        errors.append(required(f"{at}.path"))
    _local_path(path, f"{at}.path", errors)
    if item.get("fieldRef") is not None:
        validate_field_ref(item["fieldRef"], VOLUME_FIELDS, f"{at}.fieldRef", errors)
        if item.get("resourceFieldRef") is not None:
            errors.append(invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
    elif item.get("resourceFieldRef") is not None:
        validate_resource_field_ref(item["resourceFieldRef"], f"{at}.resourceFieldRef", errors, is_volume=True)
    else:
        errors.append(required(at, "one of fieldRef and resourceFieldRef is required"))
    _mode(item.get("mode"), f"{at}.mode", errors)


def _mode(mode: int | None, at: str, errors: list[FieldError]) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        errors.append(invalid(at, mode, MODE_SAID))


def _no_backsteps(path: str, at: str, errors: list[FieldError]) -> None:
    if ".." in path and ".." in path.split("/"):
        errors.append(invalid(at, path, "must not contain '..'"))


def descending_path(path: str, at: str, errors: list[FieldError]) -> None:
    if path.startswith("/"):
        errors.append(invalid(at, path, "must be a relative path"))
    _no_backsteps(path, at, errors)


def _local_path(path: str, at: str, errors: list[FieldError]) -> None:
    descending_path(path, at, errors)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(at, path, "must not start with '..'"))


_CHECKS = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _named("secretName"),
    "configMap": _named("name"),
    "downwardAPI": _downward,
    "persistentVolumeClaim": _named("claimName"),
    "projected": _projected,
}


def validate_mounts(container: dict[str, Any], volumes: set[str], path: str, errors: list[FieldError]) -> None:
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(FieldError("NotFound", f"{at}.name", value=name))
        if not where:
            errors.append(required(f"{at}.mountPath"))
        if where in taken:
            errors.append(invalid(f"{at}.mountPath", where, "must be unique"))
        taken.add(where)
        if len(mount) > 2:
            _validate_mount_options(mount, container, path, at, errors)


def _validate_mount_options(
    mount: dict[str, Any], container: dict[str, Any], path: str, at: str, errors: list[FieldError]
) -> None:
    """A real server reports some of these at the list instead of the item; so do we."""
    sub_path, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if sub_path:
        descending_path(sub_path, f"{path}.subPath", errors)
    if expression:
        if sub_path:
            errors.append(invalid(f"{at}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"))
        descending_path(expression, f"{path}.subPathExpr", errors)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        here = f"{path}.mountPropagation"
        validate_choice(propagation, here, _PROPAGATIONS, errors)
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            errors.append(forbidden(here, "Bidirectional mount propagation is available only to privileged containers"))
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None and recursive != "Disabled":
        here = f"{path}.recursiveReadOnly"
        if recursive not in _RECURSIVE:
            errors.append(not_supported(here, recursive, _RECURSIVE))
            return
        if not mount.get("readOnly"):
            errors.append(forbidden(here, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            errors.append(forbidden(here, "may only be specified when mountPropagation is None or not specified"))
