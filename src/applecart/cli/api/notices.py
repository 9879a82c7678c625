"""What an operator should know before relying on the embedded API for more than it is made for."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_address

from applecart.observe.logs import logger

NODES_ADVISED = 100  # above, one process serves every watch of the fleet alone, and nothing takes over when it ends
LOOK_EVERY_S = 60.0  # fleets grow by the day

log = logger("applecart.cli.api")


def notice_of_exposure(host: str, port: int) -> str | None:
    """What is within reach of others when the API listens there; None on loopback."""
    if is_loopback(host):
        return None
    return (
        f"notice: port {port} of {host} is reachable from other machines. Whoever holds a kubeconfig or a token of this API "
        "can use it from there, Secrets included, as far as its roles allow; let only your hosts and people through to it"
    )


def notice_of_size(nodes: int) -> str | None:
    if nodes <= NODES_ADVISED:
        return None
    return (
        f"this API serves {nodes} Nodes; above {NODES_ADVISED} it is wiser to move to a kube-apiserver: "
        "applecart up --api binaries, and applecart api export"
    )


async def watch_size(count: Callable[[], int]) -> None:
    """Say it once, when it becomes true."""
    while (notice := notice_of_size(count())) is None:  # noqa: ASYNC110 - a look a minute is all it is worth
        await asyncio.sleep(LOOK_EVERY_S)
    log.warning(notice)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
