"""A patch holds exactly what differs, and what we do not know stays as it was."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.crd import Definition
from applecart.api.meta import Key, Object, ObjectMeta, OwnerReference, Part, Resource
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.patch import Merge, difference, save
from tests.kube.backends import Backend
from tests.kube.embedded_api import define
from tests.kube.faults import FaultyTransport, Says, in_turn

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Disk(Part):
    size_gib: int = 0
    is_fast: bool = False
    host_ip: str = msgspec.field(name="hostIP", default="")


class Guest(Part):
    cpus: int = 4  # a default that is not zero
    share: float | None = None
    port: int | str = 0
    since: datetime | None = None
    disk: Disk = Disk()
    spare: Disk | None = None
    names: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()
    labels: dict[str, str] = {}
    disk_of: dict[str, Disk] = {}
    nested: dict[str, dict[str, int]] = {}


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def on_the_wire(document: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(document))


# The difference


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (Guest(), Guest(), {}),
        (Guest(disk=Disk(size_gib=3)), Guest(disk=Disk(size_gib=0)), {"disk": {"sizeGib": 0}}),
        (Guest(disk=Disk(is_fast=True)), Guest(), {"disk": {"isFast": False}}),
        (Guest(cpus=0), Guest(cpus=4), {"cpus": 4}),
        (Guest(share=0.5), Guest(share=None), {"share": None}),
        (Guest(port=1), Guest(port="1"), {"port": "1"}),
        (Guest(port=1), Guest(port=True), {"port": True}),
        (Guest(), Guest(since=NOON), {"since": "2026-03-01T12:00:00Z"}),
        (Guest(disk=Disk(host_ip="a")), Guest(disk=Disk(host_ip="")), {"disk": {"hostIP": ""}}),
        (Guest(), Guest(spare=Disk()), {"spare": {}}),
        (Guest(spare=Disk(size_gib=1)), Guest(), {"spare": None}),
        (Guest(names=("a", "b")), Guest(names=("b",)), {"names": ["b"]}),
        (Guest(names=("a",)), Guest(), {"names": []}),
        (Guest(), Guest(disks=(Disk(size_gib=1),)), {"disks": [{"sizeGib": 1}]}),
        (Guest(labels={"a": "1", "b": "2"}), Guest(labels={"b": "3", "c": "4"}), {"labels": {"a": None, "b": "3", "c": "4"}}),
        (Guest(labels={"a": "1"}), Guest(), {"labels": {"a": None}}),
        (
            Guest(disk_of={"a": Disk(size_gib=1, is_fast=True)}),
            Guest(disk_of={"a": Disk(size_gib=2, is_fast=True)}),
            {"diskOf": {"a": {"sizeGib": 2}}},
        ),
        (Guest(nested={"a": {"x": 1, "y": 2}}), Guest(nested={"a": {"y": 2}}), {"nested": {"a": {"x": None}}}),
    ],
)
def test_the_difference_names_what_changed_and_nothing_else(old: Guest, new: Guest, expected: dict[str, Any]) -> None:
    assert on_the_wire(difference(old, new)) == expected


def test_two_kinds_have_no_difference() -> None:
    with pytest.raises(TypeError, match="a Guest cannot become a Disk by a patch"):
        difference(Guest(), Disk())


WORDS = st.text(max_size=5)
DISKS = st.builds(Disk, size_gib=st.integers(-3, 3), is_fast=st.booleans(), host_ip=WORDS)
INSTANTS = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
KEYS = st.sampled_from(["a", "b", "c", "example.com/d"])
GUESTS = st.builds(
    Guest,
    cpus=st.integers(0, 5),
    share=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    port=st.integers(0, 2) | WORDS,
    since=st.none() | INSTANTS,
    disk=DISKS,
    spare=st.none() | DISKS,
    names=st.lists(WORDS, max_size=3).map(tuple),
    disks=st.lists(DISKS, max_size=3).map(tuple),
    labels=st.dictionaries(KEYS, WORDS, max_size=3),
    disk_of=st.dictionaries(KEYS, DISKS, max_size=3),
    nested=st.dictionaries(KEYS, st.dictionaries(KEYS, st.integers(), max_size=3), max_size=3),
)


def known_objects(document: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where in a document JSON objects stand that are not inside a list."""
    if not isinstance(document, dict):
        return []
    return [path, *(found for name, value in document.items() for found in known_objects(value, (*path, name)))]


def at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


STRUCT_PATHS = {(), ("disk",), ("spare",), *((("diskOf", key)) for key in ("a", "b", "c", "example.com/d"))}


@given(GUESTS, GUESTS)
def test_applying_the_difference_to_the_old_state_gives_the_new_one(old: Guest, new: Guest) -> None:
    patch = on_the_wire(difference(old, new))
    document = msgspec.to_builtins(old)
    assert msgspec.convert(merged(document, patch), Guest) == new
    assert (patch == {}) == (old == new and type(old.port) is type(new.port))


@given(GUESTS, GUESTS)
def test_fields_that_our_structs_do_not_know_survive_wherever_their_object_does(old: Guest, new: Guest) -> None:
    server = msgspec.to_builtins(old)
    strange_paths = [path for path in known_objects(server) if path in STRUCT_PATHS]
    for path in strange_paths:
        at(server, path)["fromTheFuture"] = {"kept": True}
    after = merged(deepcopy(server), difference(old, new))
    assert msgspec.convert(after, Guest) == new
    for path in strange_paths:
        if at(msgspec.to_builtins(new), path) is not None or path in {(), ("disk",)}:
            assert at(after, path)["fromTheFuture"] == {"kept": True}


@given(GUESTS, GUESTS)
def test_a_difference_applied_twice_changes_nothing_more(old: Guest, new: Guest) -> None:
    patch = difference(old, new)
    once = merged(msgspec.to_builtins(old), patch)
    assert merged(once, patch) == once


# Saving


class RunnerStatus(Part):
    ready: int = 0
    phase: str = ""


class RunnerSpec(Part):
    replicas: int = 0
    image: str = ""


class Runner(Object):
    resource = Resource("example.com", "v1", "Runner", "runners")

    spec: RunnerSpec = RunnerSpec()
    status: RunnerStatus = RunnerStatus()


class Recorded:
    """An API in memory that remembers what was written to it."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.wire = FaultyTransport(running.transport())
        self.client = Client(self.wire, clock)

    async def stored(self, **metadata: Any) -> Runner:
        runner = Runner(metadata=ObjectMeta(name="a", namespace="test", **metadata), spec=RunnerSpec(replicas=3))
        created = await self.client.create(runner)
        self.wire.calls.clear()
        return created

    def patches(self) -> list[tuple[str, Any]]:
        sent = [call for call in self.wire.calls if call.method == "PATCH"]
        return [(call.path.rsplit("/", 1)[-1], msgspec.json.decode(call.body or b"")) for call in sent]


@pytest.fixture
async def recorded(running: RunningApi, clock: Clock) -> Recorded:
    recorded = Recorded(running, clock)
    await define(recorded.client, Definition(Runner, "run"))
    return recorded


def changed(runner: Runner, **changes: Any) -> Runner:
    """The runner with fields of its metadata, spec or status changed."""
    metadata = {name: changes.pop(name) for name in list(changes) if name in ObjectMeta.__struct_fields__}
    spec = {name: changes.pop(name) for name in list(changes) if name in RunnerSpec.__struct_fields__}
    return msgspec.structs.replace(
        runner,
        metadata=msgspec.structs.replace(runner.metadata, **metadata),
        spec=msgspec.structs.replace(runner.spec, **spec),
        status=msgspec.structs.replace(runner.status, **changes),
    )


async def test_saving_what_did_not_change_makes_no_call(recorded: Recorded) -> None:
    runner = await recorded.stored()
    assert await save(recorded.client, runner, changed(runner)) is runner
    assert recorded.patches() == []


async def test_a_change_of_the_spec_goes_to_the_object_alone(recorded: Recorded) -> None:
    runner = await recorded.stored()
    saved = await save(recorded.client, runner, changed(runner, replicas=0, labels={"x": "1"}))
    assert recorded.patches() == [("a", {"metadata": {"labels": {"x": "1"}}, "spec": {"replicas": 0}})]
    assert (saved.spec.replicas, saved.labels) == (0, {"x": "1"})


async def test_a_change_of_the_status_goes_to_the_status_alone(recorded: Recorded) -> None:
    runner = await recorded.stored()
    saved = await save(recorded.client, runner, changed(runner, ready=2))
    assert recorded.patches() == [("status", {"status": {"ready": 2}})]
    assert saved.status.ready == 2


async def test_what_the_status_speaks_of_is_stored_before_the_status(recorded: Recorded) -> None:
    runner = await recorded.stored()
    saved = await save(recorded.client, runner, changed(runner, finalizers=("example.com/guard",), phase="Claimed"))
    assert [door for door, _ in recorded.patches()] == ["a", "status"]
    assert (saved.metadata.finalizers, saved.status.phase) == (("example.com/guard",), "Claimed")


async def test_a_status_is_not_written_when_what_it_speaks_of_could_not_be(recorded: Recorded) -> None:
    runner = await recorded.stored()
    recorded.wire.plan = in_turn([Says(409)])
    with pytest.raises(Conflict):
        await save(recorded.client, runner, changed(runner, finalizers=("example.com/guard",), phase="Claimed"))
    assert (await recorded.client.get(Runner, runner.key)).status.phase == ""


async def test_the_last_status_of_an_object_is_stored_before_the_finalizer_that_ends_it_goes(recorded: Recorded) -> None:
    await recorded.stored(finalizers=("example.com/guard",))
    await recorded.client.delete(Runner, Key("test", "a"))
    runner = await recorded.client.get(Runner, Key("test", "a"))
    assert runner.is_being_deleted
    saved = await save(recorded.client, runner, changed(runner, finalizers=(), phase="Gone"))
    assert [door for door, _ in recorded.patches()] == ["status", "a"]
    assert saved.status.phase == "Gone"
    with pytest.raises(NotFound):
        await recorded.client.get(Runner, runner.key)


async def test_saving_changes_only_what_we_changed_although_somebody_else_wrote_meanwhile(recorded: Recorded) -> None:
    runner = await recorded.stored()
    await recorded.client.patch(Runner, runner.key, Merge({"spec": {"image": "theirs"}}))
    saved = await save(recorded.client, runner, changed(runner, replicas=9, ready=1))
    assert (saved.spec.replicas, saved.spec.image, saved.status.ready) == (9, "theirs", 1)


async def test_saving_only_if_unchanged_refuses_when_somebody_else_wrote_meanwhile(recorded: Recorded) -> None:
    runner = await recorded.stored()
    await recorded.client.patch(Runner, runner.key, Merge({"spec": {"image": "theirs"}}))
    with pytest.raises(Conflict):
        await save(recorded.client, runner, changed(runner, replicas=9), if_unchanged=True)


async def test_saving_only_if_unchanged_guards_both_calls_with_the_revision_each_builds_on(recorded: Recorded) -> None:
    runner = await recorded.stored()
    saved = await save(recorded.client, runner, changed(runner, replicas=9, ready=1), if_unchanged=True)
    (_, first), (_, second) = recorded.patches()
    assert first["metadata"]["resourceVersion"] == runner.revision
    assert second["metadata"]["resourceVersion"] not in (runner.revision, "")
    assert (saved.spec.replicas, saved.status.ready) == (9, 1)


# On every API


async def test_a_saved_config_map_keeps_what_our_struct_does_not_know(api: Backend) -> None:
    key = Key(api.namespace, "settings")
    created = await api.client.create(ConfigMap(metadata=ObjectMeta(name=key.name, namespace=key.namespace), data={"a": "1"}))
    await api.client.patch(ConfigMap, key, Merge({"binaryData": {"blob": "AAEC"}, "data": {"theirs": "kept"}}))
    new = msgspec.structs.replace(
        created,
        data={"b": "2"},
        metadata=msgspec.structs.replace(created.metadata, annotations={"example.com/note": ""}),
    )
    saved = await save(api.client, created, new)
    assert saved.data == {"b": "2", "theirs": "kept"}
    assert saved.annotations["example.com/note"] == ""
    patched = await api.client.patch(Blob, key, Merge({"data": {"b": None}}))
    assert patched.binary_data == {"blob": "AAEC"}


class Blob(Object):
    """A ConfigMap as somebody else sees it."""

    resource = ConfigMap.resource

    binary_data: dict[str, str] = {}


async def test_a_pods_status_and_labels_are_saved_through_their_own_doors(api: Backend) -> None:
    spec = {"containers": [{"name": "vm", "image": "ghcr.io/example/vm:1"}]}
    draft = msgspec.convert({"metadata": {"name": "p", "namespace": api.namespace}, "spec": spec}, Pod)
    pod = await api.client.create(draft)
    status = msgspec.structs.replace(pod.status, phase="Running", message="booted")
    metadata = msgspec.structs.replace(pod.metadata, labels={"x": "1"})
    saved = await save(api.client, pod, msgspec.structs.replace(pod, status=status, metadata=metadata), if_unchanged=True)
    assert (saved.status.phase, saved.status.message, saved.labels["x"]) == ("Running", "booted", "1")
    assert saved.spec.containers[0].image == "ghcr.io/example/vm:1"


async def test_an_owner_that_is_taken_away_is_gone(api: Backend) -> None:
    owner = await api.client.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace=api.namespace)))
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.uid)
    metadata = ObjectMeta(name="owned", namespace=api.namespace, owner_references=(reference,))
    owned = await api.client.create(ConfigMap(metadata=metadata))
    free = msgspec.structs.replace(owned, metadata=msgspec.structs.replace(owned.metadata, owner_references=()))
    assert (await save(api.client, owned, free)).metadata.owner_references == ()
