"""The environment of a Pod's one container, resolved before its VM is made.

First what `envFrom` brings, then `env`, which wins, in the order in which the Pod lists them. A value that came from a Secret
stays one. What a guest could never be given is refused by a sentence; keys of `envFrom` that are no names of variables are left
out and told, as every kubelet does. An outage of the API passes through as it is.
"""

from applecart.api.containers import EnvFrom, EnvVar
from applecart.api.core import ConfigMap, Secret
from applecart.api.pods import Pod
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kubelet.guest.config_sources import ConfigSources, Source
from applecart.kubelet.guest.downward import field_value, resource_value
from applecart.kubelet.guest.env_file import is_variable_name
from applecart.kubelet.guest.expansion import Value, expanded
from applecart.observe.logs import logger

log = logger(__name__)


async def environment(client: Client, pod: Pod, node: str, node_ip: str) -> dict[str, Value]:
    """Name to value. Raises `MissingConfig` for what may still come and `BadInput` for what can never work."""
    sources = ConfigSources(client, pod)
    container = pod.spec.containers[0]
    values: dict[str, Value] = {}
    for whole in container.env_from:
        values |= await _of_whole(sources, whole)
    for variable in container.env:
        if not is_variable_name(variable.name):
            raise BadInput(f"{variable.name!r} in the environment of Pod {pod.key} is no name of a variable; rename it")
        if variable.value_from is None or variable.value:
            values[variable.name] = expanded(variable.value, values)
            continue
        value = await _referred(sources, variable, node, node_ip)
        if value is not None:
            values[variable.name] = value
    return values


async def _of_whole(sources: ConfigSources, whole: EnvFrom) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for kind, ref in ((Secret, whole.secret_ref), (ConfigMap, whole.config_map_ref)):
        source = await sources.whole(kind, ref) if ref is not None else None
        if source is not None:
            values |= _named(sources.pod, whole.prefix, source)
    return values


def _named(pod: Pod, prefix: str, source: Source) -> dict[str, Value]:
    values = {prefix + key: value for key, value in source.texts.items()}
    left_out = sorted({*source.not_text, *(name for name in values if not is_variable_name(name))})
    if left_out:
        log.warning("keys that cannot be variables are left out", object=pod, source=source.title, keys=left_out)
    return {name: value for name, value in values.items() if is_variable_name(name)}


async def _referred(sources: ConfigSources, variable: EnvVar, node: str, node_ip: str) -> Value | None:
    pod, source = sources.pod, variable.value_from
    assert source is not None
    if source.secret_key_ref is not None:
        return await sources.one(Secret, source.secret_key_ref)
    if source.config_map_key_ref is not None:
        return await sources.one(ConfigMap, source.config_map_key_ref)
    if source.field_ref is not None:
        return field_value(pod, source.field_ref.field_path, node, node_ip, variable.name)
    if source.resource_field_ref is not None:
        return resource_value(pod, source.resource_field_ref, variable.name)
    raise BadInput(f"variable {variable.name} of Pod {pod.key} comes from a source that this node does not know; remove it")
