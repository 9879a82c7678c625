"""What a Pod's status says does not wait for what else the node offers."""

from pathlib import Path

import msgspec
import pytest

from applecart.api import annotations as names
from applecart.api.pods import RUNNING
from applecart.clock import Clock
from applecart.kube.transport import Request
from tests.kube.faults import Fault, Says
from tests.kubelet.incidents.scene import cut_off, scene
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse


def _refuses_screens(request: Request) -> Fault | None:
    return Says(503) if request.method == "PATCH" and b"tuist.dev/vnc" in (request.body or b"") else None


async def test_a_screen_that_cannot_be_told_keeps_no_status_from_being_written(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The Pod stayed Pending for as long as an annotation about its screen was refused."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        wire.plan = _refuses_screens
        here.start_agent()
        pod = vm_pod()
        left_over = msgspec.structs.replace(pod.metadata, annotations={names.VNC_STATE: names.VNC_READY_VALUE})
        await here.create(msgspec.structs.replace(pod, metadata=left_over))
        pod = await here.until_phase("job-1", RUNNING, within_s=120)
        await elapse(60)
        assert names.VNC_STATE in pod.annotations
        assert "a Pod cannot be told where its screen is" in caplog.text
        wire.heal()
        await elapse(120)
        found = await here.pod("job-1")
        assert found is not None
        assert names.VNC_STATE not in found.annotations
