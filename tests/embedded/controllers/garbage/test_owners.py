"""Whether an owner is there: what was seen, what the API says, and what is not asked twice."""

from collections.abc import AsyncIterator

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import ObjectMeta, OwnerReference, Resource
from applecart.api.rbac import ClusterRole
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.decide import Standing
from applecart.embedded.controllers.garbage.graph import FOREGROUND, Graph
from applecart.embedded.controllers.garbage.owners import REMEMBERED_ABSENTEES, Owners, Unserved, WrongScope
from applecart.kube.client import Client
from applecart.kube.discovery import discover
from applecart.kube.metadata_only import MetadataClient
from applecart.kube.owners import owner_reference
from tests.embedded.controllers.garbage.owned import CLUSTER_ROLES, owned, refers_to
from tests.embedded.controllers.stages import api_in_memory
from tests.kube.faults import FaultyTransport

NAMESPACE = "default"


class Asked:
    """Owners on the API in memory, and how often the API was asked."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)
        self.graph = Graph()
        self.owners = Owners(MetadataClient(self.network, clock), self.graph)

    @property
    def questions(self) -> int:
        return len(self.network.calls)

    async def config_map(self, name: str) -> ConfigMap:
        return await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE)))


@pytest.fixture
async def asked(clock: Clock) -> AsyncIterator[Asked]:
    async with api_in_memory(clock) as (client, _):
        made = Asked(client, clock)
        made.owners.discovery = await discover(client)
        yield made


async def test_an_owner_that_was_seen_is_not_asked_for(asked: Asked) -> None:
    asked.graph.observe(owned("a"))
    asked.graph.observe(owned("b", finalizers=[FOREGROUND], is_deleted=True))
    assert await asked.owners.standing(refers_to("a"), owned("x")) == (Standing.SOLID, True)
    assert await asked.owners.standing(refers_to("b"), owned("x")) == (Standing.WAITING, True)
    assert asked.questions == 0


async def test_an_owner_that_was_not_seen_is_asked_for_and_its_end_will_not_be_told(asked: Asked) -> None:
    owner = await asked.config_map("late")
    standing = await asked.owners.standing(owner_reference(owner), owned("x", namespace=NAMESPACE))
    assert standing == (Standing.SOLID, False)
    assert asked.questions == 1


async def test_an_absent_owner_is_asked_for_once(asked: Asked) -> None:
    for name in "xyz":
        assert await asked.owners.standing(refers_to("gone"), owned(name)) == (Standing.DANGLING, True)
    assert asked.questions == 1


async def test_a_namespace_without_the_owner_says_nothing_about_another(asked: Asked) -> None:
    owner = await asked.config_map("here")
    reference = owner_reference(owner)
    assert (await asked.owners.standing(reference, owned("x", namespace="elsewhere")))[0] is Standing.DANGLING
    assert (await asked.owners.standing(reference, owned("y", namespace=NAMESPACE)))[0] is Standing.SOLID


async def test_another_uid_under_the_owners_name_is_not_the_owner(asked: Asked) -> None:
    owner = await asked.config_map("owner")
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name=owner.name, uid="other")
    assert (await asked.owners.standing(reference, owned("x", namespace=NAMESPACE)))[0] is Standing.DANGLING


async def test_an_owner_of_the_cluster_is_asked_for_there(asked: Asked) -> None:
    role = await asked.client.create(ClusterRole(metadata=ObjectMeta(name="role")))
    assert (await asked.owners.standing(owner_reference(role), owned("x")))[0] is Standing.SOLID


@pytest.mark.parametrize(("api_version", "kind"), [("nobody.test/v1", "Ghost"), ("v2", "ConfigMap"), ("v1", "Configmap")])
async def test_a_kind_that_is_not_served_cannot_be_judged(asked: Asked, api_version: str, kind: str) -> None:
    reference = OwnerReference(api_version=api_version, kind=kind, name="x", uid="u")
    with pytest.raises(Unserved, match="does not serve"):
        await asked.owners.standing(reference, owned("x"))
    assert asked.questions == 0


async def test_an_object_of_the_cluster_cannot_be_owned_from_a_namespace(asked: Asked) -> None:
    with pytest.raises(WrongScope):
        await asked.owners.standing(refers_to("a"), owned("x", resource=CLUSTER_ROLES))


async def test_an_owner_seen_in_another_namespace_is_elsewhere(asked: Asked) -> None:
    asked.graph.observe(owned("a", namespace="far"))
    asked.graph.observe(owned("r", resource=CLUSTER_ROLES))
    assert asked.owners.is_elsewhere(refers_to("a"), owned("x"))
    assert not asked.owners.is_elsewhere(refers_to("a"), owned("x", namespace="far"))
    assert not asked.owners.is_elsewhere(refers_to("r", resource=CLUSTER_ROLES), owned("x"))
    assert not asked.owners.is_elsewhere(refers_to("nobody"), owned("x"))


async def test_absentees_are_forgotten_before_they_fill_the_memory(asked: Asked) -> None:
    secrets = Resource("", "v1", "Secret", "secrets")
    for number in range(REMEMBERED_ABSENTEES + 1):
        await asked.owners.standing(refers_to(str(number), resource=secrets), owned("x"))
    before = asked.questions
    await asked.owners.standing(refers_to("1", resource=secrets), owned("x"))
    assert asked.questions == before
    await asked.owners.standing(refers_to("0", resource=secrets), owned("x"))
    assert asked.questions == before + 1
