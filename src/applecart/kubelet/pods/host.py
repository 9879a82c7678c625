"""The Mac as the workers of its Pods see it: what they make VMs with, and where they keep things.

A bundle of parts and paths, nothing more. Each worker takes from it what it needs; none of them makes a part of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.events import Recorder
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.goldens import Goldens
from applecart.kubelet.gui_session import GuiSession
from applecart.kubelet.journal import Journal
from applecart.kubelet.metrics import KubeletMetrics
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.mac import Mac


@dataclass(frozen=True, slots=True)
class Host:
    node: str
    node_ip: str  # "" when it is not known
    userdata: Path  # one folder per VM, shared with its guest
    logs: Path  # what VMs printed
    boot_deadline_s: float
    mac: Mac
    tart: Tart
    home: Home
    files: Files
    journal: Journal
    goldens: Goldens
    gui: GuiSession
    has_screen: Callable[[Pod], bool]  # whose VMs are started so that people can look at them
    caches: CacheVolumes | None  # None where no volume is set aside for them
    client: Client
    events: Recorder
    metrics: KubeletMetrics
    clock: Clock
