"""Services: stored for those who read them. Nobody allocates addresses or moves packets here.

Validation is light: ports, names and addresses. A Service without a `clusterIP` keeps none.
"""

from typing import Any

from applecart.embedded.field_errors import FieldError, duplicate, invalid, required
from applecart.embedded.kinds.names import PROTOCOLS, family_of, label_problems, validate_choice, validate_labels, validate_port
from applecart.embedded.kinds.strategy import Document, Strategy

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")


class ServiceStrategy(Strategy):
    has_status = True
    status_takes_metadata = True
    creates_on_update = True
    name_problems = staticmethod(label_problems)

    def default(self, obj: Document) -> None:
        spec = obj.setdefault("spec", {})
        for name, value in (("type", "ClusterIP"), ("sessionAffinity", "None")):
            if not spec.get(name):
                spec[name] = value
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port") or 0
        if spec["type"] != "ExternalName" and not spec.get("internalTrafficPolicy"):
            spec["internalTrafficPolicy"] = "Cluster"
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_create(self, obj: Document) -> None:
        obj["status"] = {"loadBalancer": {}}
        _settle_addresses(obj["spec"])

    def prepare_update(self, obj: Document, old: Document) -> None:
        super().prepare_update(obj, old)
        _settle_addresses(obj["spec"])

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        ports = spec.get("ports") or []
        if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
            errors.append(required("spec.ports"))
        validate_choice(spec["type"], "spec.type", _TYPES, errors)
        _validate_ports(ports, errors)
        validate_labels(spec.get("selector"), "spec.selector", errors)
        validate_choice(spec["sessionAffinity"], "spec.sessionAffinity", _AFFINITIES, errors)
        return errors


def _settle_addresses(spec: dict[str, Any]) -> None:
    """What follows from the address is the server's to say, so no caller owns it."""
    if address := spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [address])
        spec.setdefault("ipFamilies", ["IPv6" if family_of(address) == 6 else "IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")


def _validate_ports(ports: list[dict[str, Any]], errors: list[FieldError]) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name") or ""
        if len(ports) > 1 and not name:
            errors.append(required(f"{at}.name"))
        elif name:
            errors += [invalid(f"{at}.name", name, problem) for problem in label_problems(name)]
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
        validate_port(port.get("port") or 0, f"{at}.port", errors)
        validate_choice(port["protocol"], f"{at}.protocol", PROTOCOLS, errors)
        validate_port(port["targetPort"], f"{at}.targetPort", errors)
