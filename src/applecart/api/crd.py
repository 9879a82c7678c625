"""CustomResourceDefinitions of our kinds, made from their structs.

A struct says what the fields are (`schema.py`); this module adds what a definition says besides: names, printer columns,
subresources, and the labels by which Cluster API finds out which contract a kind keeps. Pure: `generate.py` gives the files.
"""

import msgspec

from applecart.api import labels
from applecart.api.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceNames,
    CustomResourceVersion,
    PrinterColumn,
    ScaleSubresource,
    Subresources,
    VersionSchema,
)
from applecart.api.infrastructure import (
    ScalewayAppleSiliconMachine,
    ScalewayAppleSiliconMachineTemplate,
    TuistCluster,
)
from applecart.api.meta import Object, ObjectMeta, document
from applecart.api.runners import RunnerPool
from applecart.api.schema import Schema, structural_schema


class Definition(msgspec.Struct, frozen=True):
    """What a definition says that the struct of its kind does not."""

    kind: type[Object]
    short_name: str
    columns: tuple[PrinterColumn, ...] = ()
    has_status: bool = True
    scale: ScaleSubresource | None = None
    is_infrastructure: bool = False  # part of a Cluster API provider


AGE = PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp")

DEFINITIONS = (
    Definition(
        ScalewayAppleSiliconMachine,
        "samm",
        columns=(
            PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
            PrinterColumn(name="ProviderID", type="string", json_path=".spec.providerID"),
            PrinterColumn(name="Ready", type="boolean", json_path=".status.ready"),
            AGE,
        ),
        is_infrastructure=True,
    ),
    Definition(ScalewayAppleSiliconMachineTemplate, "sammt", has_status=False, is_infrastructure=True),
    Definition(
        TuistCluster,
        "tcl",
        columns=(
            PrinterColumn(name="Endpoint", type="string", json_path=".spec.controlPlaneEndpoint.host"),
            PrinterColumn(name="Ready", type="boolean", json_path=".status.ready"),
        ),
        is_infrastructure=True,
    ),
    Definition(
        RunnerPool,
        "rpool",
        columns=(
            PrinterColumn(name="Replicas", type="integer", json_path=".spec.replicas"),
            PrinterColumn(name="Observed", type="integer", json_path=".status.observedReplicas"),
            PrinterColumn(name="DispatchLabel", type="string", json_path=".spec.dispatchLabel"),
            AGE,
        ),
        scale=ScaleSubresource(spec_replicas_path=".spec.replicas", status_replicas_path=".status.observedReplicas"),
    ),
)


def root_schema(kind: type[Object]) -> Schema:
    """The schema of a whole object. Metadata is the API server's to check."""
    schema = structural_schema(kind)
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": "Group and version of this object's kind."},
        "kind": {"type": "string", "description": "The kind of this object."},
        **schema["properties"],
        "metadata": {"type": "object"},
    }
    return schema


def custom_resource_definition(definition: Definition) -> CustomResourceDefinition:
    resource = definition.kind.resource
    return CustomResourceDefinition(
        metadata=ObjectMeta(name=resource.label, labels=_contract_labels(definition)),
        spec=CustomResourceDefinitionSpec(
            group=resource.group,
            names=CustomResourceNames(
                kind=resource.kind,
                list_kind=f"{resource.kind}List",
                plural=resource.plural,
                singular=resource.kind.lower(),
                short_names=(definition.short_name,),
                categories=("cluster-api",) if definition.is_infrastructure else (),
            ),
            scope="Namespaced" if resource.namespaced else "Cluster",
            versions=(
                CustomResourceVersion(
                    name=resource.version,
                    served=True,
                    storage=True,
                    additional_printer_columns=definition.columns,
                    schema=VersionSchema(open_api_v3_schema=root_schema(definition.kind)),
                    subresources=_subresources(definition),
                ),
            ),
        ),
    )


def as_document(definition: Definition) -> Schema:
    """The definition as plain values, ready to be written or sent."""
    return document(custom_resource_definition(definition))


def _contract_labels(definition: Definition) -> dict[str, str]:
    if not definition.is_infrastructure:
        return {}
    version = definition.kind.resource.version
    return {labels.CAPI_CONTRACT_V1BETA1: version, labels.CAPI_CONTRACT_V1BETA2: version}


def _subresources(definition: Definition) -> Subresources | None:
    if not definition.has_status:
        return None
    return Subresources(status={}, scale=definition.scale)
