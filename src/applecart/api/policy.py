"""PodDisruptionBudget: how many of some Pods must stay when Pods are evicted.

The spec is a person's, the status a controller's; an eviction takes one off `disruptions_allowed` and notes the Pod.
"""

from datetime import datetime

from applecart.api.meta import Condition, LabelSelector, Object, Part, Resource


class PodDisruptionBudgetSpec(Part):
    min_available: int | str | None = None  # one of the two; a text is a percentage
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None  # an empty one chooses all Pods of the namespace, none at all chooses none
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Part):
    observed_generation: int = 0
    disrupted_pods: dict[str, datetime] = {}  # evicted, and their deletion not seen yet
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object):
    resource = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
