"""The small kinds of core/v1: Secret, ConfigMap, ServiceAccount, Namespace, Service.

A Secret never shows its values: not in repr, and not through the annotation in which `kubectl apply` keeps a copy of the
whole manifest (I9). `Secret.value` is the way to one value, as a type that cannot be printed.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from msgspec import field

from applecart import secrets
from applecart.api.containers import IntOrString
from applecart.api.meta import Object, Part, Resource
from applecart.api.pods import LocalReference, ObjectReference
from applecart.errors import BadInput

OPAQUE = "Opaque"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"


class Secret(Object):
    resource = Resource("", "v1", "Secret", "secrets")

    type: str = ""
    data: dict[str, str] = {}  # base64
    immutable: bool | None = None

    def value(self, key: str) -> secrets.Secret | None:
        """The decoded value under a key, None when there is none."""
        encoded = self.data.get(key)
        if encoded is None:
            return None
        try:
            return secrets.Secret(base64.b64decode(encoded, validate=True).decode())
        except (binascii.Error, UnicodeDecodeError):
            raise BadInput(
                f"key {key!r} of Secret {self.key} holds no text; write the value again as base64 of UTF-8 text"
            ) from None

    def __repr__(self) -> str:
        return f"Secret({str(self.key)!r}, type={self.type!r}, keys={sorted(self.data)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("key", str(self.key)), ("type", self.type), ("keys", sorted(self.data))]


def secret_data(values: Mapping[str, secrets.Secret]) -> dict[str, str]:
    """Values as the `data` of a Secret that is about to be sent to the API, and for nothing else."""
    return {key: base64.b64encode(value.reveal().encode()).decode() for key, value in values.items()}


class ConfigMap(Object):
    resource = Resource("", "v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}  # base64
    immutable: bool | None = None


class ServiceAccount(Object):
    resource = Resource("", "v1", "ServiceAccount", "serviceaccounts")

    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalReference, ...] = ()
    secrets: tuple[ObjectReference, ...] = ()


class NamespaceSpec(Part):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Part):
    phase: str = ""


class Namespace(Object):
    resource = Resource("", "v1", "Namespace", "namespaces", namespaced=False)

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ServicePort(Part):
    port: int
    name: str = ""
    protocol: str | None = None  # the API's default is TCP
    target_port: IntOrString | None = None
    node_port: int = 0


class ServiceSpec(Part):
    type: str | None = None  # the API's default is ClusterIP
    external_name: str = ""
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] = field(default=(), name="clusterIPs")


class Service(Object):
    resource = Resource("", "v1", "Service", "services")

    spec: ServiceSpec = ServiceSpec()
