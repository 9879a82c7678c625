"""CustomResourceDefinition: the kinds an API server is taught.

`crd.py` makes ours; the embedded API server serves whatever definitions it is given. Schemas stay plain JSON values: their
vocabulary is Kubernetes', and only `schema.py` and `structural.py` look inside.
"""

from datetime import datetime
from typing import Any

from msgspec import field

from applecart.api.meta import Object, Part, Resource


class CustomResourceNames(Part):
    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class PrinterColumn(Part):
    """A column of `kubectl get`; a priority above 0 shows it with `-o wide` only."""

    name: str
    type: str
    json_path: str = field(name="jsonPath")
    description: str = ""
    format: str = ""
    priority: int = 0


class ScaleSubresource(Part):
    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class Subresources(Part):
    """`status` is an empty object when the subresource is on."""

    status: dict[str, Any] | None = None
    scale: ScaleSubresource | None = None


class VersionSchema(Part):
    open_api_v3_schema: dict[str, Any] | None = field(default=None, name="openAPIV3Schema")


class SelectableField(Part):
    json_path: str = field(name="jsonPath")


class CustomResourceVersion(Part):
    name: str
    served: bool
    storage: bool
    schema: VersionSchema | None = None
    subresources: Subresources | None = None
    additional_printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[SelectableField, ...] = ()
    deprecated: bool = False
    deprecation_warning: str | None = None


class ServiceReference(Part):
    namespace: str
    name: str
    path: str | None = None
    port: int | None = None


class WebhookClient(Part):
    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str = ""


class WebhookConversion(Part):
    conversion_review_versions: tuple[str, ...]
    client_config: WebhookClient | None = None


class Conversion(Part):
    strategy: str
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Part):
    group: str
    names: CustomResourceNames
    scope: str
    versions: tuple[CustomResourceVersion, ...]
    conversion: Conversion | None = None
    preserve_unknown_fields: bool = False


class CustomResourceCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class CustomResourceDefinitionStatus(Part):
    """Lists may be null on the wire."""

    conditions: tuple[CustomResourceCondition, ...] | None = None
    accepted_names: CustomResourceNames | None = None
    stored_versions: tuple[str, ...] | None = None
    observed_generation: int | None = None


class CustomResourceDefinition(Object, kw_only=True):
    resource = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

    spec: CustomResourceDefinitionSpec
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()

    @property
    def is_established(self) -> bool:
        """The API server serves the kind."""
        return any(c.type == "Established" and c.status == "True" for c in self.status.conditions or ())
