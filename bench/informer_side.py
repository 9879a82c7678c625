"""What one run of one side tells."""

import msgspec


class Measured(msgspec.Struct, frozen=True):
    ready_s: float  # from the start of the process to all Pods in memory
    list_s: float
    held_bytes: int  # memory grown by holding the Pods, after the changes
    events_per_s: float


def report(measured: Measured) -> None:
    print(msgspec.json.encode(measured).decode(), flush=True)
