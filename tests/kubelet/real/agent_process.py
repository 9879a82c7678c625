"""`tart-kubelet` as a process of its own, on a Mac whose Tart is the simulated executable.

The folders outlive the process, and so do the VMs. Every command that Tart was given is noted before it is carried out. Ends
only what it started: the agent by its process, the VMs by theirs.
"""

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from applecart.api.names import is_golden_vm
from applecart.kubelet.entry import JournalEntry
from applecart.kubelet.journal import Journal
from applecart.sim.tart.guest_life import Boot, read_boots, read_running
from applecart.sim.tart.store import Store
from applecart.tart.files import Files

PROGRAM = (str(Path(sys.executable).with_name("tart-kubelet")),)
SIMULATED_TART = str(Path(sys.executable).with_name("applecart-sim-tart"))
END_S = 60.0
LOG_SHOWN_BYTES = 4_000


class AgentProcess:
    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        node: str,
        *flags: str,
        program: Sequence[str] = PROGRAM,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.store = Store(folder / "tart")
        self.log = folder / "agent.log"
        self._calls = folder / "tart-calls"
        self._env = {**os.environ, **(env or {})}
        folders = [f"--{name}-dir={folder / name}" for name in ("state", "userdata", "vm-log")]
        pages = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--vnc-control-dir="]
        self._tart = self._noted_tart()
        self._argv = [
            *program, f"--kubeconfig={kubeconfig}", f"--node-name={node}", "--node-ip=127.0.0.1",
            f"--tart-binary={self._tart}", f"--tart-home={self.store.home}", *folders, *pages, *flags,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A new agent on the folders of the one before it."""
        assert self._process is None or self._process.poll() is not None, "an agent runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env)
        # Where a fault of the simulated Tart finds whom to kill.
        self.store.sim.mkdir(parents=True, exist_ok=True)
        (self.store.sim / "agent.pid").write_text(str(self._process.pid))

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._process is not None
        return self._process.poll()

    async def died(self) -> int:
        """Its exit code, once somebody ended it; minus the signal that did."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, END_S)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_S)

    def stop(self) -> int:
        """As launchd does; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(END_S)

    def close(self) -> None:
        """Nothing of it runs any more, its VMs included."""
        self.kill()
        for vm in self.store.running_names():
            if found := read_running(self.store, vm):
                os.kill(found.pid, signal.SIGKILL)

    def tart(self, *words: str) -> str:
        """What a person on the host would do."""
        argv, env = [str(self._tart), *words], {**self._env, "TART_HOME": str(self.store.home)}
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True, timeout=END_S).stdout

    # What a test looks at

    def tart_calls(self) -> list[list[str]]:
        """What was asked of Tart, in order, without the program's own name."""
        text = self._calls.read_text() if self._calls.exists() else ""
        return [shlex.split(line) for line in text.splitlines()]

    @property
    def boots(self) -> list[Boot]:
        return read_boots(self.store)

    def vms(self) -> list[str]:
        """Without goldens, which stay."""
        return [name for name in self.store.local_names() if not is_golden_vm(name)]

    def journal(self) -> list[JournalEntry]:
        return list(Journal(self.folder / "state", Files()))

    def last_words(self) -> str:
        return self.log.read_bytes()[-LOG_SHOWN_BYTES:].decode("utf-8", "replace") if self.log.exists() else ""

    def _noted_tart(self) -> Path:
        """The simulated Tart behind a script that notes what it is asked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        script = self.folder / "tart-noted"
        noted = shlex.quote(str(self._calls))
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{noted}\nexec {shlex.quote(SIMULATED_TART)} "$@"\n')
        script.chmod(0o755)
        return script


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
