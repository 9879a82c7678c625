"""Every kubectl does and says on the embedded server what it does and says on a real one.

The newest one runs every script on both servers and its answers are compared; every other one, built or found on this machine,
runs what succeeds on the embedded server. Verbs that need a live node agent are in `NEEDS_A_NODE`, those whose objects nobody
reconciles here in `CUT`: neither is served by the embedded server alone.
"""

import difflib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance.clients.conftest import SERVERS
from tests.conformance.clients.kubectls import Kubectl, kubectls
from tests.conformance.clients.runner import Runner, Said
from tests.conformance.clients.script import Script, Step
from tests.conformance.clients.scripts import SCRIPTS
from tests.kubernetes.recipe import DEFAULT_KUBE

NEEDS_A_NODE = ("attach", "cp", "debug", "exec", "logs", "top")
CUT = ("autoscale", "certificate", "port-forward", "rollout")
EXPECTED_VERBS = (
    *("annotate", "api-resources", "api-versions", "apply", "auth", "cluster-info", "cordon", "create", "delete"),
    *("describe", "diff", "drain", "edit", "events", "explain", "expose", "get", "label", "patch", "replace", "run"),
    *("scale", "set", "taint", "uncordon", "version", "wait"),
)

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all scripts of a kubectl: a person's is not empty either, and it has to follow new kinds."""
    return tmp_path_factory.mktemp("kubectl")


def _name(script: Script) -> str:
    return script.name.replace(" ", "-")


def _namespace(kubectl: Kubectl, script: Script) -> str:
    return f"k{kubectl.minor}-{SCRIPTS.index(script)}"


def test_there_is_a_script_for_every_verb_that_is_neither_cut_nor_in_need_of_a_node() -> None:
    used = {one.arguments.split()[0] for script in SCRIPTS for one in script.steps}
    assert used == set(EXPECTED_VERBS)
    assert not used & {*NEEDS_A_NODE, *CUT}


def test_the_built_kubectl_is_there() -> None:
    assert {one.minor for one in kubectls() if one.built} >= {36}, "run make kube-binaries"


NEWEST, *OTHERS = kubectls() or (None,)


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_the_newest_kubectl_answers_as_on_a_real_server(
    kubeconfigs: dict[str, Path], caches: Path, kube: str, script: Script
) -> None:
    """Word by word where the real server is of the minor that the embedded one follows; real minors differ in columns."""
    assert NEWEST is not None
    kubectl, namespace = NEWEST, _namespace(NEWEST, script)

    def run(server: str) -> list[Said]:
        return Runner(kubectl, kubeconfigs[server], caches / f"{server}-{kubectl.minor}").run(script, namespace)

    with ThreadPoolExecutor(len(SERVERS)) as threads:
        embedded, real = threads.map(run, SERVERS)
    steps = script.steps_for(kubectl.minor)
    wrong = [
        _failure(one, "real", wanted)
        or _failure(one, "embedded", got)
        or (_difference(one, wanted, got) if kube == DEFAULT_KUBE else "")
        for one, wanted, got in zip(steps, real, embedded, strict=True)
    ]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
@pytest.mark.parametrize("kubectl", OTHERS, ids=lambda one: one.label)
def test_an_older_kubectl_works_as_well(embedded_kubeconfig: Path, caches: Path, kubectl: Kubectl, script: Script) -> None:
    """Its words are its own, so what they must contain is all that can be asked of them."""
    runner = Runner(kubectl, embedded_kubeconfig, caches / f"older-{kubectl.minor}")
    shorter = script.without_refusals()
    said = runner.run(shorter, _namespace(kubectl, script))
    wrong = [_failure(one, "embedded", got) for one, got in zip(shorter.steps_for(kubectl.minor), said, strict=True)]
    assert not any(wrong), "\n".join(filter(None, wrong))


def _failure(step: Step, server: str, said: Said) -> str:
    """What is wrong with a step by its own measure; empty when nothing is."""
    lacking = [words for words in step.says if words not in said.out + said.err]
    if said.code == step.code and not lacking:
        return ""
    return f"kubectl {step.arguments}: on {server} it ended with {said.code}, without {lacking}:\n{said.out}{said.err}"


def _difference(step: Step, real: Said, embedded: Said) -> str:
    if not step.compared or (embedded.out, embedded.err) == (real.out, real.err):
        return ""
    wanted, got = ((one.out + "--- stderr\n" + one.err).splitlines() for one in (real, embedded))
    return f"kubectl {step.arguments}\n" + "\n".join(difflib.unified_diff(wanted, got, "real", "embedded", lineterm="", n=1))
