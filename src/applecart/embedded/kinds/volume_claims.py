"""PersistentVolumes and claims: stored for those who read them; nothing binds or mounts them.

No protection finalizer is set, because nobody would ever remove it.
"""

from applecart.embedded.field_errors import FieldError, not_supported, required
from applecart.embedded.kinds.pod_defaults import default_amounts
from applecart.embedded.kinds.resource_names import amount_of
from applecart.embedded.kinds.rules import Document, Rules

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM = ("Delete", "Recycle", "Retain")


class PersistentVolumeRules(Rules):
    has_status = True
    status_takes_metadata = True

    def default(self, obj: Document) -> None:
        spec = obj.setdefault("spec", {})
        default_amounts(spec.get("capacity"))
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        if spec.get("hostPath") is not None and spec["hostPath"].get("type") is None:
            spec["hostPath"]["type"] = ""
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Document) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        _validate_modes(spec.get("accessModes") or [], "spec.accessModes", "", errors)
        if not spec.get("capacity"):
            errors.append(required("spec.capacity"))
        for name, value in (spec.get("capacity") or {}).items():
            amount_of(value, f"spec.capacity[{name}]", name, errors)
        if spec["persistentVolumeReclaimPolicy"] not in _RECLAIM:
            policy = spec["persistentVolumeReclaimPolicy"]
            errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
        return errors


class PersistentVolumeClaimRules(Rules):
    has_status = True
    status_takes_metadata = True

    def default(self, obj: Document) -> None:
        spec = obj.setdefault("spec", {})
        resources = spec.setdefault("resources", {})
        default_amounts(resources.get("requests"))
        default_amounts(resources.get("limits"))
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Document) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        _validate_modes(spec.get("accessModes") or [], "spec.accessModes", "at least 1 access mode is required", errors)
        requests = (spec.get("resources") or {}).get("requests") or {}
        if "storage" not in requests:
            errors.append(required("spec.resources[storage]"))
        for name, value in requests.items():
            amount_of(value, f"spec.resources[{name}]", name, errors)
        return errors


def _validate_modes(modes: list[str], at: str, said: str, errors: list[FieldError]) -> None:
    if not modes:
        errors.append(required(at, said))
    errors += [not_supported(at, mode, _MODES) for mode in modes if mode not in _MODES]
