"""How namespaces begin and end, as stories that every namespace controller tells the same."""

from typing import Any

import msgspec

from applecart.api.containers import Container
from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.kube.patch import Merge
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from tests.embedded.controllers.scene import HOLD, Scenario, Scene

ROOT_CA = "kube-root-ca.crt"


class ConditionedNamespace(Namespace):
    """A Namespace with the part of its status that says how its end goes."""

    status: "ConditionedStatus" = msgspec.field(default_factory=lambda: ConditionedStatus())  # type: ignore[assignment]

    def says(self, type: str) -> tuple[str, str, str]:
        found = next((one for one in self.status.conditions if one["type"] == type), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")


class ConditionedStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[dict[str, Any], ...] = ()


async def a_new_namespace_gets_its_service_account_and_the_ca(scene: Scene) -> None:
    await scene.present(ServiceAccount, scene.key("default"))
    trusted = await scene.present(ConfigMap, scene.key(ROOT_CA))
    assert trusted.data == {"ca.crt": scene.ca_pem.decode()}
    assert trusted.annotations["kubernetes.io/description"].startswith("Contains a CA bundle")


async def what_every_namespace_has_comes_back(scene: Scene) -> None:
    account = await scene.present(ServiceAccount, scene.key("default"))
    trusted = await scene.present(ConfigMap, scene.key(ROOT_CA))
    await scene.delete(account)
    await scene.delete(trusted)
    await scene.gone(account)
    await scene.gone(trusted)
    assert (await scene.present(ServiceAccount, account.key)).uid != account.uid
    assert (await scene.present(ConfigMap, trusted.key)).data == trusted.data


async def a_changed_ca_is_set_right(scene: Scene) -> None:
    trusted = await scene.present(ConfigMap, scene.key(ROOT_CA))
    wrong = Merge({"data": {"ca.crt": "wrong", "more": "x"}, "metadata": {"annotations": None}})
    await scene.client.patch(ConfigMap, trusted.key, wrong)

    def is_right(now: ConfigMap | None) -> bool:
        return now is not None and now.data == trusted.data and bool(now.annotations)

    await scene.until(ConfigMap, trusted.key, is_right, "it is right again")


async def a_deleted_namespace_goes_with_everything_in_it(scene: Scene) -> None:
    name = await scene.another_namespace()
    await scene.present(ServiceAccount, Key(name, "default"))
    await scene.config_map("a", namespace=name)
    await scene.client.create(Secret(metadata=ObjectMeta(name="b", namespace=name)))
    await scene.client.create(Lease(metadata=ObjectMeta(name="c", namespace=name)))
    await _deleted(scene, name)
    for kind in (ConfigMap, Secret, Lease, ServiceAccount):
        assert await scene.client.list(kind, name) == []


async def a_finalizer_in_a_namespace_is_waited_for_and_told(scene: Scene) -> None:
    name = await scene.another_namespace()
    held = await scene.config_map("held", namespace=name, finalizers=[HOLD])
    await scene.config_map("free", namespace=name)
    await scene.client.delete(Namespace, Key("", name))

    def tells(now: ConditionedNamespace | None) -> bool:
        return now is not None and now.says("NamespaceFinalizersRemaining")[0] == "True"

    going = await scene.until(ConditionedNamespace, Key("", name), tells, "it says who holds it")
    assert going is not None
    assert going.status.phase == "Terminating"
    assert going.says("NamespaceFinalizersRemaining") == (
        "True",
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {HOLD} in 1 resource instances",
    )
    assert going.says("NamespaceContentRemaining") == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    assert going.says("NamespaceDeletionDiscoveryFailure") == (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    )
    assert going.says("NamespaceDeletionGroupVersionParsingFailure")[:2] == ("False", "ParsedGroupVersions")
    assert going.says("NamespaceDeletionContentFailure")[:2] == ("False", "ContentDeleted")
    await scene.release(held)
    await _gone(scene, name)


async def somebody_elses_finalizer_keeps_an_empty_namespace(scene: Scene) -> None:
    name = await scene.another_namespace(finalizers=["applecart.test/keep"])
    kept = await scene.config_map("a", namespace=name)
    await scene.client.delete(Namespace, Key("", name))

    def is_let_go(now: ConditionedNamespace | None) -> bool:
        return now is not None and now.spec.finalizers == ("applecart.test/keep",)

    left = await scene.until(ConditionedNamespace, Key("", name), is_let_go, "only the other finalizer is left")
    await scene.gone(kept)
    assert left is not None
    assert left.says("NamespaceContentRemaining")[:2] == ("False", "ContentRemoved")
    path = object_path(Namespace.resource, Key("", name), "finalize")
    document = msgspec.json.decode((await scene.client.call(Request("GET", path.removesuffix("/finalize")))).body)
    document["spec"]["finalizers"] = []
    await scene.client.call(Request("PUT", path, body=msgspec.json.encode(document)))
    await _gone(scene, name)


async def pods_go_before_what_they_use(scene: Scene) -> None:
    name = await scene.another_namespace()
    await scene.present(ServiceAccount, Key(name, "default"))
    used = await scene.config_map("used", namespace=name)
    spec = PodSpec(
        node_name=f"{scene.namespace}-nowhere",
        termination_grace_period_seconds=600,
        containers=(Container(name="c", image="i"),),
    )
    pod = await scene.client.create(Pod(metadata=ObjectMeta(name="p", namespace=name), spec=spec))
    await scene.client.delete(Namespace, Key("", name))

    def ends_gracefully(now: Pod | None) -> bool:
        return now is not None and now.metadata.deletion_grace_period_seconds == 600

    await scene.until(Pod, pod.key, ends_gracefully, "it is given its grace")
    await scene.settled()
    assert (await scene.client.get(ConfigMap, used.key)).uid == used.uid
    await scene.client.delete(Pod, pod.key, grace_s=0)
    await scene.gone(used)
    await _gone(scene, name)


async def _deleted(scene: Scene, name: str) -> None:
    await scene.client.delete(Namespace, Key("", name))
    await _gone(scene, name)


async def _gone(scene: Scene, name: str) -> None:
    await scene.until(ConditionedNamespace, Key("", name), lambda now: now is None, "it is gone")


SCENARIOS: list[Scenario] = [
    a_new_namespace_gets_its_service_account_and_the_ca,
    what_every_namespace_has_comes_back,
    a_changed_ca_is_set_right,
    a_deleted_namespace_goes_with_everything_in_it,
    a_finalizer_in_a_namespace_is_waited_for_and_told,
    somebody_elses_finalizer_keeps_an_empty_namespace,
    pods_go_before_what_they_use,
]
