"""Our judgement of JSON documents against a real API server's, word for word."""

import json
from typing import Any

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.strict import strict_problems
from applecart.embedded.structure.types import type_of
from tests.embedded.structure.real_api import RealApi
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

PATHS = {
    "ConfigMap": "/api/v1/namespaces/{ns}/configmaps",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Event": "/api/v1/namespaces/{ns}/events",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    "Pod": "/api/v1/namespaces/{ns}/pods",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "Secret": "/api/v1/namespaces/{ns}/secrets",
}
CRDS = "apiextensions.k8s.io/v1"


def config_map(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **more}


def meta(**more: Any) -> dict[str, Any]:
    return config_map(metadata={"name": "a", **more})


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}


def container(**more: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **more}])


def volume(**more: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", **more}])


def lease(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec}


def crd(**schema: Any) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", **schema}}}]
    names = {"kind": "Thing", "plural": "things"}
    spec = {"group": "contract.applecart.dev", "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": "things.contract.applecart.dev"}
    return {"apiVersion": CRDS, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


REFUSED = [
    config_map(data=5),
    config_map(data=[]),
    config_map(data={"a": 5}),
    config_map(data={"a": ["x"]}),
    config_map(immutable="yes"),
    config_map(immutable=0),
    config_map(binaryData={"a": 5}),
    config_map(binaryData={"a": [1, 256]}),
    config_map(binaryData={"a": [1, "x"]}),
    config_map(metadata=[]),
    config_map(metadata="a"),
    meta(labels={"a": 1}),
    meta(labels=[]),
    meta(finalizers="x"),
    meta(finalizers=[1]),
    meta(generation="1"),
    meta(ownerReferences={}),
    meta(ownerReferences=[{"controller": "yes"}]),
    meta(uid=5),
    meta(creationTimestamp=5),
    meta(creationTimestamp={}),
    meta(creationTimestamp=""),
    meta(creationTimestamp="yesterday"),
    meta(creationTimestamp="2026-02-30T00:00:00Z"),
    meta(deletionTimestamp="2026-02-03 00:00:00Z"),
    {**config_map(data={"a": 1}), "metadata": {"creationTimestamp": "x"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "hunter2!"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ="}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ=x"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ==YQ=="}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "=YQ"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": 5}},
    pod(containers={}),
    pod(containers=[5]),
    pod(containers="c"),
    pod(terminationGracePeriodSeconds="5"),
    pod(terminationGracePeriodSeconds=1.5),
    pod(terminationGracePeriodSeconds=2**63),
    pod(priority=2**31),
    pod(priority=True),
    pod(hostNetwork=1),
    pod(nodeSelector={"a": True}),
    pod(securityContext={"supplementalGroups": ["1"]}),
    pod(tolerations=[{"tolerationSeconds": {}}]),
    container(ports=[{"containerPort": "80"}]),
    container(imagePullPolicy=5),
    container(resources=5),
    container(resources={"limits": 5}),
    container(resources={"limits": {"cpu": "much"}}),
    container(resources={"limits": {"cpu": ""}}),
    container(resources={"limits": {"cpu": []}}),
    container(resources={"limits": {"cpu": True}}),
    container(resources={"limits": {"cpu": "1ki"}}),
    container(name=5, resources={"limits": {"cpu": "1i"}}),
    container(livenessProbe={"httpGet": {"port": True}}),
    container(livenessProbe={"httpGet": {"port": 1.5}}),
    container(livenessProbe={"httpGet": {"port": {}}}),
    container(livenessProbe={"httpGet": 5}),
    volume(emptyDir=5),
    volume(emptyDir={"sizeLimit": "x"}),
    volume(projected={"sources": [{"configMap": {"optional": 1}}]}),
    lease(renewTime="2026-01-02T03:04:05Z"),
    lease(renewTime="2026-01-02T03:04:05.1234567Z"),
    lease(leaseDurationSeconds="15"),
    crd(type=5),
    crd(properties=[]),
    crd(properties={"a": 5}),
    crd(properties={"a": {"items": {"type": 5}}}),
    crd(properties={"a": {"items": {"properties": {"b": {"maxLength": "x"}}}}}),
    crd(properties={"a": {"additionalProperties": 5}}),
    crd(properties={"a": {"additionalProperties": {"type": []}}}),
    crd(properties={"a": {"minimum": "x"}}),
    crd(required="x"),
]

NOT_STRICT = [
    json.dumps(config_map(bogus=1, data={"a": "b"})),
    json.dumps({"bogus": {"deep": 1}, **meta(bogus=[], labels={"a": "b"})}),
    json.dumps(
        container(
            bogus=None,
            env=[{"name": "A", "valeu": "x"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "x": 1}}}],
        )
    ),
    json.dumps(volume(emptyDir={"sizelimit": "1"})),
    json.dumps(config_map(Data={})),
    json.dumps(
        crd(properties={"a": {"type": "string", "bogus": 1}, "b": {"type": "array", "items": {"type": "string", "x": 1}}})
    ),
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","name":"a","labels":{"a":"1","a":"2"}},"data":{},"data":{}}',
    '{"kind":"ConfigMap","apiVersion":"v1","bog":1,"metadata":{"name":"a","bog":1,"bog":2},"bog":2,"immutable":true,"immutable":false}',
    '{"apiVersion":"v1","kind":"Pod","kind":"Pod","metadata":{"name":"a"},'
    '"spec":{"containers":[{"name":"c","image":"i","image":"j","x":1}]}}',
]


@pytest.mark.usefixtures("words_of_the_default_minor")
@pytest.mark.parametrize("document", REFUSED, ids=json.dumps)
def test_a_document_of_wrong_types_is_refused_in_the_servers_words(
    real_cluster: FullCluster, namespace: str, document: dict[str, Any]
) -> None:
    answer = RealApi(real_cluster).post(f"{PATHS[document['kind']].format(ns=namespace)}?dryRun=All", document)
    type = type_of(document["apiVersion"], document["kind"])
    assert type is not None
    with pytest.raises(Refusal) as refused:
        conform(document, type)
    assert (answer.code, answer.document["message"]) == (refused.value.code, refused.value.message)


@pytest.mark.parametrize("text", NOT_STRICT)
def test_unknown_and_repeated_members_are_told_in_the_servers_words(
    real_cluster: FullCluster, namespace: str, text: str
) -> None:
    api = RealApi(real_cluster)
    document = json.loads(text)
    path = PATHS[document["kind"]].format(ns=namespace)
    type = type_of(document["apiVersion"], document["kind"])
    assert type is not None
    conformed = conform(document, type)
    problems = strict_problems(text.encode(), document, conformed, type)
    strict = api.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", text.encode())
    assert strict.document["message"].endswith(f": strict decoding error: {', '.join(problems)}")
    warned = api.call("POST", f"{path}?dryRun=All&fieldValidation=Warn", text.encode())
    expected = [f"299 - {json.dumps(problem)}" for problem in problems]
    assert [warning for warning in warned.warnings if " field " in warning] == expected
    ignored = api.call("POST", f"{path}?dryRun=All&fieldValidation=Ignore", text.encode())
    assert ignored.code == 201
    assert_contained(conformed.document, ignored.document)


STORED_AS = [
    config_map(data={"a": None, "b": ""}, binaryData={"c": None, "d": "", "e": [1, 2]}, immutable=None),
    config_map(data={}, binaryData=None),
    meta(labels={}, annotations={"a": None}, finalizers=[], ownerReferences=None, creationTimestamp=None, generation=0),
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ==\n", "b": "YR=="}, "immutable": False},
    pod(terminationGracePeriodSeconds=0, hostNetwork=False, priority=None, nodeName="", automountServiceAccountToken=False),
    container(env=[{"name": "A", "value": ""}, {"name": "B", "value": None}], command=[], args=[""], stdin=False),
    container(resources={"requests": {"cpu": 0.5, "memory": "1024Mi"}, "limits": {"cpu": "1000m", "memory": "1.5Gi"}}),
    container(resources={"requests": {"cpu": "100u", "memory": 1000000}, "limits": {}}),
    container(livenessProbe={"httpGet": {"port": "web"}, "initialDelaySeconds": 0}, readinessProbe=None),
    container(securityContext={"runAsUser": 0, "privileged": False, "capabilities": {}}),
    volume(emptyDir={}),
    volume(emptyDir={"medium": "", "sizeLimit": "0.5Gi"}),
    volume(hostPath={"path": "/x", "type": None}),
    lease(renewTime="2026-01-02T03:04:05.123456+02:00", leaseTransitions=0, holderIdentity=None),
    lease(),
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}, "rules": None},
    {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "involvedObject": {"namespace": "{ns}"}},
    {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "involvedObject": {"namespace": "{ns}"},
        "firstTimestamp": "2026-01-02T03:04:05.999-07:00",
        "eventTime": None,
        "series": None,
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "contract"},
        "handler": "x",
        "overhead": {"podFixed": {"cpu": "100u"}},
    },
    crd(properties={"a": {"type": "integer", "default": None, "minimum": 0, "nullable": False, "enum": [1, 2.5]}}),
    crd(properties={"a": {"type": "object", "additionalProperties": {"type": "string", "minLength": 0}}}),
    crd(properties={"a": {"type": "array", "items": {"type": "string"}, "maxItems": None}}, required=[]),
]


@pytest.mark.parametrize("document", STORED_AS, ids=json.dumps)
def test_what_is_stored_is_what_the_server_stores(real_cluster: FullCluster, namespace: str, document: dict[str, Any]) -> None:
    document = json.loads(json.dumps(document).replace("{ns}", namespace))
    path = PATHS[document["kind"]].format(ns=namespace)
    api = RealApi(real_cluster)
    # CRDs are stored as JSON, so a dry run shows what is stored; their deletion would take its time.
    created = api.post(f"{path}?dryRun=All" if document["apiVersion"] == CRDS else path, document)
    assert created.code == 201, created.raw
    if document["kind"] == "RuntimeClass":
        api.call("DELETE", f"{path}/{document['metadata']['name']}")
    type = type_of(document["apiVersion"], document["kind"])
    assert type is not None
    assert_contained(conform(document, type).document, created.document)
    assert_no_less(document, conform(document, type).document, created.document)


def assert_contained(ours: Any, theirs: Any, path: str = "") -> None:
    """Everything we show, the server shows too; what only it shows are defaults."""
    if path in (".metadata", ".status"):  # written by the server
        ours, theirs = ({name: part[name] for name in part if name in ("labels", "annotations")} for part in (ours, theirs))
    if isinstance(ours, dict):
        assert isinstance(theirs, dict), path
        for name, value in ours.items():
            assert name in theirs, f"{path}.{name}"
            assert_contained(value, theirs[name], f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        assert len(ours) <= len(theirs), path
        for index, value in enumerate(ours):
            assert_contained(value, theirs[index], f"{path}[{index}]")
    else:
        assert ours == theirs, path


def assert_no_less(given: Any, ours: Any, theirs: Any, path: str = "") -> None:
    """A member that was given and that the server shows, we show too."""
    if isinstance(given, dict) and isinstance(theirs, dict) and path != ".metadata":
        for name in given.keys() & theirs.keys():
            is_defaulted = given[name] in (None, "")
            assert is_defaulted or name in ours, f"{path}.{name}"
            if not is_defaulted:
                assert_no_less(given[name], ours[name], theirs[name], f"{path}.{name}")
