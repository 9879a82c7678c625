"""Exec plugins as real processes: small scripts that answer, fail, hang, and count how often they run."""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded
from applecart.kube.auth import exec_plugin as module
from applecart.kube.auth.exec_plugin import ExecCredentials
from applecart.kube.auth.exec_protocol import V1, ExecFields, ExecPluginFailed, exec_plugin
from applecart.kube.auth.kubeconfig_entry import KubeconfigEntry

pytestmark = pytest.mark.real_time

ENVIRON = {"PATH": os.environ["PATH"]}
FOREVER_S = 100_000  # a sleep that only a signal ends


class Script:
    """A plugin in a folder of its own. Each run leaves a line in `runs`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock

    def write(self, body: str, name: str = "plugin") -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho run >> "{self.folder}/runs"\n{body}\n')
        path.chmod(0o755)

    def answer(self, status: dict[str, Any]) -> None:
        """What the plugin answers from now on."""
        document = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        (self.folder / "answer").write_text(json.dumps(document))
        self.write(f'cat "{self.folder}/answer"')

    def credentials(self, deadline_s: float = 30, **fields: Any) -> ExecCredentials:
        entry = KubeconfigEntry("user", "robot", self.folder / "config", {})
        wanted = msgspec.convert({"apiVersion": V1, "command": "./plugin", **fields}, ExecFields)
        return ExecCredentials(exec_plugin(wanted, entry, {}), self._clock, ENVIRON, deadline_s=deadline_s)

    @property
    def runs(self) -> int:
        runs = self.folder / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0


@pytest.fixture
def script(tmp_path: Path, clock: Clock) -> Script:
    return Script(tmp_path, clock)


def ends(after: timedelta) -> str:
    return f"{datetime.now(UTC) + after:%Y-%m-%dT%H:%M:%SZ}"


async def test_the_token_of_a_plugin_is_presented_and_kept(script: Script) -> None:
    script.answer({"token": "first-plugin-token"})
    credentials = script.credentials()
    first = await credentials.get()
    assert first.authorization() == "Bearer first-plugin-token"
    assert await credentials.get() is first
    assert script.runs == 1


async def test_many_calls_at_once_share_one_run(script: Script) -> None:
    script.answer({"token": "shared-plugin-token"})
    credentials = script.credentials()
    found = await asyncio.gather(*(credentials.get() for _ in range(50)))
    assert script.runs == 1
    assert len({id(credential) for credential in found}) == 1


async def test_many_calls_at_once_share_one_failure(script: Script) -> None:
    script.write("exit 1")
    credentials = script.credentials()
    found = await asyncio.gather(*(credentials.get() for _ in range(50)), return_exceptions=True)
    assert all(isinstance(error, ExecPluginFailed) for error in found)
    assert script.runs == 1


async def test_after_a_failure_the_next_call_tries_again(script: Script) -> None:
    script.write("exit 1")
    credentials = script.credentials()
    with pytest.raises(ExecPluginFailed):
        await credentials.get()
    script.answer({"token": "token-after-failure"})
    assert (await credentials.get()).authorization() == "Bearer token-after-failure"


async def test_a_refused_token_is_replaced_by_one_run_for_all_who_were_refused(script: Script) -> None:
    script.answer({"token": "first-plugin-token"})
    credentials = script.credentials()
    refused = await credentials.get()
    script.answer({"token": "second-plugin-token"})
    found = await asyncio.gather(*(credentials.get(rejected=refused) for _ in range(20)))
    assert {credential.authorization() for credential in found} == {"Bearer second-plugin-token"}
    await credentials.get(rejected=refused)
    assert script.runs == 2


async def test_a_token_is_replaced_shortly_before_it_ends(script: Script) -> None:
    script.answer({"token": "ending-plugin-token", "expirationTimestamp": ends(timedelta(seconds=-1))})
    credentials = script.credentials()
    await credentials.get()
    script.answer({"token": "lasting-plugin-token", "expirationTimestamp": ends(timedelta(hours=1))})
    assert (await credentials.get()).authorization() == "Bearer lasting-plugin-token"
    await credentials.get()
    assert script.runs == 2


async def test_the_plugin_gets_its_arguments_its_environment_and_the_exec_info(script: Script) -> None:
    script.write(
        f'printf "%s|%s|%s|%s" "$1" "$2" "$FLEET" "$KUBERNETES_EXEC_INFO" > "{script.folder}/seen"\n'
        f"""printf '{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{"token":"token-of-seen"}}}}'"""
    )
    await script.credentials(args=["get-token", "two words"], env=[{"name": "FLEET", "value": "macs"}]).get()
    first, second, fleet, info = (script.folder / "seen").read_text().split("|")
    assert (first, second, fleet) == ("get-token", "two words", "macs")
    assert json.loads(info) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_bare_name_is_found_in_the_path_that_the_entry_sets(script: Script) -> None:
    script.answer({"token": "token-from-path"})
    credentials = script.credentials(command="plugin", env=[{"name": "PATH", "value": f"{script.folder}:{ENVIRON['PATH']}"}])
    assert (await credentials.get()).authorization() == "Bearer token-from-path"


async def test_the_plugin_has_no_stdin_to_wait_for(script: Script) -> None:
    script.answer({"token": "token-without-stdin"})
    script.write(f'cat > /dev/null; cat "{script.folder}/answer"')
    assert (await script.credentials().get()).authorization() == "Bearer token-without-stdin"


async def test_a_missing_plugin_is_told_with_the_hint(script: Script) -> None:
    with pytest.raises(BadInput) as caught:
        await script.credentials(command="no-such-plugin", installHint="brew install it").get()
    assert str(caught.value) == (
        f'the exec plugin no-such-plugin (field exec.command of user "robot" in {script.folder}/config) '
        "cannot be started (not found in PATH); brew install it"
    )


async def test_a_file_that_is_not_executable_is_told(script: Script) -> None:
    (script.folder / "plugin").write_text("#!/bin/sh")
    with pytest.raises(BadInput, match="no such program, or not executable"):
        await script.credentials().get()


async def test_a_file_that_the_system_cannot_run_is_told(script: Script) -> None:
    (script.folder / "plugin").write_bytes(b"\x7fELF nonsense")
    (script.folder / "plugin").chmod(0o755)
    with pytest.raises(BadInput, match=r"cannot be started \(Exec format error\)"):
        await script.credentials().get()


async def test_a_plugin_that_fails_is_told_with_its_last_words_but_not_its_secrets(script: Script) -> None:
    script.write('echo "session of robot ended; token=hunter2hunter2" >&2; exit 3')
    with pytest.raises(ExecPluginFailed, match=r"exited with status 3 and said: session of robot ended; token=\*\*\*$"):
        await script.credentials().get()


async def test_what_a_plugin_prints_on_stdout_is_never_shown(script: Script) -> None:
    script.write('echo "hunter2hunter2"')
    with pytest.raises(ExecPluginFailed) as caught:
        await script.credentials().get()
    assert "hunter2" not in str(caught.value)


async def test_a_plugin_that_floods_both_pipes_is_read_to_its_end(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STDOUT_BYTES", 1000)
    script.write("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2")
    with pytest.raises(ExecPluginFailed, match="printed more than"):
        await script.credentials().get()


async def test_a_plugin_that_misses_its_deadline_is_killed(script: Script) -> None:
    script.write(f"exec sleep {FOREVER_S}")
    with pytest.raises(DeadlineExceeded, match=r"did not end within 0.05 s and was killed"):
        await script.credentials(deadline_s=0.05).get()


class Lifeline:
    """A pipe that whatever a script starts inherits: its end says that all of them are gone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lifeline"
        os.mkfifo(self.path)
        self._pipe: IO[str] | None = None

    async def started(self) -> None:
        """Once the script runs."""

        def first_line() -> None:
            self._pipe = self.path.open()
            self._pipe.readline()

        await asyncio.to_thread(first_line)

    async def all_gone(self) -> None:
        assert self._pipe is not None
        await asyncio.to_thread(self._pipe.read)
        self._pipe.close()


@pytest.mark.parametrize("ending", ["wait", "exit 0"], ids=["plugin-waits", "plugin-is-gone"])
async def test_closing_kills_a_plugin_with_everything_it_started(script: Script, ending: str) -> None:
    """Also when the plugin itself is gone and only its child still holds the pipes."""
    lifeline = Lifeline(script.folder)
    script.write(f'exec 3> "{lifeline.path}"\nsleep {FOREVER_S} &\necho started >&3\n{ending}')
    credentials = script.credentials()
    waiting = asyncio.create_task(credentials.get())
    await lifeline.started()
    await credentials.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await lifeline.all_gone()


async def test_a_caller_that_gives_up_does_not_end_the_run_that_others_wait_for(script: Script) -> None:
    script.answer({"token": "token-for-the-other"})
    script.write(f'while [ ! -e "{script.folder}/go" ]; do sleep 0.01; done; cat "{script.folder}/answer"')
    credentials = script.credentials()
    impatient, patient = asyncio.create_task(credentials.get()), asyncio.create_task(credentials.get())
    await asyncio.sleep(0)
    impatient.cancel()
    (script.folder / "go").touch()
    assert (await patient).authorization() == "Bearer token-for-the-other"
    assert impatient.cancelled()
    assert script.runs == 1


async def test_a_plugin_that_a_signal_ended_is_told_so(script: Script) -> None:
    script.write(f"kill -{int(signal.SIGTERM)} $$")
    with pytest.raises(ExecPluginFailed, match="was ended by signal 15"):
        await script.credentials().get()
