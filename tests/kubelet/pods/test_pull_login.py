"""Which credential a pull gets: the first imagePullSecret that knows the registry."""

import base64
import json

import pytest

from applecart.api.containers import Container
from applecart.api.core import Secret
from applecart.api.meta import ObjectMeta
from applecart.api.pods import LocalReference, Pod, PodSpec
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kubelet.pods.pull_login import pull_login
from tests.kube.embedded_api import serving

REGISTRY = "ghcr.io"


def pod(*secrets: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="job", namespace="ci"),
        spec=PodSpec(
            containers=(Container(name="runner", image=f"{REGISTRY}/acme/runner:1"),),
            image_pull_secrets=tuple(LocalReference(name=name) for name in secrets),
        ),
    )


def docker_secret(name: str, registry: str, password: str) -> Secret:
    config = json.dumps({"auths": {registry: {"username": "bot", "password": password}}})
    return Secret(
        metadata=ObjectMeta(name=name, namespace="ci"),
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": base64.b64encode(config.encode()).decode()},
    )


async def test_the_first_secret_that_knows_the_registry_is_used(clock: Clock) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        for secret in (docker_secret("other", "quay.io", "not-this-one"), docker_secret("right", REGISTRY, "correct-horse")):
            await client.create(secret)
        found = await pull_login(client, pod("missing", "other", "right"))
        assert found is not None
        assert found.environment()["TART_REGISTRY_PASSWORD"] == "correct-horse"
        assert "correct-horse" not in repr(found)


@pytest.mark.parametrize("secrets", [(), ("missing",), ("other",)])
async def test_without_a_fitting_secret_the_registry_is_asked_as_anybody(secrets: tuple[str, ...], clock: Clock) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        await client.create(docker_secret("other", "quay.io", "not-this-one"))
        assert await pull_login(client, pod(*secrets)) is None


async def test_a_secret_that_holds_no_docker_config_is_named_and_its_content_is_not(clock: Clock) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        data = {".dockerconfigjson": base64.b64encode(b'{"auths": {"ghcr.io": {"auth": "hunter2-hunter2"}}}').decode()}
        broken = Secret(metadata=ObjectMeta(name="broken", namespace="ci"), type="Opaque", data=data)
        await client.create(broken)
        with pytest.raises(BadInput, match="Secret ci/broken") as refused:
            await pull_login(client, pod("broken"))
        assert "hunter2" not in str(refused.value)
