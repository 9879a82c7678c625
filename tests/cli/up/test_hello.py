"""What a person is told to type: it must work as it stands."""

import json
import shlex
from pathlib import Path

import msgspec
import pytest
import yaml

from applecart.api import labels, taints
from applecart.api.pods import Pod
from applecart.cli.up.hello import FLEET, IMAGE, first_lines, job_manifest
from applecart.kubelet.option_values import image
from applecart.sim.tart.guest_rules import from_environment

ROOT = Path(__file__).parents[3]
MOST_LINES = 6  # what a person reads


def words(line: str) -> list[str]:
    return shlex.split(line)


def test_there_are_few_lines_and_each_is_one_command() -> None:
    lines = first_lines("kubectl", Path("build/up/api/admin.kubeconfig"))
    assert len(lines) <= MOST_LINES
    assert words(lines[0]) == ["export", "KUBECONFIG=build/up/api/admin.kubeconfig"]
    assert [words(line)[1] for line in lines[1:]] == ["run", "get", "logs", "exec", "delete"]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/try-it.md"])
def test_the_pages_print_the_same_lines(page: str) -> None:
    """An overrides of '...' could not be pasted."""
    lines = first_lines("kubectl", Path("build/up/api/admin.kubeconfig"))
    assert "\n".join(["```", *lines, "```"]) in (ROOT / page).read_text()


def test_paths_with_spaces_stay_one_word() -> None:
    lines = first_lines("'/opt/my tools/kubectl'", Path("a folder/admin.kubeconfig"))
    assert words(lines[0]) == ["export", "KUBECONFIG=a folder/admin.kubeconfig"]
    assert {words(line)[0] for line in lines[1:]} == {"/opt/my tools/kubectl"}


def test_the_pod_of_the_first_line_is_meant_for_the_macs_and_stands_their_taint() -> None:
    run = words(first_lines("kubectl", Path("config"))[1])
    overrides = json.loads(next(word for word in run if word.startswith("--overrides=")).partition("=")[2])
    assert overrides["spec"]["nodeSelector"] == {labels.FLEET: FLEET}
    assert overrides["spec"]["tolerations"] == [{"key": taints.MACOS.key, "operator": "Exists"}]
    assert f"--image={IMAGE}" in run
    assert "--restart=Never" in run, "a VM is not started a second time"
    assert image(IMAGE) == IMAGE


def test_the_manifest_is_a_job_that_a_simulated_guest_ends() -> None:
    document = yaml.safe_load(job_manifest())
    pod = msgspec.convert(document, Pod)
    said = from_environment({each.name: each.value for each in pod.spec.containers[0].env})
    assert said["exit_code"] == 0
    assert isinstance(said["runs_s"], float)
    assert 0 < said["runs_s"] < 60
    assert pod.spec.restart_policy == "Never"
    assert pod.spec.node_selector == {labels.FLEET: FLEET}
    assert [toleration.key for toleration in pod.spec.tolerations] == [taints.MACOS.key]
