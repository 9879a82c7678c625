"""What every handler needs, in one place."""

from dataclasses import dataclass

from applecart.clock import Clock
from applecart.embedded.reader import Reader
from applecart.embedded.server.access import Access
from applecart.embedded.server.registry import Registry
from applecart.embedded.store.store import Store


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator or a test may choose."""

    tracks_all_fields: bool = False  # managedFields of every write, not only of objects that were applied once
    needs_service_accounts: bool = False  # a Pod's ServiceAccount must exist, and is `default` when none is named


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    store: Store
    registry: Registry
    reader: Reader
    clock: Clock
    access: Access
    settings: Settings
