"""Deployment, as far as we touch one.

The provider spreads one Deployment over the hosts of a fleet: it annotates the Pod template when the set of hosts changes, and
reads the progress so that it never starts a second roll inside the first. Nothing of ours runs Deployments.
"""

from datetime import datetime

from applecart.api.containers import IntOrString
from applecart.api.meta import LabelSelector, Object, Part, Resource
from applecart.api.pods import PodTemplate


class RollingUpdate(Part):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DeploymentStrategy(Part):
    type: str | None = None  # the API's default is RollingUpdate
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Part):
    replicas: int | None = None  # the API's default is 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    strategy: DeploymentStrategy | None = None
    paused: bool = False


class DeploymentCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None


class DeploymentStatus(Part):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[DeploymentCondition, ...] = ()


class Deployment(Object):
    resource = Resource("apps", "v1", "Deployment", "deployments")

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()
