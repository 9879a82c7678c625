"""How long to wait before the next attempt: pure arithmetic, shared by calls, watches and work queues."""

import random

import msgspec


class Pace(msgspec.Struct, frozen=True):
    """Waits that double from `first_s` up to `longest_s`."""

    first_s: float
    longest_s: float

    def wait_s(self, failures: int, chance: random.Random) -> float:
        """The wait after so many failures in a row (1 or more).

        Between half and the whole of the doubled step, so that clients that failed together do not come back together.
        """
        exponent = min(max(failures, 1) - 1, 60)  # 2**60 steps are beyond any cap; more would overflow a float
        step_s = min(self.first_s * 2.0**exponent, self.longest_s)
        return step_s * (0.5 + chance.random() / 2)
