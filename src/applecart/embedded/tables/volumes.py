"""PersistentVolumes and their claims as rows."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import AGE_TEXT, NAME, UNSET, BuiltInTable

_CAPACITY = Column("Capacity", description="Size of the volume.")
_ACCESS_MODES = Column("Access Modes", description="By how many Nodes it may be used, and how.")
_STORAGE_CLASS = Column("StorageClass", description="Class it belongs to.")
_ATTRIBUTES_CLASS = Column("VolumeAttributesClass", description="Class of its changeable attributes.")
_STATUS = Column("Status", description="Phase it is in.")
_VOLUME_MODE = Column("VolumeMode", description="Filesystem or Block.", priority=1)

VOLUME_COLUMNS = (
    NAME,
    _CAPACITY,
    _ACCESS_MODES,
    Column("Reclaim Policy", description="What becomes of the volume when its claim is gone."),
    _STATUS,
    Column("Claim", description="The claim it is bound to."),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    Column("Reason", description="Why it is in this phase, in one word."),
    AGE_TEXT,
    _VOLUME_MODE,
)
CLAIM_COLUMNS = (
    NAME,
    _STATUS,
    Column("Volume", description="The volume it is bound to."),
    _CAPACITY,
    _ACCESS_MODES,
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    AGE_TEXT,
    _VOLUME_MODE,
)

OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def volume_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        metadata.get("name", ""),
        _size(spec.get("capacity")),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(metadata, status),
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim is not None else "",
        _class(metadata, spec),
        _or_unset(spec, "volumeAttributesClassName"),
        status.get("reason") or "",
        age(metadata.get("creationTimestamp"), now),
        _or_unset(spec, "volumeMode"),
    ]


def claim_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    volume = spec.get("volumeName") or ""
    return [
        metadata.get("name", ""),
        _phase(metadata, status),
        volume,
        _size(status.get("capacity")) if volume else "",
        _modes(status) if volume else "",
        _class(metadata, spec),
        _or_unset(spec, "volumeAttributesClassName"),
        age(metadata.get("creationTimestamp"), now),
        _or_unset(spec, "volumeMode"),
    ]


def _phase(metadata: dict[str, Any], status: dict[str, Any]) -> str:
    return "Terminating" if metadata.get("deletionTimestamp") else status.get("phase") or ""


def _size(capacity: dict[str, Any] | None) -> str:
    return str((capacity or {}).get("storage", "0"))


def _modes(holder: dict[str, Any]) -> str:
    present = holder.get("accessModes") or ()
    return ",".join(short for mode, short in SHORT_MODES.items() if mode in present)


def _class(metadata: dict[str, Any], spec: dict[str, Any]) -> str:
    annotations = metadata.get("annotations") or {}
    return str(annotations.get(OLD_CLASS_ANNOTATION, spec.get("storageClassName") or ""))


def _or_unset(spec: dict[str, Any], member: str) -> str:
    value = spec.get(member)
    return UNSET if value is None else str(value)


PERSISTENT_VOLUMES = BuiltInTable(VOLUME_COLUMNS, volume_row)
PERSISTENT_VOLUME_CLAIMS = BuiltInTable(CLAIM_COLUMNS, claim_row)
