"""The DHCP server of the guests' network: 253 addresses, kept for a day after a guest is gone.

`sim/dhcpd_leases.json`. A host that makes more than 253 guests a day runs dry: a new guest then gets no address until a lease
expires. A halted guest keeps its lease, so an address proves nothing about whether its VM runs.
"""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from applecart.sim.tart.json_file import load, save

NETWORK = "192.168.64."
HOST_NUMBERS = range(2, 255)
LEASE_S = 86_400  # macOS's default; fleets that churn set 600


class Lease(msgspec.Struct, frozen=True):
    mac_address: str
    address: str
    expires_at: datetime


class Leases(msgspec.Struct):
    leases: list[Lease] = []
    lease_s: int = LEASE_S
    last_host_number: int = HOST_NUMBERS[-1]  # guests share their network in small test pools

    def address_of(self, mac_address: str, now: datetime) -> str | None:
        found = [lease for lease in self.leases if lease.mac_address == mac_address and lease.expires_at > now]
        return max(found, key=lambda lease: lease.expires_at).address if found else None

    def lease(self, mac_address: str, now: datetime) -> str | None:
        """The guest's own address again, or a free one; None when there is none."""
        address = self.address_of(mac_address, now) or self._free(now)
        if address is None:
            return None
        kept = [lease for lease in self.leases if lease.expires_at > now and lease.mac_address != mac_address]
        self.leases = [*kept, Lease(mac_address, address, now + timedelta(seconds=self.lease_s))]
        return address

    def _free(self, now: datetime) -> str | None:
        taken = {lease.address for lease in self.leases if lease.expires_at > now}
        pool = (f"{NETWORK}{number}" for number in HOST_NUMBERS if number <= self.last_host_number)
        return next((address for address in pool if address not in taken), None)


def read_leases(sim: Path) -> Leases:
    return load(sim / "dhcpd_leases.json", Leases) or Leases()


def write_leases(sim: Path, leases: Leases) -> None:
    save(sim / "dhcpd_leases.json", leases)
