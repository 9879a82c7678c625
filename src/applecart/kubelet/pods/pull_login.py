"""How Tart signs in to the registry of a Pod's image: the first of the Pod's imagePullSecrets that knows the registry.

A Secret that does not exist is skipped, as Kubernetes does: the registry may let everybody read, and says so itself if not.
"""

from applecart.api.core import Secret
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.tart.images import parse
from applecart.tart.registry_login import RegistryLogin, login_from_docker_config

DOCKER_CONFIG = ".dockerconfigjson"


async def pull_login(client: Client, pod: Pod) -> RegistryLogin | None:
    registry = parse(pod.spec.containers[0].image).host
    for reference in pod.spec.image_pull_secrets:
        try:
            secret = await client.get(Secret, Key(pod.namespace, reference.name))
        except NotFound:
            continue
        config = secret.value(DOCKER_CONFIG)
        what = f"Secret {secret.key}"
        if config is not None and (login := login_from_docker_config(config.reveal().encode(), registry, what)):
            return login
    return None
