"""Small objects that every API server accepts, for tests of the client and what stands on it."""

from applecart.api.containers import Container
from applecart.api.core import ConfigMap
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.api.runners import RunnerPool, RunnerPoolSpec


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


def runner_pool(namespace: str, name: str, *, replicas: int = 1) -> RunnerPool:
    """A kind with a status and a scale; every server must be taught it first."""
    spec = RunnerPoolSpec(
        image="runner:1", fleet_selector="runners", dispatch_label="macos", runner_labels=("self-hosted",), replicas=replicas
    )
    return RunnerPool(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def _pod_spec(node_name: str = "") -> PodSpec:
    return PodSpec(containers=(Container(name="main", image="none"),), node_name=node_name)
