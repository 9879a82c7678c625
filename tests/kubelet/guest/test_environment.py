"""The environment of a Pod comes from its Secrets and ConfigMaps, whole or with a sentence that says what is missing."""

from collections.abc import AsyncIterator

import pytest

from applecart.api.containers import (
    Container,
    EnvFrom,
    EnvReference,
    EnvSource,
    EnvVar,
    FieldSelector,
    KeySelector,
    ResourceFieldSelector,
    Resources,
)
from applecart.api.core import ConfigMap, secret_data
from applecart.api.core import Secret as SecretObject
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.clock import Clock
from applecart.errors import BadInput, ControlPlaneFault, DeadlineExceeded, Permanent, Transient, Unreachable
from applecart.kube.client import Client
from applecart.kube.errors import ApiError
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.guest.environment import environment
from applecart.kubelet.guest.expansion import Value
from applecart.secrets import Secret
from tests.kube.embedded_api import serving
from tests.kube.faults import Fault, FaultyTransport, Hung, Refused, Says, always

TOKEN = "correct-horse-battery"


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        data = secret_data({"token": Secret(TOKEN), "user": Secret("robot-account")})
        await client.create(SecretObject(metadata=ObjectMeta(name="login", namespace="ci"), data=data))
        await client.create(
            ConfigMap(metadata=ObjectMeta(name="settings", namespace="ci"), data={"URL": "https://dispatch", "user": "nobody"})
        )
        yield client


def pod(*env: EnvVar, env_from: tuple[EnvFrom, ...] = ()) -> Pod:
    resources = Resources(limits={"cpu": "4"})
    container = Container(name="runner", image="registry.example/macos:15", env=env, env_from=env_from, resources=resources)
    return Pod(metadata=ObjectMeta(name="runner-1", namespace="ci", uid="7f0c"), spec=PodSpec(containers=(container,)))


async def resolved(client: Client, pod: Pod) -> dict[str, Value]:
    return await environment(client, pod, "mac-7", "10.0.0.7")


def secret_key(name: str, key: str, *, optional: bool | None = None) -> EnvSource:
    return EnvSource(secret_key_ref=KeySelector(name=name, key=key, optional=optional))


def config_key(name: str, key: str, *, optional: bool | None = None) -> EnvSource:
    return EnvSource(config_map_key_ref=KeySelector(name=name, key=key, optional=optional))


async def test_env_wins_over_env_from_and_later_sources_over_earlier_ones(client: Client) -> None:
    both = (
        EnvFrom(secret_ref=EnvReference(name="login")),
        EnvFrom(config_map_ref=EnvReference(name="settings")),
        EnvFrom(prefix="CFG_", config_map_ref=EnvReference(name="settings")),
    )
    found = await resolved(client, pod(EnvVar(name="URL", value="https://mine"), env_from=both))
    assert found == {
        "token": Secret(TOKEN),
        "user": "nobody",
        "URL": "https://mine",
        "CFG_URL": "https://dispatch",
        "CFG_user": "nobody",
    }


async def test_every_kind_of_reference_is_resolved(client: Client) -> None:
    found = await resolved(
        client,
        pod(
            EnvVar(name="TOKEN", value_from=secret_key("login", "token")),
            EnvVar(name="URL", value_from=config_key("settings", "URL")),
            EnvVar(name="NODE", value_from=EnvSource(field_ref=FieldSelector(field_path="spec.nodeName"))),
            EnvVar(name="CPUS", value_from=EnvSource(resource_field_ref=ResourceFieldSelector(resource="limits.cpu"))),
            EnvVar(name="HEADER", value="Bearer $(TOKEN) from $(NODE), $(LATER), $$(NODE)"),
            EnvVar(name="LATER", value="x"),
            EnvVar(name="EMPTY"),
        ),
    )
    assert found == {
        "TOKEN": Secret(TOKEN),
        "URL": "https://dispatch",
        "NODE": "mac-7",
        "CPUS": "4",
        "HEADER": Secret(f"Bearer {TOKEN} from mac-7, $(LATER), $(NODE)"),
        "LATER": "x",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (secret_key("absent", "token"), ("Secret ci/absent", "does not exist")),
        (secret_key("login", "absent"), ("'absent'", "Secret ci/login")),
        (config_key("absent", "URL"), ("ConfigMap ci/absent", "does not exist")),
        (config_key("settings", "absent"), ("'absent'", "ConfigMap ci/settings")),
    ],
)
async def test_what_is_missing_is_named_and_no_value_is_shown(
    client: Client, source: EnvSource, names: tuple[str, ...]
) -> None:
    with pytest.raises(MissingConfig) as caught:
        await resolved(client, pod(EnvVar(name="X", value_from=source)))
    assert all(name in str(caught.value) for name in ("Pod ci/runner-1", *names))


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
async def test_a_whole_source_that_is_missing_is_named(client: Client, kind: str) -> None:
    ref = EnvReference(name="absent")
    source = EnvFrom(secret_ref=ref) if kind == "Secret" else EnvFrom(config_map_ref=ref)
    with pytest.raises(MissingConfig, match=f"{kind} ci/absent"):
        await resolved(client, pod(env_from=(source,)))


async def test_what_is_optional_is_left_out(client: Client) -> None:
    absent = EnvReference(name="absent", optional=True)
    found = await resolved(
        client,
        pod(
            EnvVar(name="A", value_from=secret_key("absent", "token", optional=True)),
            EnvVar(name="B", value_from=secret_key("login", "absent", optional=True)),
            EnvVar(name="C", value_from=config_key("settings", "absent", optional=True)),
            EnvVar(name="D", value="$(A)"),
            env_from=(EnvFrom(secret_ref=absent), EnvFrom(config_map_ref=absent)),
        ),
    )
    assert found == {"D": "$(A)"}


def test_missing_config_may_pass_and_is_nobodys_host() -> None:
    assert issubclass(MissingConfig, ControlPlaneFault)
    assert issubclass(MissingConfig, Transient)
    assert not issubclass(MissingConfig, Permanent)


async def test_a_reference_that_can_never_be_resolved_is_refused_for_good(client: Client) -> None:
    with pytest.raises(BadInput, match="before it boots"):
        await resolved(client, pod(EnvVar(name="IP", value_from=EnvSource(field_ref=FieldSelector(field_path="status.podIP")))))
    with pytest.raises(BadInput, match="variable X"):
        await resolved(client, pod(EnvVar(name="X", value_from=EnvSource())))
    with pytest.raises(BadInput, match="no name of a variable"):
        await resolved(client, pod(EnvVar(name="9 lives", value="x")))


async def test_keys_that_cannot_be_variables_are_left_out_of_a_whole_source(client: Client) -> None:
    metadata = ObjectMeta(name="mixed", namespace="ci")
    await client.create(
        SecretObject(metadata=metadata, data={"good": "Z29vZC12YWx1ZQ==", "keystore": "/v8=", "9lives": "eA=="})
    )
    found = await resolved(client, pod(env_from=(EnvFrom(secret_ref=EnvReference(name="mixed")),)))
    assert found == {"good": Secret("good-value")}


async def test_a_key_that_holds_no_text_waits_to_be_mended(client: Client) -> None:
    await client.create(SecretObject(metadata=ObjectMeta(name="mixed", namespace="ci"), data={"keystore": "/v8="}))
    with pytest.raises(MissingConfig, match="'keystore' of Secret ci/mixed as text"):
        await resolved(client, pod(EnvVar(name="K", value_from=secret_key("mixed", "keystore"))))


async def test_a_secret_that_appears_later_is_found_by_the_next_attempt(client: Client) -> None:
    wants = pod(EnvVar(name="LATE", value_from=secret_key("late", "token")))
    with pytest.raises(MissingConfig):
        await resolved(client, wants)
    data = secret_data({"token": Secret(TOKEN)})
    await client.create(SecretObject(metadata=ObjectMeta(name="late", namespace="ci"), data=data))
    assert await resolved(client, wants) == {"LATE": Secret(TOKEN)}


async def test_every_object_is_read_once(client: Client, clock: Clock) -> None:
    seen = FaultyTransport(client.transport)
    variables = [EnvVar(name=f"V{number}", value_from=secret_key("login", "token")) for number in range(5)]
    optional = [EnvVar(name=f"O{number}", value_from=config_key("absent", "x", optional=True)) for number in range(5)]
    await resolved(Client(seen, clock), pod(*variables, *optional))
    assert [call.path.rsplit("/", 1)[1] for call in seen.calls] == ["login", "absent"]


@pytest.mark.parametrize("fault", [Says(503), Says(403), Hung(), Refused()])
async def test_an_outage_of_the_api_passes_through_as_it_is(client: Client, clock: Clock, fault: Fault) -> None:
    down = Client(FaultyTransport(client.transport, always(fault)), clock)
    with pytest.raises((ApiError, DeadlineExceeded, Unreachable)) as caught:
        await resolved(down, pod(EnvVar(name="X", value_from=secret_key("login", "token", optional=True))))
    assert not isinstance(caught.value, MissingConfig)
