"""Every kubectl does and says on the embedded server what it does and says on a real one.

The built kubectls run every script; those that this machine happens to have run them too. Verbs that need a live node agent
are in `NEEDS_A_NODE`, those whose objects nobody reconciles here in `CUT`: neither is served by the embedded server alone.
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

NEEDS_A_NODE = ("attach", "cp", "debug", "exec", "logs", "top")
CUT = ("autoscale", "certificate", "port-forward", "rollout")
EXPECTED_VERBS = """
    annotate api-resources api-versions apply auth cluster-info cordon create delete describe diff drain edit events explain
    expose get label patch replace run scale set taint uncordon version wait
""".split()

pytestmark = pytest.mark.kubernetes


def test_there_is_a_script_for_every_verb_that_is_neither_cut_nor_in_need_of_a_node() -> None:
    used = {one.arguments.split()[0] for script in SCRIPTS for one in script.steps}
    assert used == set(EXPECTED_VERBS)
    assert not used & {*NEEDS_A_NODE, *CUT}


def test_both_built_kubectls_are_there() -> None:
    assert {one.minor for one in kubectls() if one.built} >= {36}, "run make kube-binaries"


@pytest.mark.parametrize("kubectl", kubectls(), ids=lambda one: one.label)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.name.replace(" ", "-"))
def test_kubectl_answers_as_on_a_real_server(
    kubeconfigs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, kubectl: Kubectl, script: Script
) -> None:
    namespace = f"k{kubectl.minor}-{SCRIPTS.index(script)}"
    base = tmp_path_factory.getbasetemp() / "kubectl"

    def run(server: str) -> dict[str, Said]:
        # One cache for all scripts of a kubectl: a person's is not empty either, and it has to follow new kinds.
        return Runner(kubectl, kubeconfigs[server], base / f"{server}-{kubectl.minor}").run(script, namespace)

    with ThreadPoolExecutor(len(SERVERS)) as threads:
        embedded, real = threads.map(run, SERVERS)
    steps = [one for one in script.steps if kubectl.minor >= one.since]
    wrong = [_complaint(*one) for one in zip(steps, embedded.values(), real.values(), strict=True)]
    assert not any(wrong), "\n".join(filter(None, wrong))


def _complaint(step: Step, embedded: Said, real: Said) -> str:
    """What is wrong with a step, with the real server's answer as the measure; empty when nothing is."""
    for name, said in (("real", real), ("embedded", embedded)):
        lacking = [words for words in step.says if words not in said.out + said.err]
        if said.code != step.code or lacking:
            return f"kubectl {step.arguments}: {name} ended with {said.code}, without {lacking}:\n{said.out}{said.err}"
    if not step.compared or (embedded.out, embedded.err) == (real.out, real.err):
        return ""
    lines = [(one.out + "--- stderr\n" + one.err).splitlines() for one in (real, embedded)]
    return f"kubectl {step.arguments}\n" + "\n".join(difflib.unified_diff(*lines, "real", "embedded", lineterm="", n=1))
