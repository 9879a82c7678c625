"""What the provider exports about machines and stray servers."""

from typing import Final

from applecart.api.metric_names import counter, gauge

MACHINE_PHASE: Final = gauge(
    "capt_scaleway_applesilicon_machine_phase",
    "1 for the phase a machine is in; exactly one series per machine, gone with the machine.",
    "machine",
    "fleet",
    "phase",
    "failure_reason",
)
ORPHAN_SERVERS: Final = gauge("scaleway_orphan_servers", "Servers that are paid for but belong to no machine and no pool.")
ORPHAN_SERVERS_RECLAIMED: Final = counter("scaleway_orphan_servers_reclaimed_total", "Stray servers returned to their pool.")
