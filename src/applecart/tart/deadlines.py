"""How long each Tart command may take before it is killed (I13).

The figures leave a slow but healthy host alone: a delete of a large disk takes minutes, a `get` never takes seconds. Pulls and
pushes have no total, because a 40 GB image over a thin line may take hours; they are killed when they stand still.
"""

import msgspec


class Deadlines(msgspec.Struct, frozen=True):
    pull_stall_s: float = 300  # neither output nor bytes on disk for this long
    push_stall_s: float = 900  # a push shows whole percents only, and one of 40 GB takes minutes on a thin line
    clone_s: float = 300
    set_s: float = 60
    stop_s: float = 120  # at least; longer when the grace is
    stop_beyond_grace_s: float = 30
    delete_s: float = 300
    get_s: float = 30
    list_s: float = 30
    ip_s: float = 15  # beyond the wait that was asked for
    prune_s: float = 300

    def for_stop(self, grace_s: float) -> float:
        return max(self.stop_s, grace_s + self.stop_beyond_grace_s)
