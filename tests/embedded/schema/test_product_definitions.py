"""The definitions this product installs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from applecart.embedded.schema.custom_kind import CustomStrategy, custom_kinds
from tests.embedded.schema.judged import answer_to_definition

OURS = sorted((Path(__file__).parents[3] / "deploy/crds").glob("*.yaml"))

POOL: dict[str, Any] = {
    "apiVersion": "tuist.dev/v1alpha1",
    "kind": "RunnerPool",
    "metadata": {"name": "mac", "annotations": {"note": "x" * 900}},
    "spec": {
        "image": "registry.example/runner:1",
        "fleetSelector": "mac",
        "dispatchLabel": "mac-large",
        "runnerLabels": ["self-hosted", "macOS", "ARM64"],
        "labels": ["a label of twenty ch"] * 20,
        "replicas": 3,
        "autoscaling": {"enabled": True},
        "rollout": {"maxConcurrentPercent": 10},
        "provisioning": {},
    },
    "status": {"observedReplicas": 3, "lastReconcile": "2026-11-16T10:00:00Z", "observedImage": "registry.example/runner:1"},
}


def pool_rules() -> CustomStrategy:
    path = next(path for path in OURS if "runnerpools" in path.name)
    rules = custom_kinds(yaml.safe_load(path.read_text()))[0].strategy
    assert isinstance(rules, CustomStrategy)
    return rules


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_our_definitions_are_accepted(path: Path) -> None:
    crd = yaml.safe_load(path.read_text())
    assert "causes" not in answer_to_definition(crd)
    assert custom_kinds(crd)


@pytest.mark.kubernetes
def test_the_definitions_of_cluster_api_are_accepted(kube_programs: Path) -> None:
    paths = sorted((kube_programs / "cluster-api-crds").glob("*.yaml"))
    assert len(paths) > 5
    for path in paths:
        crd = yaml.safe_load(path.read_text())
        assert answer_to_definition(crd).get("causes") is None, path.name
        assert custom_kinds(crd), path.name


def test_a_pool_gets_its_defaults_and_its_rules() -> None:
    rules = pool_rules()
    pool = {**POOL, "spec": {**POOL["spec"], "rollout": {"maxConcurrentPercent": 0}, "runnerLabels": [""]}}
    rules.default(pool)
    assert pool["spec"]["os"] == "darwin"
    assert pool["spec"]["provisioning"] == {"maxConcurrentPerFleetSelector": 4, "startTimeoutSeconds": 300}
    fields = [error.field for error in rules.validate_with([], pool, None)]
    assert fields == [
        "spec.runnerLabels[0]",
        "spec.rollout.maxConcurrentPercent",
        "spec.runnerLabels",
        "spec.rollout.maxConcurrentPercent",
    ]
