"""One Pod on one simulated Mac, from creation to the end, as a person with kubectl would see it."""

from pathlib import Path

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from tests.kubelet.world import NAMESPACE, vm_pod, world


async def test_a_pod_becomes_a_running_vm_and_goes_with_it(tmp_path: Path, clock: Clock) -> None:
    async with world(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", "Running", within_s=600)
        assert here.mac.running() == ["ci-job-1"]
        assert pod.status.pod_ip.startswith("192.168.64.")
        await here.client.delete(Pod, Key(NAMESPACE, "job-1"))
        await here.until_gone("job-1")
        assert "ci-job-1" not in here.mac.vms()
        assert len(here.mac.boots) == 1
