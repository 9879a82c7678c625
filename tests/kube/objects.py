"""Small objects that every API server accepts, for tests of the client and what stands on it."""

from applecart.api.apps import Deployment, DeploymentSpec
from applecart.api.containers import Container
from applecart.api.core import ConfigMap
from applecart.api.meta import LabelSelector, ObjectMeta
from applecart.api.pods import Pod, PodSpec, PodTemplate


def config_map(
    namespace: str,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    **data: str,
) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or {}, finalizers=finalizers), data=data)


def pod(namespace: str, name: str, *, node_name: str = "", labels: dict[str, str] | None = None) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or {}), spec=_pod_spec(node_name))


def deployment(namespace: str, name: str, *, replicas: int = 1) -> Deployment:
    labels = {"app": name}
    template = PodTemplate(metadata=ObjectMeta(labels=labels), spec=_pod_spec())
    return Deployment(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template),
    )


def _pod_spec(node_name: str = "") -> PodSpec:
    return PodSpec(containers=(Container(name="main", image="none"),), node_name=node_name)
