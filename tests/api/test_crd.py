"""The definitions of our kinds say what the wire contract says: every field, its type, its default, its limits."""

from typing import Any

import msgspec
import pytest

from applecart.api import crd, meta
from applecart.api.meta import Object
from applecart.embedded.schema.versions import schema_part_errors
from tests.api.examples import FULL

BY_KIND = {definition.kind.__name__: definition for definition in crd.DEFINITIONS}
ABSENT = object()

# Path below the root, type (as the schema says it), default, limits. Written from the contract, not from the code.
MACHINE_SPEC = [
    ("providerID", "string", ABSENT, {}),
    ("type", "string", "M2-L", {}),
    ("zone", "string", "fr-par-1", {}),
    ("os", "string", "Tahoe", {}),
    ("fleetName", "string", ABSENT, {}),
    ("kubeletVersion", "string", ABSENT, {}),
    ("hostCPU", "integer", ABSENT, {}),
    ("hostMemoryMB", "integer", ABSENT, {}),
    ("adoptPoolPrefix", "string", ABSENT, {}),
    ("ghActionsRunner", "object", ABSENT, {"required": ["ghRunnerVersion"]}),
    ("ghActionsRunner.ghOrg", "string", "tuist", {}),
    ("ghActionsRunner.ghRunnerLabels", "string", "self-hosted,macos,bare-metal,vm-image-builder", {}),
    ("ghActionsRunner.ghRunnerVersion", "string", ABSENT, {"minLength": 1}),
    ("ghActionsRunner.ghAppSecretName", "string", ABSENT, {}),
]
CAPI_STATUS = [
    ("status.ready", "boolean", ABSENT, {}),
    ("status.initialization.provisioned", "boolean", ABSENT, {}),
    ("status.conditions", "array", ABSENT, {}),
    ("status.conditions.type", "string", ABSENT, {}),
    ("status.conditions.status", "string", ABSENT, {}),
    ("status.conditions.severity", "string", ABSENT, {}),
    ("status.conditions.reason", "string", ABSENT, {}),
    ("status.conditions.message", "string", ABSENT, {}),
    ("status.conditions.lastTransitionTime", "string", ABSENT, {"format": "date-time"}),
    ("status.v1beta2.conditions", "array", ABSENT, {}),
    ("status.v1beta2.conditions.observedGeneration", "integer", ABSENT, {}),
    ("status.v1beta2.conditions.reason", "string", ABSENT, {}),
]
FIELDS: dict[str, list[tuple[str, str, Any, dict[str, Any]]]] = {
    "ScalewayAppleSiliconMachine": [
        *((f"spec.{path}", *rest) for path, *rest in MACHINE_SPEC),  # type: ignore[list-item]
        *CAPI_STATUS,
        ("status.serverID", "string", ABSENT, {}),
        ("status.addresses", "array", ABSENT, {}),
        ("status.addresses.type", "string", ABSENT, {}),
        ("status.addresses.address", "string", ABSENT, {}),
        ("status.phase", "string", ABSENT, {}),
        ("status.failureReason", "string", ABSENT, {}),
        ("status.failureMessage", "string", ABSENT, {}),
        ("status.tartKubeletBinarySHA", "string", ABSENT, {}),
        ("status.hostConfigHash", "string", ABSENT, {}),
        ("status.failedHostConfigHash", "string", ABSENT, {}),
        ("status.tartKubeletUpdateAttempts", "integer", ABSENT, {"format": "int32"}),
        ("status.lastUpdateFailureTime", "string", ABSENT, {"format": "date-time"}),
        ("status.bootstrapAttempts", "integer", ABSENT, {"format": "int32"}),
        ("status.bootstrapRebootIssued", "boolean", ABSENT, {}),
    ],
    "ScalewayAppleSiliconMachineTemplate": [
        ("spec", "object", ABSENT, {"required": ["template"]}),
        ("spec.template", "object", ABSENT, {"required": ["spec"]}),
        *((f"spec.template.spec.{path}", *rest) for path, *rest in MACHINE_SPEC),  # type: ignore[list-item]
    ],
    "TuistCluster": [
        ("spec.controlPlaneEndpoint", "object", ABSENT, {"required": ["host", "port"]}),
        ("spec.controlPlaneEndpoint.host", "string", ABSENT, {}),
        ("spec.controlPlaneEndpoint.port", "integer", ABSENT, {"format": "int32"}),
        *CAPI_STATUS,
    ],
    "RunnerPool": [
        ("spec", "object", ABSENT, {"required": ["dispatchLabel", "fleetSelector", "image", "runnerLabels"]}),
        ("spec.labels", "array", ABSENT, {}),
        ("spec.replicas", "integer", 0, {"minimum": 0, "format": "int32"}),
        ("spec.image", "string", ABSENT, {"minLength": 1}),
        ("spec.fleetSelector", "string", ABSENT, {"minLength": 1}),
        ("spec.dispatchLabel", "string", ABSENT, {"minLength": 1}),
        ("spec.runnerLabels", "array", ABSENT, {"minItems": 1}),
        ("spec.os", "string", "darwin", {"enum": ["darwin", "linux"]}),
        ("spec.podCPUMilli", "integer", 8000, {"format": "int32"}),
        ("spec.podMemoryMB", "integer", 14336, {"format": "int32"}),
        ("spec.idleTimeoutSeconds", "integer", ABSENT, {"format": "int32"}),
        ("spec.runtimeClass", "string", ABSENT, {}),
        ("spec.provisioning", "object", ABSENT, {}),
        ("spec.provisioning.maxConcurrentPerFleetSelector", "integer", 4, {"minimum": 1, "format": "int32"}),
        ("spec.provisioning.startTimeoutSeconds", "integer", 300, {"minimum": 0, "format": "int32"}),
        ("spec.autoscaling", "object", ABSENT, {}),
        ("spec.autoscaling.enabled", "boolean", False, {}),
        ("spec.autoscaling.minWarmPoolFloor", "integer", 1, {"minimum": 0, "format": "int32"}),
        ("spec.autoscaling.maxReplicas", "integer", 0, {"minimum": 0, "format": "int32"}),
        ("spec.autoscaling.scaleDownCooldownSeconds", "integer", 300, {"minimum": 0, "format": "int32"}),
        ("spec.rollout", "object", ABSENT, {}),
        ("spec.rollout.maxConcurrentPercent", "integer", 5, {"minimum": 1, "maximum": 100, "format": "int32"}),
        ("status.observedReplicas", "integer", ABSENT, {}),
        ("status.lastReconcile", "string", ABSENT, {"format": "date-time"}),
        ("status.lastScaleDownAt", "string", ABSENT, {"format": "date-time"}),
        ("status.observedImage", "string", ABSENT, {}),
        ("status.imageRolledAt", "string", ABSENT, {"format": "date-time"}),
    ],
}
NAMES = {  # plural, short name, categories, subresources, columns
    "ScalewayAppleSiliconMachine": (
        "scalewayapplesiliconmachines.infrastructure.cluster.x-k8s.io",
        "samm",
        ("cluster-api",),
        {"status"},
        {
            "Phase": ".status.phase",
            "ProviderID": ".spec.providerID",
            "Ready": ".status.ready",
            "Age": ".metadata.creationTimestamp",
        },
    ),
    "ScalewayAppleSiliconMachineTemplate": (
        "scalewayapplesiliconmachinetemplates.infrastructure.cluster.x-k8s.io",
        "sammt",
        ("cluster-api",),
        set(),
        {},
    ),
    "TuistCluster": (
        "tuistclusters.infrastructure.cluster.x-k8s.io",
        "tcl",
        ("cluster-api",),
        {"status"},
        {"Endpoint": ".spec.controlPlaneEndpoint.host", "Ready": ".status.ready"},
    ),
    "RunnerPool": (
        "runnerpools.tuist.dev",
        "rpool",
        (),
        {"status", "scale"},
        {
            "Replicas": ".spec.replicas",
            "Observed": ".status.observedReplicas",
            "DispatchLabel": ".spec.dispatchLabel",
            "Age": ".metadata.creationTimestamp",
        },
    ),
}


def place(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.split("."):
        schema = schema["items"] if schema["type"] == "array" else schema
        schema = schema["properties"][name]
    return schema


def leaves(schema: dict[str, Any], path: str = "") -> set[str]:
    if schema.get("type") == "array":
        return leaves(schema["items"], path)
    if "properties" not in schema:
        return {path}
    return set().union(*(leaves(child, f"{path}.{name}".strip(".")) for name, child in schema["properties"].items()))


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in FIELDS.items() for field in fields])
def test_a_field_of_the_contract_is_in_the_definition(kind: str, field: tuple[str, str, Any, dict[str, Any]]) -> None:
    path, type_, default, limits = field
    schema = place(crd.root_schema(BY_KIND[kind].kind), path)
    assert schema["type"] == type_
    assert schema.get("default", ABSENT) == default
    assert {keyword: schema.get(keyword) for keyword in limits} == limits


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_has_a_description_that_kubectl_explain_can_show(kind: str) -> None:
    schema = crd.root_schema(BY_KIND[kind].kind)
    for path, *_ in FIELDS[kind]:
        if "conditions." not in path and "addresses." not in path:
            assert place(schema, path).get("description"), path


@pytest.mark.parametrize("document", FULL, ids=lambda document: document["kind"])
def test_the_full_example_sets_every_field_there_is(document: dict[str, Any]) -> None:
    """So a test that sends the example to an API server has sent every field."""
    schema = crd.root_schema(BY_KIND[document["kind"]].kind)

    def given(value: Any, path: str) -> set[str]:
        if isinstance(value, dict) and not path.endswith(("labels", "annotations")):
            return set().union(*(given(child, f"{path}.{name}".strip(".")) for name, child in value.items()))
        if isinstance(value, list) and isinstance(value[0], dict):
            return set().union(*(given(child, path) for child in value))
        return {path}

    there_is = {leaf for leaf in leaves(schema) if leaf.startswith(("spec", "status"))}
    there_is.discard("spec.template.spec.providerID")  # a template names no host
    assert given({k: document[k] for k in ("spec", "status") if k in document}, "") == there_is


@pytest.mark.parametrize("document", FULL, ids=lambda document: document["kind"])
def test_the_full_example_survives_our_structs(document: dict[str, Any]) -> None:
    kind = BY_KIND[document["kind"]].kind
    assert meta.document(msgspec.convert(document, kind)) == document


@pytest.mark.parametrize("kind", BY_KIND)
def test_the_schema_is_structural(kind: str) -> None:
    assert schema_part_errors(crd.root_schema(BY_KIND[kind].kind), "schema", True) == []


@pytest.mark.parametrize("kind", BY_KIND)
def test_names_columns_and_subresources_are_those_of_the_contract(kind: str) -> None:
    label, short_name, categories, subresources, columns = NAMES[kind]
    definition = crd.custom_resource_definition(BY_KIND[kind])
    (version,) = definition.spec.versions
    assert definition.name == label
    assert definition.spec.names.short_names == (short_name,)
    assert definition.spec.names.categories == categories
    assert definition.spec.scope == "Namespaced"
    assert (version.name, version.served, version.storage) == ("v1alpha1", True, True)
    assert set(msgspec.to_builtins(version.subresources) or {}) == subresources
    assert {column.name: column.json_path for column in version.additional_printer_columns} == columns


@pytest.mark.parametrize("kind", BY_KIND)
def test_printer_columns_and_replica_paths_point_to_fields(kind: str) -> None:
    definition = BY_KIND[kind]
    paths = [column.json_path for column in definition.columns if not column.json_path.startswith(".metadata")]
    if definition.scale:
        paths += [definition.scale.spec_replicas_path, definition.scale.status_replicas_path]
    for path in paths:
        assert place(crd.root_schema(definition.kind), path.removeprefix("."))


@pytest.mark.parametrize("kind", BY_KIND)
def test_infrastructure_kinds_keep_both_contracts_of_cluster_api(kind: str) -> None:
    labels = crd.custom_resource_definition(BY_KIND[kind]).labels
    if kind == "RunnerPool":
        assert labels == {}
    else:
        assert labels == {"cluster.x-k8s.io/v1beta1": "v1alpha1", "cluster.x-k8s.io/v1beta2": "v1alpha1"}


def test_a_definition_survives_its_own_struct() -> None:
    """The embedded API server reads definitions with the struct we write them with."""
    for definition in crd.DEFINITIONS:
        made = crd.custom_resource_definition(definition)
        assert msgspec.convert(crd.as_document(definition), type(made)) == made


def test_no_field_is_required_that_an_installed_template_may_lack() -> None:
    """A required adoptPoolPrefix made a live template un-clonable, and a fleet ran at half its size without an alert."""
    schema = crd.root_schema(BY_KIND["ScalewayAppleSiliconMachine"].kind)
    assert "required" not in schema
    assert "required" not in place(schema, "spec")
    assert "required" not in place(crd.root_schema(BY_KIND["ScalewayAppleSiliconMachineTemplate"].kind), "spec.template.spec")


@pytest.mark.parametrize("kind", BY_KIND)
def test_every_rule_names_its_field_in_a_sentence_with_the_fix(kind: str) -> None:
    def rules(schema: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
        here = [(path, rule) for rule in schema.get("x-kubernetes-validations", ())]
        children = [*schema.get("properties", {}).items(), *([("", schema["items"])] if "items" in schema else [])]
        return here + [found for name, child in children for found in rules(child, f"{path}.{name}")]

    for path, rule in rules(crd.root_schema(BY_KIND[kind].kind), ""):
        field = (path + rule.get("fieldPath", "")).rpartition(".")[2]
        assert field in rule["message"].partition(";")[0], rule
        assert len(rule["message"].partition(";")[2].split()) >= 4, f"{path}: says no fix: {rule['message']}"


def test_the_kinds_are_the_ones_components_use() -> None:
    assert all(issubclass(definition.kind, Object) for definition in crd.DEFINITIONS)
    assert len({definition.short_name for definition in crd.DEFINITIONS}) == len(crd.DEFINITIONS)
