"""The parts of the agent that need nothing but each other: made here, run by `agent.py`."""

import os
from collections.abc import Callable

from applecart.api.pods import Pod
from applecart.api.well_known_names import KUBELET_EVENT_SOURCE
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.events import Recorder
from applecart.kube.runtime_metrics import RecorderMetrics
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.garbage.collect import Collector
from applecart.kubelet.garbage.look import Look, pods_on
from applecart.kubelet.goldens import Goldens
from applecart.kubelet.gui_session import GuiSession
from applecart.kubelet.journal import Journal
from applecart.kubelet.metrics import KubeletMetrics
from applecart.kubelet.options import Options
from applecart.kubelet.pods.host import Host
from applecart.observe.metrics import Metrics
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.mac import Mac

REMEMBERED_EVENTS = 512  # of the Pods of an hour; the agent is small


def make_folders(options: Options, files: Files) -> None:
    for flag, folder in (
        ("--state-dir", options.state_dir),
        ("--userdata-dir", options.userdata_dir),
        ("--vm-log-dir", options.vm_log_dir),
    ):
        try:
            files.make_folder(folder)
        except OSError as error:
            raise BadInput(
                f"{flag} {folder} cannot be made or is not this user's ({error.strerror}); make it and give it to the user the "
                "agent runs as, or name another folder"
            ) from None


def make_host(
    options: Options,
    node_ip: str,
    client: Client,
    mac: Mac,
    clock: Clock,
    metrics: Metrics,
    files: Files,
    has_screen: Callable[[Pod], bool],
    *,
    needs_gui_session: bool,
) -> Host:
    measured = KubeletMetrics(metrics, clock)
    tart = Tart(mac, options.tart_binary, options.tart_home, clock, on_call=measured.tart_called)
    home = Home(options.tart_home)
    journal = Journal(options.state_dir, files)
    gui = GuiSession(
        mac,
        files,
        clock,
        uid=os.getuid(),
        state=options.state_dir,
        tart_binary=options.tart_binary,
        is_needed=needs_gui_session,
        on_kick=measured.gui_session_kicked,
    )
    return Host(
        node=options.node_name,
        node_ip=node_ip,
        userdata=options.userdata_dir,
        logs=options.vm_log_dir,
        boot_deadline_s=options.boot_deadline,
        mac=mac,
        tart=tart,
        home=home,
        files=files,
        journal=journal,
        goldens=Goldens(tart, home, files, clock, options.state_dir),
        gui=gui,
        has_screen=has_screen,
        caches=_caches(options, mac, files, clock, measured, journal),
        client=client,
        events=Recorder(
            client,
            KUBELET_EVENT_SOURCE,
            clock,
            host=options.node_name,
            remembered=REMEMBERED_EVENTS,
            observer=RecorderMetrics(metrics, KUBELET_EVENT_SOURCE),
        ),
        metrics=measured,
        clock=clock,
    )


def make_collector(host: Host) -> Collector:
    look = Look(
        mac=host.mac,
        home=host.home,
        journal=host.journal,
        goldens=host.goldens,
        pods=pods_on(host.client, host.node),
        userdata=host.userdata,
        logs=host.logs,
        clock=host.clock,
    )
    return Collector(
        look=look,
        tart=host.tart,
        home=host.home,
        files=host.files,
        journal=host.journal,
        goldens=host.goldens,
        userdata=host.userdata,
        on_deleted=host.metrics.garbage_deleted,
    )


def _caches(
    options: Options, mac: Mac, files: Files, clock: Clock, metrics: KubeletMetrics, journal: Journal
) -> CacheVolumes | None:
    if options.runner_cache_root is None:
        return None
    return CacheVolumes(
        options.runner_cache_root,
        mac,
        files,
        clock,
        metrics.cache,
        cap_gib=options.cache_volume_cap_gib,
        cas_gib=options.cache_volume_cas_gib,
        entries=lambda: journal,
    )
