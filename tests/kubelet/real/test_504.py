"""Incident 1 with the agent as it runs on a Mac: 504 finished Pods, deleted and held by our finalizer, on real APIs.

How long it takes is measured by `make bench ROWS='kubelet 504*'`; here it is what becomes of them, and by which calls.
"""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from applecart.api import finalizers
from applecart.api.meta import Key
from applecart.api.pods import SUCCEEDED, Pod
from applecart.kube.cache import Change
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.kubelet.real.agent_process import AgentProcess
from tests.kubelet.real.apis import Api, agent_user
from tests.kubelet.real.conftest import StartsAgents
from tests.kubelet.real.following import WITHIN_S, following
from tests.kubelet.real.pods import STUCK, finish, finished_pod, stick

THEIRS = "example.com/billing"
LAST = "/readyz"  # which nobody else asks here
LOOK_EVERY_S = 0.02


async def bystanders(api: Api) -> None:
    """Pods that must be there afterwards."""
    elsewhere = finished_pod("elsewhere", api.namespace, "another-mac")
    shared = finished_pod("shared", api.namespace, api.node, THEIRS)
    await finish(api.client, [elsewhere, shared])
    await finish(api.client, [finished_pod("undeleted", api.namespace, api.node)], is_deleted=False)


async def all_go(api: Api, agent: AgentProcess) -> None:
    stuck = await stick(api.client, api.namespace, api.node)
    await bystanders(api)
    shared, kept = Key(api.namespace, "shared"), [Key(api.namespace, name) for name in ("elsewhere", "undeleted")]
    assert len(stuck) == STUCK
    assert agent.journal() == []  # it never met them: all it has to go by is the API
    async with following(api.client, Pod, agent, api.namespace) as pods:
        agent.start()

        def are_gone() -> bool:
            found = pods.get(shared)
            is_released = found is not None and finalizers.VM_CLEANUP not in found.metadata.finalizers
            return is_released and len(pods.informer) == 1 + len(kept)

        await pods.until(are_gone, f"{STUCK} Pods are gone")
        assert_one_step_each(pods.changes, stuck)
        elsewhere, undeleted = (pods.get(key) for key in kept)
        assert elsewhere is not None
        assert undeleted is not None
        assert finalizers.VM_CLEANUP in elsewhere.metadata.finalizers  # not ours to touch (design: who may touch what)
        assert undeleted.status.phase == SUCCEEDED
        assert not undeleted.is_being_deleted
        rest = pods.get(shared)
        assert rest is not None
        assert rest.metadata.finalizers == (THEIRS,)
        await api.client.patch(Pod, shared, Merge({"metadata": {"finalizers": None}}))
        await pods.until(lambda: pods.get(shared) is None, "the last owner let go")
    assert agent.exit_code is None
    assert agent.stop() == 0
    assert agent.journal() == []
    assert agent.boots == []
    assert {call[0] for call in agent.tart_calls()} <= {"list"}, "a finished Pod needs nothing of Tart"


def assert_one_step_each(changes: list[Change[Pod]], stuck: list[Key]) -> None:
    """Each Pod just went: its finalizer was removed once, and nothing else was written to it on the way."""
    seen = Counter(change.key for change in changes)
    assert {key: seen[key] for key in stuck if seen[key] != 1} == {}


async def requests(api: Api) -> list[dict[str, Any]]:
    """All that were answered until now. They are noted in order, a little later: the last one is ours and says so."""
    assert api.requests is not None
    await api.client.call(Request("GET", LAST))
    async with asyncio.timeout(WITHIN_S):
        while LAST not in (text := api.requests.read_text()):  # noqa: ASYNC110 (a file of a thread)
            await asyncio.sleep(LOOK_EVERY_S)
    return [json.loads(line) for line in text[: text.rindex("\n")].splitlines()]


@pytest.mark.real_time
async def test_504_finished_pods_lose_their_finalizer_and_go(embedded: Api, agent_of: StartsAgents) -> None:
    """Incident 1: "it has ended" was asked before "it is being deleted", and 504 Pods stayed for four days."""
    agent = agent_of(embedded)
    await all_go(embedded, agent)
    ours = [call for call in await requests(embedded) if call["user"] == agent_user(embedded.node)]
    about_pods = [call for call in ours if f"/namespaces/{embedded.namespace}/pods/" in call["path"]]
    # One write per Pod, and the object goes with it: no second call that could be refused (incident 14), none repeated.
    assert Counter(call["method"] for call in about_pods) == {"PATCH": STUCK + 1}
    assert {call["status"] for call in about_pods} == {200}
    assert len({call["path"] for call in about_pods}) == STUCK + 1
    methods = [call["method"] for call in ours if "/pods" in call["path"]]
    assert methods[0] == "GET", "it looks before it writes"


@pytest.mark.kubernetes
async def test_504_finished_pods_go_from_a_real_kubernetes(real: Api, agent_of: StartsAgents) -> None:
    """Incident 1 where it happened: on kube-apiserver."""
    await all_go(real, agent_of(real))
