"""What the runners controller records as Events on a RunnerPool's Pods.

Each of them announces that a Pod is taken away, so that a person who looks for a vanished Pod finds the cause.
"""

from typing import Final

from applecart.api.reasons import normal, warning

POD_START_TIMED_OUT: Final = warning("RunnerPodStartTimedOut", "the Pod had a node but did not start in time; replaced")
POD_UNSCHEDULABLE: Final = warning("RunnerPodUnschedulable", "no node would take the Pod in time; replaced")
POD_RETIRED_FOR_NODE_DRAIN: Final = normal(
    "RunnerPodRetiredForNodeDrain", "the idle Pod's node is cordoned or going away; the Pod is made elsewhere"
)
