"""What a guest printed reaches people without what it must not have printed."""

import asyncio
import base64
import errno
import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from applecart.api.containers import Container, EnvSource, EnvVar, ExecAction, KeySelector, Probe
from applecart.api.core import Secret
from applecart.api.meta import ObjectMeta, document
from applecart.api.pods import RUNNING, SUCCEEDED, Pod, PodSpec
from applecart.clock import Clock
from applecart.kubelet.pods.ending import KEPT_LOG_BYTES
from applecart.observe.logs import setup_logging
from tests.kubelet.incidents.scene import delete, job, scene, terminated
from tests.kubelet.killing import KillableFiles
from tests.kubelet.world import IMAGE, NAMESPACE, NODE, vm_pod
from tests.virtual_time import elapse

PASSWORD = "correct-horse-battery"


@pytest.fixture
def said(clock: Clock) -> Iterator[io.StringIO]:
    """The agent's log, as an operator reads it; logging is as it was afterwards."""
    root = logging.getLogger()
    level, others = root.level, list(root.handlers)
    stream = io.StringIO()
    setup_logging("info", "json", stream, clock)
    ours = [handler for handler in root.handlers if handler not in others]
    yield stream
    root.setLevel(level)
    for handler in ours:
        root.removeHandler(handler)


def talkative() -> Pod:
    """Its guest prints a value of a Secret into its log, and its readiness probe prints it again."""
    secret = EnvSource(secret_key_ref=KeySelector(name="s", key="k"))
    env = (
        EnvVar(name="APPLECART_SIM_RUN_SECONDS", value="60"),
        EnvVar(name="APPLECART_SIM_LOG", value_from=secret),
        EnvVar(name="POD", value="job-1"),
    )
    probe = Probe(exec=ExecAction(command=("sh", "-c", f"echo {PASSWORD} >&2; exit 1")))
    container = Container(name="runner", image=IMAGE, env=env, readiness_probe=probe)
    return Pod(metadata=ObjectMeta(name="job-1", namespace=NAMESPACE), spec=PodSpec(containers=(container,), node_name=NODE))


@pytest.mark.usefixtures("forgotten_secrets")
@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-agent", "next-agent"])
async def test_a_secret_that_a_guest_prints_is_masked_wherever_the_agent_speaks(
    is_restarted: bool, said: io.StringIO, tmp_path: Path, clock: Clock
) -> None:
    """I9: the end of a guest's log is repeated in the agent's own, where a password once stood in clear text."""
    async with scene(tmp_path, clock) as here:
        data = {"k": base64.b64encode(PASSWORD.encode()).decode()}
        await here.client.create(Secret(metadata=ObjectMeta(name="s", namespace=NAMESPACE), data=data))
        here.start_agent()
        await here.create(talkative())
        await here.until_phase("job-1", RUNNING)
        if is_restarted:
            await here.kill_agent()
            here.start_agent()
        pod = await here.until_phase("job-1", SUCCEEDED)
        events = await here.events("job-1")
        assert "runner log" in said.getvalue()
        assert "job-1" in said.getvalue()  # what is no secret stays readable
        assert any(event.reason == "Unhealthy" for event in events)
        kept = (tmp_path / "vm-log" / "ci-job-1.guest.log").read_text()
        assert "is up" in kept
        for seen in (said.getvalue(), kept, str(document(pod)["status"]), str([event.message for event in events])):
            assert PASSWORD not in seen


RUNNER_LOG = "userdata/ci-job-1/status/runner.log"
KEPT_LOG = "vm-log/ci-job-1.guest.log"


@pytest.mark.usefixtures("forgotten_secrets")
async def test_the_token_that_a_guest_copied_at_its_boot_is_masked_in_its_kept_log(tmp_path: Path, clock: Clock) -> None:
    """I9: an image copies the token once; hours later another one lies in the guest's folder, and the first is still good."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(automount_service_account_token=True, service_account_name="default"))
        await here.until_phase("job-1", RUNNING)
        token = tmp_path / "userdata" / "ci-job-1" / "sa_token"
        first = token.read_text()
        await here.kill_agent()
        here.start_agent()  # it replaces the token at once
        await elapse(60)
        assert token.read_text() != first
        (tmp_path / RUNNER_LOG).write_text(f"curl -H 'Authorization: Bearer {first}'\n")
        await delete(here)
        await here.until_gone("job-1")
        assert (tmp_path / KEPT_LOG).read_text().startswith("curl -H 'Authorization: Bearer ***'\n")


@pytest.mark.parametrize("is_folder_gone", [True, False], ids=["folder-gone", "disk-full"])
async def test_an_end_is_told_although_the_log_of_its_guest_cannot_be_kept(
    is_folder_gone: bool, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job had ended and its Pod stayed Running, for a copy of its log that nobody had asked for."""
    write = KillableFiles.write

    def full(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name.endswith(".guest.log"):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(files, path, data, mode)

    if not is_folder_gone:
        monkeypatch.setattr(KillableFiles, "write", full)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / RUNNER_LOG).write_text("hello\n")
        if is_folder_gone:
            (tmp_path / "vm-log").rename(tmp_path / "cleaned")
        pod = await here.until_phase("job-1", SUCCEEDED, within_s=180)
        assert terminated(pod).exit_code == 0
        assert not (tmp_path / KEPT_LOG).exists()


async def test_of_a_log_that_is_too_long_to_be_kept_whole_lines_are_kept(tmp_path: Path, clock: Clock) -> None:
    """I9: the first line of what is kept was cut in two, and so may a secret in it have been, which nobody then recognises."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / RUNNER_LOG).write_bytes(b"begun " + b"x" * KEPT_LOG_BYTES + b"\nlast\n")
        await here.until_phase("job-1", SUCCEEDED)
        assert (tmp_path / KEPT_LOG).read_bytes().startswith(b"last\n")


async def test_cleaning_a_long_log_is_no_work_of_the_event_loop(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a second for what a guest may print, and the heartbeat of the node would wait for it."""
    in_a_thread = asyncio.to_thread
    cleaned: list[object] = []

    async def noted(act: Callable[..., object], *args: object) -> object:
        cleaned.extend(args)
        return await in_a_thread(act, *args)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / RUNNER_LOG).write_text("a long log\n")
        await here.until_phase("job-1", SUCCEEDED)
        assert any(str(text).startswith("a long log\n") for text in cleaned)
