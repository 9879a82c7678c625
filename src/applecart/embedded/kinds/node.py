"""Nodes and Leases, by which agents and leaders show that they live.

A Node's status carries metadata with it, its taints make sense, its identity stays. A holder that finds no Lease creates it by
updating, and must name the revision it saw.
"""

from typing import Any

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import NEGATIVE, label_value_problems, qualified_name_problems
from applecart.embedded.kinds.pod_admission import NOT_READY
from applecart.embedded.kinds.pod_spec import EFFECTS
from applecart.embedded.kinds.resources import amount_of
from applecart.embedded.kinds.strategy import Document, Strategy, keep
from applecart.embedded.structure.types import struct_of
from applecart.embedded.structure.walk import zero_struct

FIXED_CIDR_SAID = 'node updates may not change podCIDR except from "" to valid'
FIXED_PROVIDER_SAID = 'node updates may not change providerID except from "" to valid'
_INFO = struct_of("core/v1.NodeSystemInfo")
_CANDIDACY = ("strategy", "preferredHolder")  # of an election by the server, which is off everywhere by default


class NodeStrategy(Strategy):
    has_status = True
    status_takes_metadata = True

    def default(self, obj: Document) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]
        status = obj.setdefault("status", {})
        if status.get("allocatable") is None and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
        status["nodeInfo"] = {**zero_struct(_INFO), **status.get("nodeInfo", {})}

    def prepare_create(self, obj: Document) -> None:
        """An agent registers its Node with a status. Nothing may land there before the Node was seen ready."""
        taints = obj["spec"].get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            obj["spec"]["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]

    def prepare_status(self, obj: Document, old: Document) -> None:
        keep(obj, old, "spec")

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        _validate_taints(obj["spec"].get("taints") or [], errors)
        _validate_amounts(obj.get("status") or {}, errors)
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        _validate_addresses((obj.get("status") or {}).get("addresses") or [], errors)
        spec, was = obj["spec"], old.get("spec") or {}
        if was.get("podCIDRs") and was["podCIDRs"] != spec.get("podCIDRs"):
            errors.append(forbidden("spec.podCIDRs", FIXED_CIDR_SAID))
        if was.get("providerID") and was["providerID"] != spec.get("providerID"):
            errors.append(forbidden("spec.providerID", FIXED_PROVIDER_SAID))
        return errors

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        _validate_amounts(obj.get("status") or {}, errors)
        _validate_addresses((obj.get("status") or {}).get("addresses") or [], errors)
        return errors

    def fields(self, obj: Document) -> dict[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def _validate_taints(taints: list[dict[str, Any]], errors: list[FieldError]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        # A real server names the wrong parent here, and clients know the text.
        at = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name_problems(key)]
        if problems := label_value_problems(value):
            errors.append(invalid(f"{at}.value", value, ";".join(problems)))
        if not effect:
            errors.append(required(f"{at}.effect"))
        elif effect not in EFFECTS:
            errors.append(not_supported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            errors.append(FieldError("Duplicate", at, "taints must be unique by key and effect pair", taint))
        seen.add((key, effect))


def _validate_amounts(status: dict[str, Any], errors: list[FieldError]) -> None:
    for group in ("capacity", "allocatable"):
        for name, value in (status.get(group) or {}).items():
            amount_of(value, f"status.{group}.{name}", name, errors)


def _validate_addresses(addresses: list[dict[str, Any]], errors: list[FieldError]) -> None:
    seen: list[dict[str, Any]] = []
    for index, address in enumerate(addresses):
        if address in seen:
            errors.append(duplicate(f"status.addresses[{index}]", address))
        seen.append(address)


class LeaseStrategy(Strategy):
    creates_on_update = True
    updates_unconditionally = False
    names_finalizers_freely = True

    def default(self, obj: Document) -> None:
        if obj.get("spec") is None:
            obj["spec"] = {}

    def prepare_create(self, obj: Document) -> None:
        for name in _CANDIDACY:
            obj["spec"].pop(name, None)

    def prepare_update(self, obj: Document, old: Document) -> None:
        self.prepare_create(obj)

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration_s is not None and duration_s <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, NEGATIVE))
        return errors
