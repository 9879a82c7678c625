"""A real kube-apiserver as the API under test.

Compaction is done as the API server's own compactor does it: in etcd, and told to every API server through the key that they
watch for it. Their caches follow about a second later, so `compact` waits until an old continue token is refused.
"""

import asyncio
import base64
import itertools
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from applecart.api.core import ConfigMap
from applecart.api.meta import ObjectMeta
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import Expired
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kubernetes.cluster import FullCluster

COMPACT_KEY = b"compact_rev_key"  # where API servers agree on what was compacted
COMPACT_WITHIN_S = 30.0  # their caches look once a second; thirty of those on a busy machine
LOOK_EVERY_S = 0.1

_strangers = itertools.count(1)


class KubernetesBackend(Backend):
    def __init__(self, client: Client, namespace: str, cluster: FullCluster) -> None:
        super().__init__(client, namespace)
        self.cluster = cluster

    @classmethod
    async def connected(cls, clock: Clock, cluster: FullCluster, namespace: str) -> AsyncIterator["KubernetesBackend"]:
        client = Client(connect(str(cluster.kubeconfig), None, clock, environ={}), clock)
        try:
            yield cls(client, namespace, cluster)
        finally:
            await client.aclose()

    async def stranger(self) -> Client:
        credentials = self.cluster.issue_client(f"stranger-{next(_strangers)}", "stranger")
        return Client(connect(str(credentials.kubeconfig), None, self.client.clock, environ={}), self.client.clock)

    async def compact(self) -> None:
        for _ in range(2):  # a list needs two objects to have a second page
            await self.client.create(ConfigMap(metadata=ObjectMeta(generate_name="compact-", namespace=self.namespace)))
        old = self.client.pages(ConfigMap, self.namespace, page_size=1)
        token = (await anext(old)).metadata
        await old.aclose()
        await self.client.create(ConfigMap(metadata=ObjectMeta(generate_name="compact-", namespace=self.namespace)))
        await compact_etcd(self.cluster)
        async with asyncio.timeout(COMPACT_WITHIN_S):
            while not await self._is_forgotten(token.continue_):  # noqa: ASYNC110 (another process, nothing to wait on)
                await asyncio.sleep(LOOK_EVERY_S)

    async def _is_forgotten(self, token: str) -> bool:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        try:
            await self.client.call(Request("GET", path, (("limit", "1"), ("continue", token))))
        except Expired:
            return True
        return False


async def compact_etcd(cluster: FullCluster) -> None:
    """Forget every revision but the newest, and tell the API servers."""
    trust = cluster.files.trust
    context = ssl.create_default_context(cafile=str(trust.etcd_authority.certificate))
    context.load_cert_chain(trust.etcd_client.certificate, trust.etcd_client.key)
    key = base64.b64encode(COMPACT_KEY).decode()

    async with aiohttp.ClientSession(cluster.etcd_url) as session:

        async def ask(path: str, **body: Any) -> Any:
            async with session.post(path, json=body, ssl=context) as answer:
                answer.raise_for_status()
                return await answer.json()

        revision = (await ask("/v3/kv/range", key=key))["header"]["revision"]
        await ask("/v3/kv/put", key=key, value=base64.b64encode(str(revision).encode()).decode())
        await ask("/v3/kv/compaction", revision=revision)
