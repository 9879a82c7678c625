"""The simulated Macs of `applecart up`: who their agents are, and what becomes of Macs that are not there any more."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from applecart.api.core import Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.api.node_access import ACCOUNT_NAMESPACE, POD_NAMESPACE
from applecart.api.nodes import Node
from applecart.cli.up.mac_access import agent_user, grant, needed
from applecart.cli.up.macs import mac_names, retire, until_ready
from applecart.clock import Clock
from applecart.embedded.controllers.controller_manager import add_controllers
from applecart.kube.client import Client
from applecart.kube.errors import Forbidden, NotFound
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from applecart.sim.fleet import FleetMac
from tests.kube.embedded_api import serving, token_keys


def secret(namespace: str) -> Secret:
    return Secret(metadata=ObjectMeta(name="pull", namespace=namespace))


async def test_an_agent_may_do_what_a_real_host_may_and_no_more(clock: Clock) -> None:
    async with serving(clock) as api:
        admin = Client(api.transport(), clock)
        agent = Client(api.transport(agent_user("mac-1")), clock)
        for namespace in (POD_NAMESPACE, ACCOUNT_NAMESPACE):
            await admin.create(secret(namespace))
        with pytest.raises(Forbidden):
            await agent.list(Node)
        await grant(admin, ["mac-1"])
        await agent.create(Node(metadata=ObjectMeta(name="mac-1")))
        assert await agent.get(Secret, Key(POD_NAMESPACE, "pull"))
        with pytest.raises(Forbidden):
            await agent.get(Secret, Key(ACCOUNT_NAMESPACE, "pull"))
        with pytest.raises(Forbidden):
            await agent.list(Secret, POD_NAMESPACE)
        with pytest.raises(Forbidden):
            await agent.delete(Node, Key("", "mac-1"))


async def test_rights_are_granted_again_at_every_start(clock: Clock) -> None:
    """A start finds what the one before it wrote, also when somebody edited it."""
    async with serving(clock) as api:
        admin = Client(api.transport(), clock)
        await grant(admin, ["mac-1"])
        role = needed(["mac-1"])[0]
        await admin.patch(type(role), role.key, Merge({"rules": []}))
        await grant(admin, ["mac-1", "mac-2"])
        for machine in ("mac-1", "mac-2"):
            assert await Client(api.transport(agent_user(machine)), clock).list(Node) == []


def test_the_name_of_an_agent_fits_a_certificate() -> None:
    """On a kube-apiserver it shows one, whose names have 64 bytes."""
    for machine in mac_names(50):
        user = agent_user(machine)
        assert all(len(name.encode()) <= 64 for name in (user.name, *user.groups))


async def test_nodes_of_macs_that_an_earlier_start_had_are_gone_and_others_stay(tmp_path: Path, clock: Clock) -> None:
    async with serving(clock) as api:
        admin = Client(api.transport(), clock)
        for name in ("mac-1", "mac-2", "mac-7", "linux-1"):
            await admin.create(Node(metadata=ObjectMeta(name=name)))
        for name in ("mac-1", "mac-2", "mac-3"):
            (tmp_path / "macs" / name).mkdir(parents=True)
        await retire(admin, tmp_path, ["mac-1"])
        left = {node.name for node in await admin.list(Node)}
        assert left == {"mac-1", "mac-7", "linux-1"}, "mac-7 has no folder here, so it is somebody else's"
        with pytest.raises(NotFound):
            await admin.get(Node, Key("", "mac-2"))


async def test_a_mac_that_does_not_come_up_is_named_and_waited_for_no_longer(tmp_path: Path, clock: Clock) -> None:
    async with serving(clock) as api:
        admin = Client(api.transport(), clock)
        macs = [FleetMac(tmp_path / name, name, admin, clock) for name in mac_names(2)]
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await admin.create(Node(metadata=ObjectMeta(name="mac-1")))
        await admin.patch_status(Node, Key("", "mac-1"), Merge({"status": ready}))
        before_s = clock.monotonic()
        assert await until_ready(admin, macs, within_s=5.0) == ["mac-1", "mac-2"], "what an earlier agent wrote does not count"
        assert clock.monotonic() - before_s == pytest.approx(5.0, abs=0.1)
        assert await until_ready(admin, []) == []


async def test_a_mac_joins_with_what_the_manifests_in_deploy_grant_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    """The page said `the roles of applecart.api.node_access`, which nobody can apply."""
    deploy = Path(__file__).parents[3] / "deploy" / "rbac"
    manifests = (deploy / "tart-kubelet.yaml").read_text(), (deploy / "mac-1.yaml").read_text().replace("mac-1", "mac-7")
    async with serving(clock) as api:
        admin = Client(api.transport(), clock)
        manager = Manager(admin)
        add_controllers(manager, b"authority", token_keys(), with_scheduler=False)
        working = [asyncio.create_task(manager.run())]
        for body in (body for text in manifests for body in yaml.safe_load_all(text)):
            await admin.call(Request("POST", path_of(body), body=msgspec.json.encode(body)))
        mac = FleetMac(tmp_path, "mac-7", Client(api.transport(agent_user("mac-7")), clock), clock)
        working.append(asyncio.create_task(mac.run()))
        assert await until_ready(admin, [mac], within_s=60.0) == []
        token = (await admin.get(Secret, Key("kube-system", "tart-kubelet-mac-7-token"))).value("token")
        assert token is not None
        assert b"system:serviceaccount:kube-system:tart-kubelet-mac-7" in token_keys().verified(token.reveal())
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


def path_of(body: dict[str, Any]) -> str:
    api = body["apiVersion"]
    root = f"/apis/{api}" if "/" in api else f"/api/{api}"
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{body['kind'].lower()}s" if namespace else f"{root}/{body['kind'].lower()}s"
