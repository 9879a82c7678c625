"""Lease: who holds something, and when they last said so.

Used for leader election and for the heartbeat of a Node. The two times are MicroTime: strings on the wire and in the
struct, instants through `acquired_at` and `renewed_at`.
"""

from datetime import datetime

from applecart.api.meta import Object, Part, Resource, instant


class LeaseSpec(Part):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None  # write it with meta.micro_time
    renew_time: str | None = None  # write it with meta.micro_time
    lease_transitions: int | None = None


class Lease(Object):
    resource = Resource("coordination.k8s.io", "v1", "Lease", "leases")

    spec: LeaseSpec = LeaseSpec()

    @property
    def holder(self) -> str:
        """Empty when nobody holds it."""
        return self.spec.holder_identity or ""

    @property
    def acquired_at(self) -> datetime | None:
        return instant(self.spec.acquire_time or "")

    @property
    def renewed_at(self) -> datetime | None:
        return instant(self.spec.renew_time or "")
