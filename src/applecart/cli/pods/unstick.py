"""`applecart pods unstick`: free Pods that are being deleted and wait for an agent that will not come.

Shows first what it would do and what it leaves alone; changes something only after --yes or a yes at the prompt. Takes off our
finalizer and nothing else, only from Pods that were shown, and then looks until they are gone. Needs no agent and no component
of ours to be at work.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Set

import click
import msgspec

from applecart.api.pods import Pod
from applecart.cli.pods.survey import Scope, Survey, survey
from applecart.cli.pods.unstick_text import findings, results
from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.stuck_pods import ReleaseOutcome, release_all

STALE_AFTER_S = 5.0  # a person thought about it: a Node may be back meanwhile, so look again
LOOK_EVERY_S = 0.5
GONE_WITHIN_S = 30.0  # freed Pods go at once; more only helps those that others hold too

Ask = Callable[[int], bool]  # whether to go on with so many Pods


@click.command("unstick")
@click.option("-n", "--namespace", metavar="NAME", help="Only Pods of this namespace; else that of the context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@click.option("--node", metavar="NAME", help="Only Pods of this Node.")
@click.option("--missing-nodes-only", is_flag=True, help="Leave Pods that ended on Nodes that exist to their agents.")
@click.option("--kubeconfig", metavar="FILE", help="Use this file instead of KUBECONFIG, the Pod or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Use this context instead of the current one.")
@click.option("-y", "--yes", is_flag=True, help="Do it; without it, show what would be done.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=GONE_WITHIN_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to look whether they go.",
)
def command(
    namespace: str | None,
    all_namespaces: bool,
    node: str | None,
    missing_nodes_only: bool,
    kubeconfig: str | None,
    context: str | None,
    yes: bool,
    wait_s: float,
) -> int:
    """Free Pods that are being deleted and wait for an agent that will not come.

    Exit code 0 when all of them are gone, or nothing was to be done; 1 when one is still there.

    \b
    Example:
      applecart pods unstick --all-namespaces
      applecart pods unstick --namespace tuist-runners --yes
    """
    if not wait_s >= 0:  # a range lets pass what is no number
        raise BadInput("--wait nan is no time; give a number of seconds")
    if all_namespaces and namespace is not None:
        raise BadInput("give either --namespace or --all-namespaces")
    for option, value in (("--namespace", namespace), ("--node", node)):
        if value is not None and not value.strip():
            raise BadInput(f"{option} is empty; name one, or leave the option out")
    scope = Scope("" if all_namespaces else namespace, node or "", not missing_nodes_only)
    return asyncio.run(_connected(kubeconfig, context, scope, yes, wait_s))


async def _connected(kubeconfig: str | None, context: str | None, scope: Scope, yes: bool, wait_s: float) -> int:
    clock = SystemClock()
    transport = connect(kubeconfig, context, clock)
    client = Client(transport, clock)
    if scope.namespace is None:
        scope = msgspec.structs.replace(scope, namespace=transport.endpoint.namespace)

    def ask(count: int) -> bool:
        if yes:
            return True
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return False
        return _confirmed(f"Free them ({count}) at {transport.endpoint.server}?")

    try:
        return await unstick(client, scope, clock, ask, wait_s=wait_s)
    finally:
        await client.aclose()


def _confirmed(question: str) -> bool:
    """Ctrl-C ends the command: asyncio would only cancel a task, which does not run while the prompt waits."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question)
    finally:
        signal.signal(signal.SIGINT, handler)


async def unstick(client: Client, scope: Scope, clock: Clock, ask: Ask, *, wait_s: float = GONE_WITHIN_S) -> int:
    """All of the command but the connection; its exit code."""
    found = await survey(client, scope, clock)
    looked_at_s = clock.monotonic()
    click.echo(findings(found, scope, clock.now()))
    if not found.plan:
        return 0
    if not ask(len(found.plan)):
        click.echo("\nNothing was changed; add --yes to free them.")
        return 0
    started_s = clock.monotonic()
    if started_s - looked_at_s > STALE_AFTER_S:
        found = await again(client, scope, clock, {step.uid for step in found.plan})
    progress = Progress(len(found.plan))
    outcomes = await release_all(client, found.plan, lambda pod: found.judge(pod, scope, clock), told=progress.told)
    progress.end()
    freed = {outcome.uid for outcome in outcomes if outcome.released}
    remaining = await still_there(client, scope.namespace or "", freed, wait_s)
    click.echo("\n" + results(outcomes, remaining, clock.monotonic() - started_s))
    return 0 if not remaining and len(freed) == len(outcomes) else 1


async def again(client: Client, scope: Scope, clock: Clock, shown: Set[str]) -> Survey:
    """What still qualifies of what the person saw."""
    found = await survey(client, scope, clock)
    return msgspec.structs.replace(found, plan=[step for step in found.plan if step.uid in shown])


async def still_there(client: Client, namespace: str, uids: Set[str], within_s: float) -> list[Pod]:
    """Those that did not go in time."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + within_s
    while uids:
        left = [pod for pod in await client.list(Pod, namespace) if pod.uid in uids]
        if not left or loop.time() >= give_up_at:
            return left
        await asyncio.sleep(LOOK_EVERY_S)
    return []


class Progress:
    """A line that counts, for a person who looks on; nothing where nobody does."""

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._done = 0
        self._is_shown = sys.stderr.isatty()

    def told(self, outcome: ReleaseOutcome) -> None:
        self._done += 1
        if self._is_shown:
            click.echo(f"\rfreeing {self._done} of {self._whole}", nl=False, err=True)

    def end(self) -> None:
        if self._is_shown:
            click.echo(err=True)
