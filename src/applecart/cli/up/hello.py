"""What a person types first: lines that work as they stand, and a manifest to edit. Text only; starts nothing."""

import shlex
from pathlib import Path
from typing import Any

import msgspec
import yaml

from applecart.api import labels, taints
from applecart.sim.tart.guest_rules import EXIT_CODE, LOG, RUN_SECONDS

FLEET = "demo"
IMAGE = "ghcr.io/acme/macos-runner:latest"  # nobody is asked for it: simulated Macs make up what they pull
MANIFEST = "hello.yaml"
JOB_SECONDS = 20  # long enough to look at it, short enough to see it end

_PLACE = {labels.FLEET: FLEET}
_TOLERATIONS = [{"key": taints.MACOS.key, "operator": "Exists"}]


def export(kubeconfig: Path) -> str:
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}"


def first_lines(kubectl: str, kubeconfig: Path) -> list[str]:
    overrides = msgspec.json.encode({"spec": {"nodeSelector": _PLACE, "tolerations": _TOLERATIONS}}).decode()
    return [
        export(kubeconfig),
        f"{kubectl} run hello --image={IMAGE} --restart=Never --overrides={shlex.quote(overrides)}",
        f"{kubectl} get pods -o wide --watch",
        f"{kubectl} logs -f hello",
        f"{kubectl} exec -it hello -- sw_vers",
        f"{kubectl} delete pod hello",
    ]


def job_manifest() -> str:
    """A Pod whose VM does something for a while and halts, so that it ends Succeeded."""
    said = {RUN_SECONDS: str(JOB_SECONDS), EXIT_CODE: "0", LOG: "compiling\nlinking"}
    container = {"name": "runner", "image": IMAGE, "env": [{"name": name, "value": value} for name, value in said.items()]}
    spec: dict[str, Any] = {"restartPolicy": "Never", "nodeSelector": _PLACE, "tolerations": _TOLERATIONS}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"}, "spec": {**spec, "containers": [container]}}
    why = f"# A job that ends by itself after {JOB_SECONDS} s: the variables tell a simulated guest what to do.\n"
    return why + yaml.safe_dump(pod, sort_keys=False)
