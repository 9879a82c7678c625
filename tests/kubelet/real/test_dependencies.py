"""What a host needs besides Python: four packages and what those need themselves. Nothing of the control plane.

The agent runs a Pod from its creation to its end, with its metrics page and its endpoint for logs, in a Python that refuses to
import anything else; afterwards it tells what it had imported.
"""

import asyncio
import json
import re
import sys
from importlib import metadata
from pathlib import Path

import aiohttp
import pytest

from applecart.api.meta import Key
from applecart.api.pods import RUNNING, Pod
from applecart.kube.transport import Request
from tests.kubelet.real import guarded_agent
from tests.kubelet.real.agent_process import free_port
from tests.kubelet.real.apis import Api
from tests.kubelet.real.conftest import StartsAgents
from tests.kubelet.real.following import following
from tests.kubelet.real.pods import vm_pod

OURS = ("aiohttp", "msgspec", "pyyaml", "prometheus-client")
NEVER = ("click", "rich", "cryptography", "jwt", "cel_expr_python", "asyncssh")  # needed elsewhere in this distribution
NOT_OF_A_HOST = ("applecart.cli", "applecart.embedded", "applecart.sim")


def with_their_needs(*names: str) -> set[str]:
    """The distributions and, without extras, whatever they need."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = _plain(todo.pop())
        if name in found:
            continue
        found.add(name)
        for need in metadata.requires(name) or []:
            wanted, _, marker = need.partition(";")
            if "extra ==" not in marker and _is_installed(wanted):
                todo.append(re.split(r"[\s<>=!~\[(]", wanted.strip(), maxsplit=1)[0])
    return found


def modules_of(distributions: set[str]) -> set[str]:
    return {
        module for module, owners in metadata.packages_distributions().items() if distributions & {_plain(o) for o in owners}
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_installed(wanted: str) -> bool:
    """A need with a marker for another platform or Python is not."""
    try:
        metadata.distribution(re.split(r"[\s<>=!~\[(]", wanted.strip(), maxsplit=1)[0])
    except metadata.PackageNotFoundError:
        return False
    return True


def test_the_needs_of_a_host_are_few() -> None:
    allowed = modules_of(with_their_needs(*OURS))
    assert {"aiohttp", "msgspec", "yaml", "prometheus_client", "yarl", "multidict"} <= allowed
    assert not allowed & set(NEVER)
    assert len(with_their_needs(*OURS)) < 20


@pytest.mark.real_time
async def test_the_agent_runs_with_four_packages(embedded: Api, agent_of: StartsAgents, tmp_path: Path) -> None:
    allowed = modules_of(with_their_needs(*OURS)) | {"applecart"}
    modules_file = tmp_path / "modules.json"
    program = (sys.executable, guarded_agent.__file__, json.dumps(sorted(allowed)), str(modules_file))
    port = free_port()
    flags = (*embedded.serving_flags, f"--metrics-bind-address=127.0.0.1:{port}", f"--vnc-control-dir={tmp_path / 'vnc'}")
    agent = agent_of(embedded, *flags, program=program)
    agent.start()
    key = Key(embedded.namespace, "job-1")
    async with following(embedded.client, Pod, agent, embedded.namespace) as pods:

        def runs() -> bool:
            pod = pods.get(key)
            return pod is not None and pod.status.phase == RUNNING

        await embedded.client.create(vm_pod("job-1", embedded.namespace, embedded.node))
        await pods.until(runs, "the VM runs")
        log = await embedded.client.call(Request("GET", f"/api/v1/namespaces/{key.namespace}/pods/{key.name}/log"))
        assert b"is up at" in log.body
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as page:
            assert "tart_kubelet_vm_boot_duration_seconds" in await page.text()
        await embedded.client.delete(Pod, key)
        await pods.until(lambda: pods.get(key) is None, "the Pod is gone")
    assert await asyncio.to_thread(agent.stop) == 0, agent.last_words()
    imported = json.loads(modules_file.read_text())
    tops = {name.partition(".")[0] for name in imported}
    assert "aiohttp" in tops
    assert tops - allowed - sys.stdlib_module_names == set()
    assert [name for name in imported if name.startswith(NOT_OF_A_HOST)] == []


@pytest.mark.real_time
async def test_a_host_that_serves_no_logs_does_not_load_the_server(
    embedded: Api, agent_of: StartsAgents, tmp_path: Path
) -> None:
    """Memory: aiohttp's server is loaded only where it is needed."""
    modules_file = tmp_path / "modules.json"
    allowed = modules_of(with_their_needs(*OURS)) | {"applecart"}
    agent = agent_of(embedded, program=(sys.executable, guarded_agent.__file__, json.dumps(sorted(allowed)), str(modules_file)))
    agent.start()
    async with following(embedded.client, Pod, agent, embedded.namespace) as pods:
        await embedded.client.create(vm_pod("job-1", embedded.namespace, embedded.node))
        await pods.until(lambda: bool(agent.boots), "the VM started")
    assert await asyncio.to_thread(agent.stop) == 0, agent.last_words()
    imported = json.loads(modules_file.read_text())
    assert [name for name in imported if name.startswith("aiohttp.web")] == []
