"""How steps are run, with a stand-in for kubectl that is a shell script."""

from pathlib import Path

import pytest

from tests.conformance.clients.kubectls import Kubectl
from tests.conformance.clients.runner import Runner, Said
from tests.conformance.clients.script import Script, step

pytestmark = pytest.mark.real_time

# Skips the three options that every invocation has; `create namespace` has two.
STAND_IN = """#!/bin/sh
shift 2
case "$1" in create) exit 0 ;; --namespace=*) space="${1#--namespace=}"; shift ;; esac
here="$HOME"
case "$1" in
  say) shift; echo "$@" ;;
  read) cat ;;
  where) echo "$space" ;;
  edit) echo 'x: "1"' > "$here/file"; sh -c "$KUBE_EDITOR $here/file"; cat "$here/file" ;;
  settings) env | sed 's/=.*//' | sort | tr '\\n' ' ' ;;
  watch) echo first; while [ ! -e "$here/touched" ]; do sleep 0.01; done; echo second; exec sleep 60 ;;
  touch) : > "$here/touched" ;;
  fail) echo no >&2; exit 3 ;;
  late) if [ -e "$here/asked" ]; then echo yes; else : > "$here/asked"; exit 1; fi ;;
esac
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    program = tmp_path / "kubectl"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return Runner(Kubectl(program, 31, built=False), tmp_path / "kubeconfig", tmp_path / "kept")


def said(runner: Runner, arguments: str, **options: object) -> Said:
    return runner.run(Script("one", (step(arguments, **options),)), "space")[0]


def test_the_answer_of_a_step_is_its_code_and_its_words(runner: Runner) -> None:
    assert said(runner, "say 'two  words' 12s") == Said(0, "two words <age>\n", "")
    assert said(runner, "fail") == Said(3, "", "no\n")


def test_the_namespace_is_given_and_filled_in(runner: Runner) -> None:
    assert said(runner, "where").out == "space\n"
    assert said(runner, "say in {ns}").out == "in space\n"
    assert said(runner, "read", stdin="a: {ns}\n").out == "a: space\n"


def test_nothing_of_the_persons_environment_reaches_kubectl(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/theirs")
    assert not {"KUBECONFIG", "KUBE_EDITOR"} & set(said(runner, "settings").out.split())


def test_an_editor_changes_the_file_it_is_given(runner: Runner) -> None:
    assert said(runner, "edit", edit='s/"1"/"2"/').out == 'x: "2"\n'


def test_a_step_that_goes_on_is_ended_after_its_lines(runner: Runner) -> None:
    assert said(runner, "watch", meanwhile=("touch",), lines=2) == Said(0, "first\nsecond\n", "")


def test_a_step_that_holds_eventually_is_asked_again(runner: Runner) -> None:
    assert said(runner, "late").code == 1
    assert said(runner, "late", eventually=True) == Said(0, "yes\n", "")


def test_the_order_of_lines_is_forgotten_where_it_means_nothing(runner: Runner) -> None:
    assert said(runner, "read", stdin="b\na\n", any_order=True).out == "a\nb"


def test_a_step_that_this_kubectl_does_not_know_is_left_out(runner: Runner) -> None:
    assert runner.run(Script("one", (step("say new", since=32), step("say old"))), "space") == [Said(0, "old\n", "")]
