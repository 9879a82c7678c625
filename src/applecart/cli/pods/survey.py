"""What `applecart pods unstick` finds: the Pods that can be freed, and those that are left alone and why.

Reads only. Whether a Node is gone is asked of the API by name, as in the sweep that components run; a person may name the Node,
which counts where the API lists no Node at all.
"""

import msgspec

from applecart.api.core import Namespace
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.errors import Forbidden, NotFound
from applecart.kube.stuck_pods import Keep, Unstick, confirmed_gone, is_held, judge, listed_nodes, suspected_nodes


class Scope(msgspec.Struct, frozen=True):
    """Which Pods a person means."""

    namespace: str | None = None  # "" for all, None for that of the connection
    node: str = ""  # "" for any
    finished_too: bool = True  # also Pods that ended on Nodes that exist

    def __str__(self) -> str:
        where = f"in namespace {self.namespace}" if self.namespace else "in any namespace"
        return f"{where} on Node {self.node}" if self.node else where


class Survey(msgspec.Struct, frozen=True):
    plan: list[Unstick]
    kept: list[Keep]  # being deleted, and left alone
    living: int  # Pods that are not being deleted
    gone: frozenset[str]  # Nodes
    notice: str = ""

    def judge(self, pod: Pod, scope: Scope, clock: Clock) -> Unstick | Keep:
        """The same verdict, of a Pod that changed meanwhile."""
        return judge(pod, self.gone, clock.now(), finished_too=scope.finished_too)


async def survey(client: Client, scope: Scope, clock: Clock) -> Survey:
    if scope.namespace:
        await _check_namespace(client, scope.namespace)
    pods = [pod for pod in await client.list(Pod, scope.namespace or "") if scope.node in ("", pod.spec.node_name)]
    held = [pod for pod in pods if is_held(pod)]
    named = {pod.spec.node_name for pod in held if pod.spec.node_name}
    notice = ""
    if scope.node:
        suspects = named
    else:
        nodes = await listed_nodes(client) if named else set()
        suspects = suspected_nodes(held, nodes)
        if named and not nodes:
            notice = f"the API lists no Node at all, so none counts as gone; say --node {min(named)} if you know that it is"
    gone = frozenset(await confirmed_gone(client, suspects))
    now = clock.now()
    dying = [pod for pod in pods if pod.is_being_deleted]
    verdicts = [judge(pod, gone, now, finished_too=scope.finished_too) for pod in sorted(dying, key=lambda pod: pod.key)]
    return Survey(
        plan=[verdict for verdict in verdicts if isinstance(verdict, Unstick)],
        kept=[verdict for verdict in verdicts if isinstance(verdict, Keep)],
        living=len(pods) - len(dying),
        gone=gone,
        notice=notice,
    )


async def _check_namespace(client: Client, namespace: str) -> None:
    """The API lists the Pods of a namespace that does not exist as none, which would hide a slip of the pen."""
    try:
        await client.get(Namespace, Key("", namespace))
    except NotFound:
        raise BadInput(f"namespace {namespace!r} does not exist; correct --namespace or use --all-namespaces") from None
    except Forbidden:
        pass  # who may only see the Pods of it may go on
