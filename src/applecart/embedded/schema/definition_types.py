"""The types of a CustomResourceDefinition's fields, so that everything after this may rely on them.

A real server refuses a field of the wrong type while it decodes, before any rule is asked; so does `check_types`. Unknown
fields are not its business.
"""

from typing import Any, Literal

import msgspec

from applecart.embedded.refusals import bad_request


class _Part(msgspec.Struct, rename="camel"):
    pass


class _ValidationRule(_Part):
    rule: str | None = None
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None
    field_path: str | None = None
    optional_old_self: bool | None = None


class _Schema(_Part):
    id: str | None = None
    schema_: str | None = msgspec.field(name="$schema", default=None)
    ref: str | None = msgspec.field(name="$ref", default=None)
    description: str | None = None
    type: str | None = None
    format: str | None = None
    title: str | None = None
    maximum: float | None = None
    exclusive_maximum: bool | None = None
    minimum: float | None = None
    exclusive_minimum: bool | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool | None = None
    multiple_of: float | None = None
    enum: list[Any] | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: list[str] | None = None
    items: "_Schema | list[_Schema] | None" = None
    all_of: "list[_Schema] | None" = None
    one_of: "list[_Schema] | None" = None
    any_of: "list[_Schema] | None" = None
    not_: "_Schema | None" = msgspec.field(name="not", default=None)
    properties: "dict[str, _Schema] | None" = None
    additional_properties: "bool | _Schema | None" = None
    pattern_properties: "dict[str, _Schema] | None" = None
    dependencies: "dict[str, _Schema | list[str]] | None" = None
    additional_items: "bool | _Schema | None" = None
    definitions: "dict[str, _Schema] | None" = None
    nullable: bool | None = None
    preserves: bool | None = msgspec.field(name="x-kubernetes-preserve-unknown-fields", default=None)
    embedded: bool | None = msgspec.field(name="x-kubernetes-embedded-resource", default=None)
    int_or_string: bool | None = msgspec.field(name="x-kubernetes-int-or-string", default=None)
    list_keys: list[str] | None = msgspec.field(name="x-kubernetes-list-map-keys", default=None)
    list_type: str | None = msgspec.field(name="x-kubernetes-list-type", default=None)
    map_type: str | None = msgspec.field(name="x-kubernetes-map-type", default=None)
    validations: list[_ValidationRule] | None = msgspec.field(name="x-kubernetes-validations", default=None)


class _VersionSchema(_Part):
    open_api_v3_schema: _Schema | None = msgspec.field(name="openAPIV3Schema", default=None)


class _Scale(_Part):
    spec_replicas_path: str | None = None
    status_replicas_path: str | None = None
    label_selector_path: str | None = None


class _Subresources(_Part):
    status: dict[str, Any] | None = None
    scale: _Scale | None = None


class _Column(_Part):
    name: str | None = None
    type: str | None = None
    format: str | None = None
    description: str | None = None
    priority: int | None = None
    json_path: str | None = msgspec.field(name="jsonPath", default=None)


class _Selectable(_Part):
    json_path: str | None = msgspec.field(name="jsonPath", default=None)


class _Version(_Part):
    name: str | None = None
    served: bool | None = None
    storage: bool | None = None
    deprecated: bool | None = None
    deprecation_warning: str | None = None
    schema: _VersionSchema | None = None
    subresources: _Subresources | None = None
    additional_printer_columns: list[_Column] | None = None
    selectable_fields: list[_Selectable] | None = None


class _Names(_Part):
    plural: str | None = None
    singular: str | None = None
    short_names: list[str] | None = None
    kind: str | None = None
    list_kind: str | None = None
    categories: list[str] | None = None


class _Conversion(_Part):
    strategy: str | None = None
    webhook: dict[str, Any] | None = None


class _Spec(_Part):
    group: str | None = None
    names: _Names | None = None
    scope: str | None = None
    versions: list[_Version] | None = None
    conversion: _Conversion | None = None
    preserve_unknown_fields: bool | None = None


class _Condition(_Part):
    type: str | None = None
    status: str | None = None
    last_transition_time: str | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None


class _Status(_Part):
    conditions: list[_Condition] | None = None
    accepted_names: _Names | None = None
    stored_versions: list[str] | None = None
    observed_generation: int | None = None


class _Definition(_Part):
    spec: _Spec | None = None
    status: _Status | None = None
    kind: Literal["CustomResourceDefinition"] | None = None


def check_types(crd: dict[str, Any]) -> None:
    """Raises a Refusal when a field has the wrong type."""
    try:
        msgspec.convert(crd, _Definition)
    except msgspec.ValidationError as error:
        text = str(error)
    except RecursionError:
        text = "the schema is nested too deeply"
    else:
        return
    raise bad_request(f'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: {text}')
