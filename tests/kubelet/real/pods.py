"""Pods of the agent's node: one that becomes a VM, and those that an outage left behind: finished, deleted, held by us."""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from applecart.api import finalizers
from applecart.api.containers import Container, EnvVar
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import SUCCEEDED, Pod, PodSpec
from applecart.kube.client import Client
from applecart.kube.patch import Strategic

STUCK = 504  # of the outage
AT_ONCE = 16
IMAGE = "ghcr.io/acme/runner@sha256:" + "a" * 64


def vm_pod(name: str, namespace: str, node: str, env: Mapping[str, str] | None = None, grace_s: int = 1) -> Pod:
    """Bound to the node. The simulated guest listens to variables of its own."""
    told = tuple(EnvVar(name=key, value=value) for key, value in (env or {}).items())
    container = Container(name="runner", image=IMAGE, env=told)
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodSpec(containers=(container,), node_name=node, termination_grace_period_seconds=grace_s),
    )


def finished_pod(name: str, namespace: str, node: str, *more_finalizers: str) -> Pod:
    pod = vm_pod(name, namespace, node)
    held_by = (finalizers.VM_CLEANUP, *more_finalizers)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=held_by))


async def finish(client: Client, pods: Iterable[Pod], *, is_deleted: bool = True) -> None:
    """Create them, let them succeed, and delete them."""
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(pod: Pod) -> None:
        async with permits:
            made = await client.create(pod)
            await client.patch_status(Pod, made.key, Strategic({"status": {"phase": SUCCEEDED}}))
            if is_deleted:
                await client.delete(Pod, made.key)

    async with asyncio.TaskGroup() as group:
        for pod in pods:
            group.create_task(one(pod))


async def stick(client: Client, namespace: str, node: str, count: int = STUCK) -> list[Key]:
    pods = [finished_pod(f"stuck-{number:03}", namespace, node) for number in range(count)]
    await finish(client, pods)
    return [pod.key for pod in pods]
