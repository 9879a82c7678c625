"""What the agent remembers of one Pod: how far its VM is, and how it ended.

An entry is written before the step it speaks of, so that an agent that was killed anywhere knows what may exist. It is the
agent's own memory: the API holds what others may rely on, and the mark inside a VM says whose it is.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from applecart.api.meta import Key


class Stage(StrEnum):
    """How far. Each promises what the agent may find after a crash."""

    ACCEPTED = "accepted"  # nothing but staged files
    CLONING = "cloning"  # a VM of our name may exist, perhaps without its mark; it is ours
    CLONED = "cloned"  # the VM exists, is marked, and was never started
    BOOTING = "booting"  # a run folder is taken; the VM may have started, and is never started in that folder again
    RUNNING = "running"  # it was started
    ENDED = "ended"  # it will not run again; how it ended is in the entry
    PUBLISHED = "published"  # the API holds the end, so the VM may go (I4)
    REMOVED = "removed"  # nothing is left on the host; the entry stays as long as the Pod, which must not boot again


class Exit(msgspec.Struct, frozen=True):
    """How the Pod ended, as its status will say."""

    phase: str  # Succeeded or Failed
    reason: str  # of the Pod
    message: str
    container_reason: str
    code: int
    signal: int = 0
    finished_at: datetime | None = None


class Trouble(msgspec.Struct, frozen=True):
    """Why the last attempt failed, and when the next one is (I10)."""

    failure: str  # the class, a word of `applecart.kubelet.pods.trouble`
    reason: str  # of the Pod's status
    sentence: str
    failures: int
    since: datetime  # the first failure of this class in a row
    next_attempt_at: datetime


class Lifetime(msgspec.Struct, frozen=True):
    """Of a token that a guest was given, by our clock."""

    issued_at: datetime
    expires_at: datetime


class JournalEntry(msgspec.Struct, frozen=True):
    uid: str
    namespace: str
    name: str
    vm: str
    stage: Stage
    accepted_at: datetime
    image: str = ""
    golden: str = ""  # the golden VM it was cloned from
    digest: str = ""
    secret_names: tuple[str, ...] = ()  # variables of the guest whose values must be seen nowhere (I9)
    token: Lifetime | None = None  # of the one that was staged; None for a guest without one
    is_marked: bool = False  # the VM bears its mark; until then a VM of our name is ours because a clone was begun
    run: int = 0  # number of the run folder; a start that came to nothing gets a new VM and a new number
    started_at: datetime | None = None  # when the VM was started; None again after a start that came to nothing
    booted_at: datetime | None = None  # when it first had an address
    address: str = ""
    delay_observed: bool = False  # the wait of this Pod is counted once, however often it is tried
    trouble: Trouble | None = None
    because: Exit | None = None  # why we end the VM, from its `finished_at` on; written before the VM is asked to stop
    exit: Exit | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def is_half_made(self) -> bool:
        """A clone was begun, and nobody knows how far it came."""
        return bool(self.golden) and not self.is_marked and self.stage is not Stage.REMOVED

    @property
    def may_have_vm(self) -> bool:
        return self.stage not in (Stage.ACCEPTED, Stage.REMOVED)
