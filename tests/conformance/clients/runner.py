"""Runs the steps of a script with one kubectl on one server and keeps what they answered.

Kubectl gets an empty environment, a cache of its own and a fresh folder: nothing of the person's settings and nothing that
another server said reaches it. Processes it leaves running on purpose (a watch) are ended by this module, by their handle.
"""

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.clients.kubectls import Kubectl
from tests.conformance.clients.script import Script, Step
from tests.conformance.clients.text import normalise

STEP_TIMEOUT_S = 30.0
LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Said:
    """What a step answered, normalised."""

    code: int
    out: str
    err: str


class Runner:
    """One kubectl on one server, with a folder for what it keeps."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._fixed = [str(kubectl.program), f"--kubeconfig={kubeconfig}", f"--cache-dir={folder / 'cache'}"]

    def run(self, script: Script, namespace: str) -> list[Said]:
        """What each step answered, in order; the namespace is made first."""
        made = subprocess.run(
            [*self._fixed, "create", "namespace", namespace], capture_output=True, text=True, timeout=STEP_TIMEOUT_S
        )
        assert made.returncode == 0, made.stderr
        return [self._step(one, namespace) for one in script.steps_for(self._kubectl.minor)]

    def _step(self, step: Step, namespace: str) -> Said:
        if step.meanwhile:
            return self._with_others(step, namespace)
        deadline_s = time.monotonic() + (STEP_TIMEOUT_S if step.eventually else 0)
        while (said := self._once(step, namespace)).code != step.code and time.monotonic() < deadline_s:
            time.sleep(LOOK_EVERY_S)
        return said

    def _once(self, step: Step, namespace: str) -> Said:
        with self._started(step.arguments, namespace, step.edit) as process:
            try:
                out, err = process.communicate(step.stdin.replace("{ns}", namespace), timeout=STEP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += "\n(it did not end)"
        return self._said(process.returncode, out, err, step)

    def _with_others(self, step: Step, namespace: str) -> Said:
        out, err = self._folder / "out", self._folder / "err"
        with out.open("w") as to_out, err.open("w") as to_err:
            command = self._command(step.arguments, namespace)
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err, env=self._environment("")
            )
            try:
                if step.lines:
                    _until(lambda: _lines(out) > 0 or process.poll() is not None)
                for arguments in step.meanwhile:
                    with self._started(arguments, namespace, "") as other:
                        other.communicate("", timeout=STEP_TIMEOUT_S)
                _until(lambda: process.poll() is not None or (0 < step.lines <= _lines(out)))
            finally:
                ended = process.poll()
                process.kill()
                process.wait()
        return self._said(ended or 0, out.read_text(), err.read_text(), step)

    def _command(self, arguments: str, namespace: str) -> list[str]:
        words = shlex.split(arguments.replace("{ns}", namespace).replace("{folder}", str(self._folder)))
        return [*self._fixed, f"--namespace={namespace}", *words]

    def _environment(self, edit: str) -> dict[str, str]:
        # With a suffix, because sed of a Mac demands one.
        editor = {"KUBE_EDITOR": f"sed -i.before {shlex.quote(edit)}"} if edit else {}
        return {"PATH": "/usr/bin:/bin", "HOME": str(self._folder), "TZ": "UTC", **editor}

    def _started(self, arguments: str, namespace: str, edit: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = self._command(arguments, namespace)
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self._environment(edit))

    def _said(self, code: int, out: str, err: str, step: Step) -> Said:
        out, err = (normalise(text.replace(str(self._folder), "<folder>")) for text in (out, err))
        return Said(code, *(_sorted(text) if step.any_order else text for text in (out, err)))


def _sorted(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _lines(file: Path) -> int:
    return file.read_text().count("\n")


def _until(is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + STEP_TIMEOUT_S
    while not is_true() and time.monotonic() < deadline_s:
        time.sleep(LOOK_EVERY_S)
