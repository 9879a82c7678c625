"""The programs of a simulated Mac that are not Tart: its login session, its addresses, what it says about itself.

The screen's session comes back when loginwindow is started anew, unless auto-login is sealed; starting it anew ends every VM
that runs, because VMs live in that session. `killall` has nothing to signal when loginwindow is dead.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from applecart.sim.tart.host_facts import HostFacts
from applecart.sim.tart.kernel import Streams
from applecart.sim.tart.processes import ProcessTable
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.store import Store
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World
from applecart.tart.running import running_vms

LOGIN_S = 5.0  # from loginwindow to a session
NOT_FOUND = 113  # launchctl: no such domain


@dataclass
class Host:
    """What these programs read and change."""

    store: Store
    table: ProcessTable
    address: str = "10.0.0.11"
    tailscale_address: str = "100.64.0.11"
    loginwindow_is_dead: bool = False
    auto_login_is_sealed: bool = False

    def set_gui_session(self, *, exists: bool) -> None:
        facts = HostFacts.read(self.store.sim)
        facts.has_gui_session = exists
        facts.write(self.store.sim)

    def end_vms(self) -> None:
        for process in running_vms([it.shown() for it in self.table.all()], "tart").values():
            self.table.signal(process.pid, signal.SIGKILL)


async def run_on(host: Host, argv: Sequence[str], world: World) -> int:
    """Faults strike these programs by their name, too."""
    words = [argv[0].rpartition("/")[2], *argv[1:]]
    if words[:2] == ["sudo", "-n"]:
        words = words[2:]
    streams = world.streams
    try:
        await suffer(world, words[0] if words else "sudo", words[1:], "before")
    except Refused as refused:
        await streams.err(refused.text.encode(errors="replace") + b"\n")
        return refused.code
    match words:
        case ["launchctl", "print", domain]:
            return await _print_session(host, domain, streams)
        case ["launchctl", "kickstart", "-k", "system/com.apple.loginwindow"]:
            return await _start_loginwindow(host)
        case ["killall", *_, "loginwindow"]:
            if host.loginwindow_is_dead:
                await streams.err(b"No matching processes belonging to you were found\n")
                return 1
            return await _start_loginwindow(host)
        case ["tailscale", "ip", "-4"]:
            await streams.out(f"{host.tailscale_address}\n".encode())
            return 0
    text = FACTS[words[0]](host) if words and words[0] in FACTS else ""
    await streams.out(text.encode())
    return 0


def is_known(argv: Sequence[str]) -> bool:
    return argv[0].rpartition("/")[2] in NAMES


async def _print_session(host: Host, domain: str, streams: Streams) -> int:
    if not HostFacts.read(host.store.sim).has_gui_session:
        await streams.err(f"Bad request.\nCould not find domain for {domain.replace('/', ' : ')}\n".encode())
        return NOT_FOUND
    await streams.out(f"{domain} = {{\n\ttype = login\n\thandle = 100005\n\tsession = Aqua\n}}\n".encode())
    return 0


async def _start_loginwindow(host: Host) -> int:
    host.set_gui_session(exists=False)
    host.end_vms()
    host.loginwindow_is_dead = False
    if not host.auto_login_is_sealed:
        asyncio.get_running_loop().call_later(LOGIN_S, lambda: host.set_gui_session(exists=True))
    return 0


def _ifconfig(host: Host) -> str:
    return (
        "lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384\n\tinet 127.0.0.1 netmask 0xff000000\n"
        "bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500\n"
        "\tinet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255\n"
        "en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n"
        f"\tinet {host.address} netmask 0xffffff00 broadcast 10.0.0.255\n"
    )


FACTS: dict[str, Callable[[Host], str]] = {
    "ifconfig": _ifconfig,
    "ip": lambda host: f"2: eth0    inet {host.address}/24 brd 10.0.0.255 scope global eth0\n",
    "ps": lambda host: "  0.3  10240\n  4.2 102400\n 25.5 2097152\n",
    "sw_vers": lambda host: "15.5\n",  # asked with -productVersion only
    "uname": lambda host: "24.5.0\n",
    "sysctl": lambda host: "17179869184\n",
    "true": lambda host: "",
}
NAMES = frozenset({*FACTS, "sudo", "launchctl", "killall", "tailscale"})
