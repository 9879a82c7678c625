"""The program `tart-kubelet`: flags in, an agent that runs until it is told to stop, sentences for everything that is wrong.

Ends with 0 when it is asked to stop, 2 for a flag or file that is wrong, 1 for everything else; launchd starts it again. VMs
are not touched by its end.
"""

import asyncio
import gc
import os
import signal
import sys
from contextlib import AsyncExitStack
from typing import NoReturn

from applecart.clock import Clock, SystemClock
from applecart.errors import ApplecartError, only_one
from applecart.kube.background import uncancelled
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kubelet.agent import Agent
from applecart.kubelet.assembly import make_folders
from applecart.kubelet.node.addresses import metrics_bind, node_address
from applecart.kubelet.only_agent import only_agent
from applecart.kubelet.option_values import host_and_port
from applecart.kubelet.options import PROGRAM, Options, parse
from applecart.observe.logs import logger, setup_logging
from applecart.observe.metrics import Metrics
from applecart.observe.open_files import raise_limit
from applecart.observe.serve import ObserveServer
from applecart.observe.standard_streams import replace_closed_streams
from applecart.secrets import redact
from applecart.tart.files import Files
from applecart.tart.this_mac import ThisMac

HEARTBEAT_LATE_S = 60.0  # the control plane takes a Node for lost soon after

log = logger(__name__)


class EndedByItself(ApplecartError):
    """An agent without a task is a host without an agent."""


def main() -> NoReturn:
    replace_closed_streams()
    gc.set_threshold(50_000, 20, 100)  # Python's default collects every 700 objects: an eighth of the time of a start
    code = run(sys.argv[1:])
    gc.freeze()  # what is left goes with the process; nobody needs to look through it first
    sys.exit(code)


def run(argv: list[str]) -> int:
    try:
        options = parse(argv, os.environ)
        setup_logging(options.log_level, options.log_format)
        os.umask(0o077)  # everything it writes is its owner's alone
        asyncio.run(serve(options, SystemClock()))
    except SystemExit:  # of the parser of flags, which has said why
        raise
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # also what is no Exception: a sentence and a code are told whatever ended it
        return _tell(only_one(error))
    return 0


async def serve(options: Options, clock: Clock) -> None:
    """Run the agent until SIGINT or SIGTERM."""
    for sentence in options.warnings:
        log.warning(sentence)
    raise_limit()
    make_folders(options, Files())
    with only_agent(options.state_dir):
        await _serve(options, clock)


async def _serve(options: Options, clock: Clock) -> None:
    mac = ThisMac()
    address = await node_address(mac, given=options.node_ip, source=options.node_ip_source)
    client = Client(connect(options.kubeconfig, options.context, clock), clock)
    metrics = Metrics()
    metrics.add_process(clock)
    agent = Agent(options, address, client, mac, clock, metrics, needs_gui_session=sys.platform == "darwin")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.aclose)
        stack.push_async_callback(agent.aclose)
        bind = metrics_bind(options.metrics_bind_address, source=options.node_ip_source, address=address)
        await _serve_page(stack, agent, metrics, bind, "--metrics-bind-address")
        if options.health_probe_bind_address != bind:
            # Health is for everybody who can reach the host; names of VMs and pools are not.
            flag = "--health-probe-bind-address"
            await _serve_page(stack, agent, metrics, options.health_probe_bind_address, flag, has_metrics=False)
        log.info("started", node=options.node_name, address=address, tart=options.tart_binary)
        await _until_told(asyncio.create_task(agent.run()))


async def _serve_page(
    stack: AsyncExitStack, agent: Agent, metrics: Metrics, where: str, flag: str, *, has_metrics: bool = True
) -> None:
    """`0` instead of an address switches the page off."""
    bind = host_and_port(where)
    if bind is not None:
        host, port = bind
        ready = {"heartbeat": lambda: _heartbeat(agent), "tasks": agent.background.down}
        page = ObserveServer(metrics, host=host or "0.0.0.0", port=port, ready=ready, flag=flag, has_metrics=has_metrics)
        await stack.enter_async_context(page)


def _heartbeat(agent: Agent) -> str | None:
    age_s = agent.registration.lease.age_s if agent.registration else None
    if age_s is None:
        return "the Node was not registered yet"
    return f"the last heartbeat that arrived is {age_s:.0f} s old" if age_s > HEARTBEAT_LATE_S else None


async def _until_told(running: "asyncio.Task[None]") -> None:
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    waiting = asyncio.create_task(told.wait())
    try:
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await uncancelled(running)
            raise EndedByItself("the agent ended although nobody asked it to")
    finally:
        running.cancel()
        waiting.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)


def _tell(error: BaseException) -> int:
    text = " ".join(redact(str(error)).split())
    if isinstance(error, ApplecartError):
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        return error.exit_code
    log.error("the agent ended unexpectedly", exc_info=error)
    sys.stderr.write(f"{PROGRAM}: unexpected {type(error).__name__}: {text}\n")
    return 1
