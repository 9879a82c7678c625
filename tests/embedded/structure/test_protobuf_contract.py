"""Our reading of protobuf against a real API server that writes it."""

import json
from typing import Any

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import Conformed, conform, conform_exactly
from applecart.embedded.structure.protobuf import decode_protobuf
from applecart.embedded.structure.types import type_of
from tests.embedded.structure.real_api import PROTOBUF, RealApi
from tests.embedded.structure.samples import CLUSTER_WIDE, NAMESPACED
from tests.embedded.structure.wire_bodies import body
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes
SAMPLES = [pytest.param(path, sample, id=f"{sample['kind']}-{sample['metadata']['name']}") for path, sample in NAMESPACED]
SAMPLES += [pytest.param(path, sample, id=sample["kind"]) for path, sample in CLUSTER_WIDE]


def placed(path: str, sample: dict[str, Any], namespace: str) -> tuple[str, dict[str, Any]]:
    return path.format(ns=namespace), json.loads(json.dumps(sample).replace("{ns}", namespace))


@pytest.mark.parametrize(("path", "sample"), SAMPLES)
def test_what_the_server_writes_as_protobuf_decodes_to_what_it_writes_as_json(
    real_cluster: FullCluster, namespace: str, path: str, sample: dict[str, Any]
) -> None:
    api = RealApi(real_cluster)
    path, document = placed(path, sample, namespace)
    created = api.post(path, document)
    assert created.code == 201, created.raw
    place = f"{path}/{document['metadata']['name']}"
    shown, decoded = both_ways(api, place)
    assert decoded == shown
    type = type_of(document["apiVersion"], document["kind"])
    assert type is not None
    assert conform(shown, type) == Conformed(shown), "what is stored conforms unchanged"
    assert conform_exactly(shown, type) == Conformed(shown)
    if path.startswith("/api/v1/nodes") or "/namespaces/" not in path:
        api.call("DELETE", place)


def both_ways(api: RealApi, place: str) -> tuple[Any, Any]:
    """One revision of an object as JSON and as we read its protobuf; the server itself may write between two reads."""
    while True:
        shown = api.call("GET", place).document
        decoded = decode_protobuf(api.call("GET", place, accepts=PROTOBUF).raw)
        if shown["metadata"]["resourceVersion"] == decoded["metadata"]["resourceVersion"]:
            return shown, decoded


@pytest.mark.parametrize(("path", "sample"), SAMPLES)
def test_the_bodies_of_our_tests_are_what_the_server_reads(
    real_cluster: FullCluster, namespace: str, path: str, sample: dict[str, Any]
) -> None:
    api = RealApi(real_cluster)
    path, document = placed(path, sample, namespace)
    if document["kind"] != "CustomResourceDefinition":  # whose name its content decides
        document["metadata"]["name"] = "other"  # what the test above deleted may still wait for its finalizers
    asked = f"{path}?dryRun=All"
    as_json, as_protobuf = api.post(asked, document), api.call("POST", asked, body(document), sends=PROTOBUF)
    assert as_protobuf.code == as_json.code == 201, as_protobuf.raw
    assert without_identity(as_protobuf.document) == without_identity(as_json.document)


def without_identity(document: Any) -> Any:
    for name in ("uid", "creationTimestamp", "managedFields"):
        document["metadata"].pop(name, None)
    for condition in document.get("status", {}).get("conditions") or []:
        condition.pop("lastTransitionTime", None)
    return document


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"k8s\x00", id="magic only"),
        pytest.param(b"nonsense", id="no magic"),
        pytest.param(b"k8s\x00\x0a\xff", id="envelope cut short"),
        pytest.param(body({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})[:-8], id="message cut short"),
        pytest.param(b"k8s\x00\x0a\x0b\x0a\x02v1\x12\x05Robot\x12\x00", id="a kind that nobody knows"),
        pytest.param(b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x08\x01", id="a number for a struct"),
        pytest.param(b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05", id="a length beyond the end"),
        pytest.param(b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0b" + b"\xff" * 11, id="a number without end"),
    ],
)
@pytest.mark.usefixtures("words_of_the_default_minor")
def test_a_malformed_body_is_refused_in_the_servers_words(real_cluster: FullCluster, namespace: str, raw: bytes) -> None:
    answer = RealApi(real_cluster).call("POST", f"/api/v1/namespaces/{namespace}/configmaps", raw, sends=PROTOBUF)
    with pytest.raises(Refusal) as refused:
        decode_protobuf(raw, "v1", "ConfigMap")
    assert (answer.code, answer.document["message"]) == (refused.value.code, refused.value.message)


def test_a_deletion_without_grace_keeps_its_zero(real_cluster: FullCluster, namespace: str) -> None:
    """An agent that deletes at once sends gracePeriodSeconds 0; read as absent, the Pod would wait for nobody."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    assert decode_protobuf(body(options)) == options
    api = RealApi(real_cluster)
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    assert api.post(f"/api/v1/namespaces/{namespace}/pods", pod).code == 201
    api.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/a", body(options), sends=PROTOBUF)
    assert api.call("GET", f"/api/v1/namespaces/{namespace}/pods/a").code == 404
