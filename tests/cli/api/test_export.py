"""`applecart api export` and `import`: what somebody made in one cluster is the same in another."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from applecart.api.meta import ObjectMeta, Resource
from applecart.api.nodes import Node
from applecart.cli.api.export import chosen_kinds, export, is_chosen, listed
from applecart.cli.api.portable import OF_THE_CLUSTER, OWNERS
from applecart.cli.api.yaml_stream import as_yaml, documents
from applecart.cli.main import run
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import DataFolder
from applecart.embedded.server.server import offline_api
from applecart.embedded.store.sqlite_file import connect as connect_database
from applecart.errors import BadInput, Permanent
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.discovery import Discovery, Served
from applecart.kube.transport import Request
from tests.cli.api.folders import make_folder
from tests.cli.commands import done, refused, running_api
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.real_time

GROUP = "moving.example.org"
LIST = frozenset({"list", "create"})


def definition(group: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"plural": "wagons", "singular": "wagon", "kind": "Wagon", "listKind": "WagonList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"wagons.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def wagon(name: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": namespace, **metadata}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Wagon", "metadata": about, "spec": {"wheels": 4, "load": "1e3"}}


async def fill(folder: DataFolder, namespace: str) -> None:
    """A fleet in small: a kind of its own, an owner with a status, and what it owns."""
    clock = SystemClock()
    wagons = f"/apis/{GROUP}/v1/namespaces/{namespace}/wagons"
    core = f"/api/v1/namespaces/{namespace}"
    async with offline_api(folder, clock) as running:
        client = Client(running.transport(), clock)

        async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = await client.call(Request("POST", path, body=msgspec.json.encode(body)))
            created: dict[str, Any] = msgspec.json.decode(answer.body)
            return created

        await post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(GROUP))
        await post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        owner = await post(wagons, wagon("z-owner", namespace, finalizers=["example.org/keep"], labels={"a": "b"}))
        status = msgspec.json.encode({"status": {"claimed": "host-7"}})
        merge = "application/merge-patch+json"
        await client.call(Request("PATCH", f"{wagons}/z-owner/status", body=status, content_type=merge))
        reference = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Wagon",
            "name": "z-owner",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        await post(wagons, wagon("a-owned", namespace, ownerReferences=[reference]))
        secret = {"apiVersion": "v1", "kind": "Secret", "data": {"key": "aHVzaA=="}}
        await post(f"{core}/secrets", {**secret, "metadata": {"name": "owned", "ownerReferences": [reference]}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "builder"}}
        await post(f"{core}/serviceaccounts", account)
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        await post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles", {**role, "rules": rules})
        script = {"script": "#!/bin/sh\necho '---'\n", "hash": "12345e67", "on": "off"}
        await post(f"{core}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": script})


@pytest.fixture
async def folder(tmp_path: Path, namespace_name: str) -> DataFolder:
    made = await make_folder(tmp_path / "from")
    await fill(made, namespace_name)
    return made


def exported(*flags: str) -> list[dict[str, Any]]:
    ended = done("api", "export", *flags)
    assert ended.returncode == 0, ended.stderr
    return list(documents(ended.stdout, "export"))


def named(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(document["kind"], document["metadata"]["name"]) for document in found]


async def test_the_stream_has_what_somebody_made_in_an_order_that_can_be_created(
    folder: DataFolder, namespace_name: str
) -> None:
    found = exported("--data", str(folder.folder))
    assert named(found) == [
        ("CustomResourceDefinition", f"wagons.{GROUP}"),
        ("Namespace", "ci"),
        ("Namespace", namespace_name),
        ("Role", "reader"),
        ("ServiceAccount", "builder"),
        ("Secret", "token"),
        ("Secret", "owned"),
        ("ConfigMap", "settings"),
        ("ConfigMap", "c"),
        ("Wagon", "a-owned"),
        ("Wagon", "z-owner"),
    ]
    assert not any(set(document["metadata"]) & set(OF_THE_CLUSTER) for document in found)


async def test_namespaces_and_kinds_can_be_chosen(folder: DataFolder) -> None:
    data = ("--data", str(folder.folder))
    assert named(exported(*data, "--namespace", "ci")) == [
        ("Namespace", "ci"),
        ("Secret", "token"),
        ("ConfigMap", "settings"),
    ]
    assert {kind for kind, _ in named(exported(*data, "--kind", "Wagon", "--kind", f"wagons.{GROUP}"))} == {"Wagon"}
    async with offline_api(folder, SystemClock()) as running:
        await Client(running.transport(), SystemClock()).create(Node(metadata=ObjectMeta(name="mac-1")))
    assert ("Node", "mac-1") not in named(exported(*data))
    assert named(exported(*data, "--kind", "nodes")) == [("Node", "mac-1")]
    assert "--kind submarine: the API serves no such kind" in refused("api", "export", *data, "--kind", "submarine")


async def test_a_kind_with_many_objects_is_exported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("applecart.cli.api.export.PAGE_SIZE", 2)
    made, clock = await make_folder(tmp_path), SystemClock()
    async with offline_api(made, clock) as running:
        client = Client(running.transport(), clock)
        names = [f"mac-{number}" for number in range(5)]
        for name in names:
            await client.create(Node(metadata=ObjectMeta(name=name)))
        assert [one["metadata"]["name"] async for one in listed(client, Node.resource)] == names


async def test_objects_of_a_kind_that_is_no_longer_served_are_counted(folder: DataFolder) -> None:
    """Volumes of the version before stayed behind without a word, or with one that did not say what."""
    with closing(connect_database(folder.database)) as database:
        database.execute("INSERT INTO resource(label) VALUES ('persistentvolumes')")
        row = "SELECT max(rev) + 1, (SELECT id FROM resource WHERE label = 'persistentvolumes'), '', 'pv1', 0, ? FROM log"
        database.execute(f"INSERT INTO log(rev, res, ns, name, op, value) {row}", (b'{"metadata":{"name":"pv1","uid":"1"}}',))
    told = done("api", "export", "--data", str(folder.folder)).stderr
    assert "left out: 1 of persistentvolumes, which this version does not serve\n" in told
    assert "kind=persistentvolumes objects=1" in told


async def test_a_namespace_that_is_not_there_is_said(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A name with a slip of the finger gave an empty file, exit code 0 and no word."""
    with pytest.raises(Permanent, match="the cluster has no namespace nope; look with"):
        await export(folder.folder, None, None, ("ci", "nope"), ())
    assert capsys.readouterr().out == ""
    assert Permanent.exit_code == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--data", "x", "--kubeconfig", "y"), "--data and --kubeconfig name two clusters; give --data for the API"),
        (("--data", "x", "--context", "y"), "--context names a context of a kubeconfig; give --kubeconfig FILE with it"),
    ],
)
def test_two_clusters_are_refused_and_none_is_dropped(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["api", "export", *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_the_environment_does_not_contradict_a_kubeconfig(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLECART_DATA", str(tmp_path))
    run(["api", "export", "--kubeconfig", str(tmp_path / "none")])
    assert f"{tmp_path / 'none'}" in capsys.readouterr().err


async def test_either_a_folder_or_a_kubeconfig_must_be_given() -> None:
    assert "give either --data DIR or --kubeconfig FILE" in refused("api", "export")


def compare(kubectl: list[str], found: list[dict[str, Any]], namespace: str) -> None:
    """What the other cluster has is what was exported, but for what belongs to a cluster."""
    for document in found:
        metadata = document["metadata"]
        if metadata.get("namespace", namespace) != namespace:
            continue
        where = ["-n", namespace] if "namespace" in metadata else []
        group, _, version = document["apiVersion"].rpartition("/")
        kind = f"{document['kind']}.{version}.{group}" if group else document["kind"]
        shown = subprocess.run(
            [*kubectl, *where, "get", kind, metadata["name"], "-o", "json"], capture_output=True, check=True, timeout=60
        )
        there = msgspec.json.decode(shown.stdout)
        for field in ("spec", "data", "rules", "status"):
            if field in document and document["kind"] not in ("CustomResourceDefinition", "Namespace"):
                assert there[field] == document[field], f"{kind} {metadata['name']}"
        assert there["metadata"].get("finalizers") == metadata.get("finalizers")


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[str]:
    """The kubeconfig of another embedded API that runs."""
    with running_api(tmp_path / "to", "--no-controllers"):
        yield str(tmp_path / "to" / "admin.kubeconfig")


async def get(kubeconfig: str, path: str) -> Any:
    client = Client(connect(kubeconfig, None, SystemClock()), SystemClock())
    try:
        return msgspec.json.decode((await client.call(Request("GET", path))).body)
    finally:
        await client.aclose()


async def moved_with_owners_and_status(kubeconfig: str, namespace: str) -> None:
    wagons = f"/apis/{GROUP}/v1/namespaces/{namespace}/wagons"
    owner = await get(kubeconfig, f"{wagons}/z-owner")
    owned = await get(kubeconfig, f"{wagons}/a-owned")
    secret = await get(kubeconfig, f"/api/v1/namespaces/{namespace}/secrets/owned")
    assert owner["status"] == {"claimed": "host-7"}
    for one in (owned, secret):
        references = one["metadata"]["ownerReferences"]
        assert [reference["uid"] for reference in references] == [owner["metadata"]["uid"]]
        assert references[0]["controller"] is True
        assert OWNERS not in one["metadata"].get("annotations", {})


async def test_an_import_brings_owners_and_status_and_can_be_run_again(
    folder: DataFolder, target: str, namespace_name: str
) -> None:
    stream = done("api", "export", "--data", str(folder.folder)).stdout
    first = done("api", "import", "--kubeconfig", target, stdin=stream)
    assert (first.returncode, first.stdout, first.stderr) == (0, "11 created\n", "")
    await moved_with_owners_and_status(target, namespace_name)
    again = done("api", "import", "--kubeconfig", target, stdin=stream)
    assert (again.returncode, again.stdout) == (0, "11 were there already\n")
    assert "Wagon" in again.stderr
    back = exported("--kubeconfig", target)
    assert back == exported("--data", str(folder.folder)), "exported again it is the same"


async def test_what_had_ended_is_left_out_and_said_on_both_sides(folder: DataFolder, target: str, tmp_path: Path) -> None:
    """A finished Pod came back Pending and ran again, also from what kubectl had printed."""
    clock = SystemClock()
    pods = "/api/v1/namespaces/ci/pods"
    async with offline_api(folder, clock) as running:
        client = Client(running.transport(), clock)
        pod = {"metadata": {"name": "done"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await client.call(Request("POST", pods, body=msgspec.json.encode(pod)))
        ended = msgspec.json.encode({"status": {"phase": "Succeeded"}})
        merge = "application/merge-patch+json"
        printed = await client.call(Request("PATCH", f"{pods}/done/status", body=ended, content_type=merge))
    told = done("api", "export", "--data", str(folder.folder), "--kind", "pods")
    assert (told.stdout, told.stderr) == ("", "left out: 1 it had ended, and would run again\n")
    stream = f"{as_yaml({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'ci'}})}---\n{printed.body.decode()}\n"
    imported = done("api", "import", "--kubeconfig", target, stdin=stream)
    assert (imported.returncode, imported.stdout) == (0, "1 created\n1 had ended and stay out\n")
    assert imported.stderr == "Pod ci/done had ended, and would run again: left out\n"
    assert (await get(target, pods))["items"] == []


async def test_an_object_without_its_namespace_is_named(target: str) -> None:
    """kubectl fills in the namespace of a manifest. The refusal of the API named neither the object nor the way out."""
    stream = as_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})
    ended = done("api", "import", "--kubeconfig", target, stdin=stream)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "ConfigMap one is in no namespace; write one into its metadata" in ended.stderr


async def test_an_owner_that_did_not_come_along_is_told(folder: DataFolder, target: str) -> None:
    stream = done("api", "export", "--data", str(folder.folder)).stdout
    parts = [part for part in stream.split("---\n") if "\n  name: z-owner\n" not in part]
    ended = done("api", "import", "--kubeconfig", target, stdin="---\n".join(parts))
    assert ended.returncode == 0, ended.stderr
    assert "its owner Wagon z-owner is not in this cluster" in ended.stderr


@pytest.mark.kubernetes
async def test_a_real_cluster_takes_an_import_as_it_was(
    folder: DataFolder, real_cluster: FullCluster, namespace_name: str
) -> None:
    stream = done("api", "export", "--data", str(folder.folder)).stdout
    ended = done("api", "import", "--kubeconfig", str(real_cluster.kubeconfig), stdin=stream)
    assert ended.returncode == 0, ended.stderr
    await moved_with_owners_and_status(str(real_cluster.kubeconfig), namespace_name)
    kubectl = [str(real_cluster.programs / "kubectl"), "--kubeconfig", str(real_cluster.kubeconfig)]
    compare(kubectl, list(documents(stream, "export")), namespace_name)


@pytest.mark.kubernetes
def test_kubectl_applies_an_export_to_a_real_cluster(
    folder: DataFolder, real_cluster: FullCluster, namespace_name: str, tmp_path: Path
) -> None:
    """It learns new kinds only between two runs, so the second one brings what they define."""
    stream = done("api", "export", "--data", str(folder.folder), "--namespace", namespace_name).stdout
    cache = ["--cache-dir", str(tmp_path / "cache")]
    kubectl = [str(real_cluster.programs / "kubectl"), "--kubeconfig", str(real_cluster.kubeconfig), *cache]
    crds = done("api", "export", "--data", str(folder.folder), "--kind", "customresourcedefinitions").stdout
    subprocess.run([*kubectl, "apply", "-f", "-"], input=crds, text=True, capture_output=True, check=True, timeout=60)
    wait = [*kubectl, "wait", "--for=condition=Established", f"crd/wagons.{GROUP}"]
    subprocess.run(wait, capture_output=True, check=True, timeout=60)
    applied = subprocess.run(
        [*kubectl, "apply", "-f", "-"], input=stream, text=True, capture_output=True, check=False, timeout=60
    )
    assert applied.returncode == 0, applied.stderr
    found = [{**document, "status": None} for document in documents(stream, "export")]
    compare(kubectl, [{k: v for k, v in one.items() if v is not None} for one in found], namespace_name)


PODS = Resource("", "v1", "Pod", "pods")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")
DISCOVERY = Discovery((Served(PODS, LIST), Served(EVENTS, LIST), Served(PODS, frozenset({"get"}))))


def test_only_kinds_that_can_be_listed_and_created_are_chosen_and_events_once() -> None:
    assert chosen_kinds(DISCOVERY, ()) == [PODS]
    assert chosen_kinds(DISCOVERY, ("POD",)) == [PODS]
    with pytest.raises(BadInput, match="--kind cat, dog"):
        chosen_kinds(DISCOVERY, ("dog", "cat"))


@pytest.mark.parametrize(
    ("metadata", "chosen"), [({"namespace": "a"}, True), ({"namespace": "b"}, False), ({}, False), (None, False)]
)
def test_with_a_namespace_named_only_what_is_in_it_is_chosen(metadata: Any, chosen: bool) -> None:
    assert is_chosen(PODS, {"metadata": metadata}, ("a",)) is chosen
