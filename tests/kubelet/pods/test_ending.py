"""What a guest printed reaches people without what it must not have printed."""

import base64
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from applecart.api.containers import Container, EnvSource, EnvVar, ExecAction, KeySelector, Probe
from applecart.api.core import Secret
from applecart.api.meta import ObjectMeta, document
from applecart.api.pods import RUNNING, SUCCEEDED, Pod, PodSpec
from applecart.clock import Clock
from applecart.observe.logs import setup_logging
from tests.kubelet.incidents.scene import scene
from tests.kubelet.world import IMAGE, NAMESPACE, NODE

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
