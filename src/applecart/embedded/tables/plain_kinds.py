"""Kinds whose rows are a few members and the age: one function each, and nothing to decide."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import AGE_TEXT, NAME, BuiltInTable

NOT_SET = "N/A"  # of a disruption budget, which has one of two limits


def _namespace(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    phase = (obj.get("status") or {}).get("phase") or ""
    return [metadata.get("name", ""), phase, age(metadata.get("creationTimestamp"), now)]


def _secret(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    # Only how many members there are: a table must never show a value.
    members = len(obj.get("data") or ())
    return [metadata.get("name", ""), obj.get("type") or "", members, age(metadata.get("creationTimestamp"), now)]


def _config_map(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    members = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [metadata.get("name", ""), members, age(metadata.get("creationTimestamp"), now)]


def _service_account(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [metadata.get("name", ""), age(metadata.get("creationTimestamp"), now)]


def _lease(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    holder = (obj.get("spec") or {}).get("holderIdentity") or ""
    return [metadata.get("name", ""), holder, age(metadata.get("creationTimestamp"), now)]


def _runtime_class(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [metadata.get("name", ""), obj.get("handler") or "", age(metadata.get("creationTimestamp"), now)]


def _priority_class(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [
        metadata.get("name", ""),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        age(metadata.get("creationTimestamp"), now),
        obj.get("preemptionPolicy") or "",
    ]


def _disruption_budget(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limits = [spec.get("minAvailable"), spec.get("maxUnavailable")]
    return [
        metadata.get("name", ""),
        *(NOT_SET if limit is None else str(limit) for limit in limits),
        (obj.get("status") or {}).get("disruptionsAllowed") or 0,
        age(metadata.get("creationTimestamp"), now),
    ]


NAMESPACES = BuiltInTable((NAME, Column("Status", description="Active or Terminating."), AGE_TEXT), _namespace)
SECRETS = BuiltInTable(
    (
        NAME,
        Column("Type", description="What the Secret is for."),
        Column("Data", description="How many members it has."),
        AGE_TEXT,
    ),
    _secret,
)
CONFIG_MAPS = BuiltInTable((NAME, Column("Data", description="How many members it has."), AGE_TEXT), _config_map)
SERVICE_ACCOUNTS = BuiltInTable((NAME, AGE_TEXT), _service_account)
LEASES = BuiltInTable((NAME, Column("Holder", description="Who holds the Lease."), AGE_TEXT), _lease)
RUNTIME_CLASSES = BuiltInTable((NAME, Column("Handler", description="What runs Pods of this class."), AGE_TEXT), _runtime_class)
PRIORITY_CLASSES = BuiltInTable(
    (
        NAME,
        Column("Value", type="integer", description="Priority of Pods of this class; higher goes first."),
        Column("Global-Default", type="boolean", description="Whether Pods without a class get this one."),
        AGE_TEXT,
        Column("PreemptionPolicy", description="Whether Pods of this class may push others away."),
    ),
    _priority_class,
)
DISRUPTION_BUDGETS = BuiltInTable(
    (
        NAME,
        Column("Min Available", description="How many Pods must stay."),
        Column("Max Unavailable", description="How many Pods may be missing."),
        Column("Allowed Disruptions", type="integer", description="How many Pods may be evicted now."),
        AGE_TEXT,
    ),
    _disruption_budget,
)
