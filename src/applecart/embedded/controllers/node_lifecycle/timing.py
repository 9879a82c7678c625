"""How patient the node lifecycle is. The defaults are those of the real controller; tests on a real cluster shorten them."""

import msgspec


class Timing(msgspec.Struct, frozen=True):
    look_every_s: float = 5.0
    grace_s: float = 50.0  # five missed renewals of a Lease
    startup_grace_s: float = 60.0  # for a Node whose agent never posted a status
    nodes_per_s: float = 0.1  # lost Nodes whose Pods may begin to leave; a wave of losses is more often ours than theirs
    slow_nodes_per_s: float = 0.01  # the same in a large zone of which more than half is lost
    deadline_s: float = 30.0  # for all calls about one Node or Pod (I13)

    @property
    def longest_gap_s(self) -> float:
        """Two looks further apart than this did not see what happened between them."""
        return 2 * self.look_every_s
