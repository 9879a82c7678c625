"""A fleet of which one host is lost, with Pods that are stuck and Pods that must stay as they are."""

from applecart.kube.client import Client
from tests.kube.stuck import THEIRS, add_node, store, store_many

KEPT = {"living-running", "theirs", "not-deleted"}


async def stuck_fleet(client: Client, namespace: str, living: str, many: int) -> None:
    """Half of them on a Node that exists, half on one that does not, and Pods that must stay as they are."""
    await add_node(client, living)
    await store_many(client, [f"living-{number}" for number in range(many // 2)], namespace, living)
    await store_many(client, [f"lost-{number}" for number in range(many - many // 2)], namespace, "mac-gone")
    await store(client, "living-running", namespace=namespace, on=living, phase="Running")
    await store(client, "theirs", namespace=namespace, on="mac-gone", finalizers=(THEIRS,))
    await store(client, "not-deleted", namespace=namespace, on="mac-gone", deleted=False)
