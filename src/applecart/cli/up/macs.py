"""The simulated Macs of `applecart up`: each a folder, a Mac, an agent with an identity and a serving certificate of its own.

They are Nodes like any other to kubectl, the scheduler and the controllers. Only in an API that `up` started: nothing here is
ever put into a cluster that somebody else runs.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from applecart.api import labels
from applecart.api.conditions import READY
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.cli.background import in_background
from applecart.cli.up.apis import AgentAccess
from applecart.cli.up.hello import FLEET
from applecart.cli.up.mac_access import agent_user, grant
from applecart.clock import Clock
from applecart.embedded.trust.pki import Authority, write_pair
from applecart.embedded.trust.private_file import make_private_folder
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.sim.fleet import LOOPBACK, FleetMac
from applecart.sim.tart.registry import PATH_VARIABLE

READY_WITHIN_S = 15.0  # they take a second; a machine that compiles something meanwhile takes its time
LOOK_EVERY_S = 0.05


def mac_names(count: int) -> list[str]:
    return [f"mac-{number}" for number in range(1, count + 1)]


@asynccontextmanager
async def running_macs(
    count: int, data: Path, admin: Client, access: AgentAccess, clock: Clock
) -> AsyncIterator[list[FleetMac]]:
    """`admin` gives the agents their rights and is not used by them."""
    machines = mac_names(count)
    await retire(admin, data, machines)
    if machines:
        await grant(admin, machines)
    async with AsyncExitStack() as stack:
        macs: list[FleetMac] = []
        for machine in machines:
            folder = data / "macs" / machine
            try:
                make_private_folder(folder)
                flags = [f"--node-labels={labels.FLEET}={FLEET}", *_endpoint_flags(folder, access.authority, clock)]
            except OSError as error:
                raise BadInput(
                    f"{folder} cannot be used for a simulated Mac ({error.strerror}); make it writable, name another folder "
                    "with --data, or start none with --macs 0"
                ) from None
            client = access.client_as(machine, agent_user(machine))
            stack.push_async_callback(client.aclose)
            env = {PATH_VARIABLE: str((data / "macs" / "registry.json").absolute())}
            macs.append(FleetMac(folder, machine, client, clock, flags=flags, env=env))
            await stack.enter_async_context(macs[-1].page)
        await stack.enter_async_context(in_background(*(mac.run for mac in macs)))
        yield macs


async def retire(admin: Client, data: Path, machines: Sequence[str]) -> None:
    """Macs of an earlier start that had more of them are gone for good, and so are their Nodes; their folders stay."""
    known = (folder.name for folder in (data / "macs").glob("mac-*"))
    for machine in sorted(set(known) - set(machines)):
        with suppress(NotFound):
            await admin.delete(Node, Key("", machine))


def _endpoint_flags(folder: Path, authority: Authority, clock: Clock) -> list[str]:
    """Logs, exec and usage, on any free port of loopback."""
    pair = write_pair(folder / "pki", "kubelet", authority.issue_server([LOOPBACK, "localhost"], clock.now()))
    callers = folder / "pki" / "callers.crt"
    callers.write_bytes(authority.certificate_pem)
    return [
        f"--kubelet-bind-address={LOOPBACK}:0",
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        f"--client-ca-file={callers}",
    ]


async def until_ready(admin: Client, macs: Sequence[FleetMac], within_s: float = READY_WITHIN_S) -> list[str]:
    """Those whose Node is not Ready by then. What an earlier start wrote into a Node does not count."""
    missing = [mac.name for mac in macs]
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while missing:
                ready = {node.name for node in await admin.list(Node) if _is_ready(node)}
                missing = [mac.name for mac in macs if mac.name not in ready or not mac.is_registered]
                if missing:
                    await asyncio.sleep(LOOK_EVERY_S)
    return missing


def _is_ready(node: Node) -> bool:
    ready = node.condition(READY)
    return ready is not None and ready.status == "True"
