"""How often Python looks for cycles, and among what: the same for whatever runs for long, and for its benchmarks."""

import gc


def collect_rarely() -> None:
    """Python's default is every 700 objects, in the middle of requests: an eighth of a start, and half of a large list."""
    gc.set_threshold(50_000, 20, 100)


def pass_over_what_is_there() -> None:
    """What was loaded and listed stays; looking at it again in every collection would pause the loop."""
    gc.collect()
    gc.freeze()
