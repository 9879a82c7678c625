"""What a Pod needs next, in an order that is the lesson of an outage.

Deletion is looked at before anything else: 504 finished Pods once stayed for four days because "it has ended" was asked first,
and nobody removed the finalizer any more (I5). A finished Pod never boots again (I4), and the finalizer is durable before
anything exists that it guards (I2). Reads nothing and changes nothing; `reconciler.py` carries the act out.
"""

from enum import StrEnum

from applecart.api import finalizers
from applecart.api.pods import Pod
from applecart.kubelet.entry import JournalEntry, Stage


class Act(StrEnum):
    FINISH_DELETION = "finish the deletion"
    CLEAR_AWAY = "clear away what a finished Pod left"
    NOTHING = "nothing"
    REFUSE = "refuse the Pod"
    GUARD = "set the finalizer"
    PUBLISH_END = "publish the end"
    LIVE = "keep its VM alive and its status true"


def next_act(pod: Pod, entry: JournalEntry | None, is_unsupported: bool) -> Act:
    """For a Pod that the API has. One that it has no longer leaves only its entry, which is torn down."""
    if pod.is_being_deleted:
        return Act.FINISH_DELETION
    if pod.is_terminal:
        return Act.CLEAR_AWAY if entry is not None and entry.stage is not Stage.REMOVED else Act.NOTHING
    if entry is None and is_unsupported:
        return Act.REFUSE  # without a finalizer: there will be nothing to guard
    if finalizers.VM_CLEANUP not in pod.metadata.finalizers:
        return Act.GUARD
    if entry is not None and entry.exit is not None:
        return Act.PUBLISH_END
    return Act.LIVE
