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
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded
from applecart.kube.auth import exec_plugin as module
from applecart.kube.auth.exec_plugin import (
    V1,
    V1BETA1,
    ExecCredentials,
    ExecFields,
    ExecPlugin,
    ExecPluginFailed,
    cluster_info,
    credential_from,
    exec_plugin,
    exited,
    missing,
    refresh_at,
    shown_stderr,
)
from applecart.kube.auth.kubeconfig import KubeconfigEntry
from applecart.kube.endpoint import Endpoint
from tests.kube.kubeconfigs import b64

ENTRY = KubeconfigEntry("user", "robot", Path("/fleet/config"), {})
PLACE = 'the exec plugin aws (field exec.command of user "robot" in /fleet/config)'
ENDPOINT = Endpoint(server="https://a:6443", server_from="a test", ca_pem="-----BEGIN", tls_server_name="api.test")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.real_time

ENVIRON = {"PATH": os.environ["PATH"]}
FOREVER_S = 100_000  # a sleep that only a signal ends


def plugin(cluster: dict[str, Any] | None = None, **fields: Any) -> ExecPlugin:
    wanted = {"apiVersion": V1, "command": "aws", **fields}
    return exec_plugin(msgspec.convert(wanted, ExecFields), ENTRY, cluster or {})


def answer(status: Any, version: str = V1, kind: str = "ExecCredential") -> bytes:
    return json.dumps({"apiVersion": version, "kind": kind, "status": status}).encode()


@pytest.mark.parametrize(
    ("command", "resolved"),
    [("aws", "aws"), ("./bin/aws", "/fleet/bin/aws"), ("bin/aws", "/fleet/bin/aws"), ("/opt/aws", "/opt/aws")],
)
def test_a_command_with_a_slash_is_relative_to_the_kubeconfig(command: str, resolved: str) -> None:
    assert plugin(command=command).command == resolved


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_a_plugin_learns_its_version_and_that_nobody_is_there_to_answer_questions(version: str) -> None:
    assert json.loads(plugin(apiVersion=version).info) == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


def test_a_plugin_that_asks_learns_the_cluster_and_its_own_extension() -> None:
    told = plugin(cluster_info(ENDPOINT, {"audience": "mac-fleet"}), provideClusterInfo=True)
    assert json.loads(told.info)["spec"]["cluster"] == {
        "server": "https://a:6443",
        "tls-server-name": "api.test",
        "certificate-authority-data": b64("-----BEGIN"),
        "config": {"audience": "mac-fleet"},
    }


def test_a_plugin_that_does_not_ask_learns_nothing_of_the_cluster() -> None:
    assert "cluster" not in json.loads(plugin(cluster_info(ENDPOINT, None)).info)["spec"]


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"command": ""}, "field exec.command of {user} is missing"),
    ({"apiVersion": ""}, "field exec.apiVersion of {user} must be"),
    ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "field exec.apiVersion of {user} must be"),
    ({"interactiveMode": "Always"}, "field exec.interactiveMode of {user} is Always, but applecart has no terminal"),
    ({"interactiveMode": "Maybe"}, "field exec.interactiveMode of {user} must be Never, IfAvailable or Always"),
    ({"env": [{"name": ""}]}, "field exec.env of {user} holds a variable without a usable name"),
    ({"env": [{"name": "A=B"}]}, "field exec.env of {user} holds a variable without a usable name"),
    ({"args": ["\0"]}, "field exec of {user} holds a character that no command line can carry"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD_FIELDS, ids=range(len(BAD_FIELDS)))
def test_a_wrong_exec_field_is_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        plugin(**fields)
    assert str(caught.value).startswith(sentence.replace("{user}", 'user "robot" in /fleet/config'))


def test_an_extension_that_holds_itself_is_told() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(BadInput, match="is not plain data"):
        plugin(cluster_info(ENDPOINT, loop), provideClusterInfo=True)


def test_a_token_and_its_end_are_taken() -> None:
    found = credential_from(answer({"token": "token-of-the-plugin", "expirationTimestamp": "2026-01-01T01:00:00Z"}), plugin())
    assert found.authorization() == "Bearer token-of-the-plugin"
    assert found.expires_at == datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert found.source == f"token of {PLACE}"


def test_a_certificate_is_taken() -> None:
    status = {"clientCertificateData": "-----BEGIN chain", "clientKeyData": "-----BEGIN key of plugin"}
    found = credential_from(answer(status), plugin())
    assert found.certificate is not None
    assert found.certificate.key_pem.reveal() == "-----BEGIN key of plugin"
    assert found.authorization() is None


BAD_ANSWERS: list[tuple[bytes, str]] = [
    (b"", "answered nothing"),
    (b"not json", "answered something that is not JSON"),
    (b"\xff\xfe", "answered something that is not JSON"),
    (b'{"status":' * 100_000, "answered something that is not JSON"),
    (b"[]", "answered JSON that is no ExecCredential"),
    (answer({"token": 7}), "answered an ExecCredential whose field status.token has the wrong form"),
    (
        answer({"token": "a", "expirationTimestamp": "tomorrow"}),
        "answered an ExecCredential whose field status.expirationTimestamp has the wrong form",
    ),
    (
        answer({"token": "a", "expirationTimestamp": "2026-01-01T00:00:00"}),
        "answered a field status.expirationTimestamp without a time zone",
    ),
    (answer({"token": "a"}, kind="Pod"), f"did not answer an ExecCredential of {V1}"),
    (answer({"token": "a"}, version=V1BETA1), f"did not answer an ExecCredential of {V1}"),
    (answer(None), "answered without a credential: fields status.token and status.clientCertificateData are empty"),
    (answer({}), "answered without a credential"),
    (answer({"clientCertificateData": "a"}), "answered only one of status.clientCertificateData and status.clientKeyData"),
    (answer({"token": "a\nb"}), "answered a field status.token that cannot stand in a header"),
    (answer({"token": " "}), "answered a field status.token that cannot stand in a header"),
]


@pytest.mark.parametrize(("stdout", "problem"), BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_a_wrong_answer_is_one_sentence_with_the_field_and_the_hint(stdout: bytes, problem: str) -> None:
    with pytest.raises(ExecPluginFailed) as caught:
        credential_from(stdout, plugin(installHint="Update it\nwith brew."))
    assert str(caught.value).startswith(f"{PLACE} {problem}")
    assert str(caught.value).endswith("; Update it with brew.")


@given(st.binary(max_size=60) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(answer))
def test_no_answer_causes_anything_but_that_sentence(stdout: bytes) -> None:
    try:
        credential_from(stdout, plugin())
    except ExecPluginFailed as error:
        complaint = str(error)
    else:
        complaint = PLACE
    assert complaint.startswith(PLACE)


@given(st.integers(1, 10**7), st.integers(0, 10**7))
def test_a_credential_is_refreshed_before_its_end_and_is_used_for_most_of_its_life(life_s: int, offset_s: int) -> None:
    fetched_at = NOW + timedelta(seconds=offset_s)
    expires_at = fetched_at + timedelta(seconds=life_s)
    due = refresh_at(fetched_at, expires_at)
    assert fetched_at < due < expires_at
    assert (due - fetched_at) >= 0.9 * timedelta(seconds=life_s)
    assert expires_at - due <= timedelta(minutes=1)


def test_a_credential_that_had_already_ended_is_due_at_once() -> None:
    assert refresh_at(NOW, NOW - timedelta(hours=1)) <= NOW


def test_a_plugin_that_is_not_there_is_told_with_its_field_and_hint() -> None:
    sentence = str(missing(plugin(installHint="brew install awscli"), "not found in PATH"))
    assert sentence == f"{PLACE} cannot be started (not found in PATH); brew install awscli"


@pytest.mark.parametrize(("status", "ending"), [(3, "exited with status 3"), (-9, "was ended by signal 9")])
def test_a_failed_plugin_is_told_with_what_it_said(status: int, ending: str) -> None:
    assert str(exited(plugin(), status, b"no\nsession\n")) == f"{PLACE} {ending} and said: no session"
    assert str(exited(plugin(), status, b"")) == f"{PLACE} {ending}"


@pytest.mark.parametrize(
    "leak",
    [
        "token: abc123",
        'password="hunter2"',
        "client_secret=hunter2",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb2JvdCJ9.c2lnbmF0dXJl",
        "AKIAIOSFODNN7EXAMPLEKEY",
        "4f1ad0c9a1f94c9ea3f8b7d2c6e5f001",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ],
)
def test_what_looks_like_a_secret_in_its_complaint_is_masked(leak: str) -> None:
    secret = leak.split("=", 1)[-1].split(": ")[-1].strip('"')
    shown = shown_stderr(f"login failed for {leak} at sts".encode(), plugin())
    assert secret not in shown
    assert shown.startswith("login failed for ")
    assert shown.endswith(" at sts")


def test_a_secret_of_its_environment_is_masked_and_ordinary_settings_are_not() -> None:
    told = plugin(env=[{"name": "CLIENT_SECRET", "value": "s3same"}, {"name": "AWS_PROFILE", "value": "fleet-prod"}])
    assert shown_stderr(b"profile fleet-prod: bad s3same", told) == "profile fleet-prod: bad ***"


def test_ordinary_words_and_paths_of_a_complaint_stay() -> None:
    said = "error: cannot open /usr/local/lib/python3.11/site-packages/botocore: connection to sts.eu-west-1.amazonaws.com lost"
    assert shown_stderr(said.encode(), plugin()) == said


def test_only_the_end_of_a_long_complaint_is_shown() -> None:
    shown = shown_stderr(b"noise " * 1000 + b"the reason", plugin())
    assert shown.startswith("...")
    assert shown.endswith("the reason")
    assert len(shown) < 400


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
