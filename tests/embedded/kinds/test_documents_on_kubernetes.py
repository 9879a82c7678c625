"""Every document of the tables has the same outcome here and on a real server: refusal with its text, or resulting object."""

import http.client
import itertools
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from applecart.api.quantity import parse_quantity
from applecart.embedded.kinds.binding import bind, validate_binding
from applecart.embedded.kinds.builtin import VIRTUAL_RESOURCES, builtin_kinds
from applecart.embedded.kinds.pod import PodStrategy
from applecart.embedded.refusals import Refusal
from tests.embedded.kinds import kind_cases, pod_cases
from tests.embedded.kinds.comparison import comparable, outcome_of_answer, outcome_of_create, outcome_of_update
from tests.embedded.kinds.documents import created, entry_of, normal, pod
from tests.kubernetes.cluster import FullCluster
from tests.kubernetes.recipe import DEFAULT_KUBE

pytestmark = pytest.mark.kubernetes
TIMEOUT_S = 30
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

_numbers = itertools.count(1)


class Api:
    """One connection to the real server, and the namespace the documents go to."""

    def __init__(self, cluster: FullCluster, namespace: str) -> None:
        context = ssl.create_default_context(cadata=cluster.ca_pem.decode("ascii"))
        context.load_cert_chain(cluster.admin.certificate, cluster.admin.key)
        address = urllib.parse.urlsplit(cluster.url)
        assert address.hostname
        self.connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=TIMEOUT_S)
        self.namespace = namespace
        self.warnings: list[str] = []  # of the last answer

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        content = json.dumps(body).encode() if body is not None else None
        self.connection.request(method, path, body=content, headers={"Content-Type": "application/json"})
        with self.connection.getresponse() as answer:
            self.warnings = [text[len('299 - "') : -1].replace('\\"', '"') for text in answer.headers.get_all("Warning") or ()]
            return answer.status, json.loads(answer.read())

    def path(self, document: dict[str, Any], name: str = "") -> str:
        resource = entry_of(document).resource
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        scope = f"/namespaces/{self.namespace}" if resource.namespaced else ""
        return f"{root}{scope}/{resource.plural}{'/' if name else ''}{name}"


@pytest.fixture
def api(real_cluster: FullCluster, namespace: str, kube: str) -> Iterator[Api]:
    if kube != DEFAULT_KUBE:
        pytest.skip(f"the texts of the tables are those of Kubernetes {DEFAULT_KUBE}")
    one = Api(real_cluster, namespace)
    yield one
    one.connection.close()


def differences_of_creates(api: Api, cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    different = {}
    for label, document in cases.items():
        code, answer = api.call("POST", f"{api.path(document)}?dryRun=All", document)
        real, ours = outcome_of_answer(code, answer), outcome_of_create(document, api.namespace)
        if real != ours:
            different[label] = {"real": real, "ours": ours}
    return different


def differences_of_updates(
    api: Api, cases: dict[str, tuple[dict[str, Any], dict[str, Any]]], subresource: str = ""
) -> dict[str, Any]:
    different = {}
    for label, (old, new) in cases.items():
        # A name of its own for each: without controllers a Namespace never goes.
        name = f"{api.namespace[:40]}-{next(_numbers)}"
        before, after = ({**one, "metadata": {**one["metadata"], "name": name}} for one in (old, new))
        code, stored = api.call("POST", api.path(old), before)
        assert code == 201, (label, stored)
        after["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        path = f"{api.path(old, name)}{'/' if subresource else ''}{subresource}?dryRun=All"
        code, answer = api.call("PUT", path, after)
        real, ours = outcome_of_answer(code, answer), outcome_of_update(after, before, api.namespace, subresource)
        if real != ours:
            different[label] = {"real": real, "ours": ours}
        api.call("DELETE", f"{api.path(old, name)}?gracePeriodSeconds=0")
    return different


def test_creating_a_pod_ends_as_on_a_real_server(api: Api) -> None:
    assert differences_of_creates(api, pod_cases.CREATED) == {}


def test_updating_a_pod_ends_as_on_a_real_server(api: Api) -> None:
    assert differences_of_updates(api, pod_cases.UPDATED) == {}


def test_reporting_a_pods_status_ends_as_on_a_real_server(api: Api) -> None:
    cases = {label: (pod(), new) for label, new in pod_cases.REPORTED.items()}
    assert differences_of_updates(api, cases, "status") == {}


def test_creating_an_object_of_another_kind_ends_as_on_a_real_server(api: Api) -> None:
    assert differences_of_creates(api, kind_cases.CREATED) == {}


def test_updating_an_object_of_another_kind_ends_as_on_a_real_server(api: Api) -> None:
    assert differences_of_updates(api, kind_cases.UPDATED) == {}


def test_reporting_the_status_of_another_kind_ends_as_on_a_real_server(api: Api) -> None:
    assert differences_of_updates(api, kind_cases.REPORTED, "status") == {}


def test_the_advice_about_a_pod_is_a_real_servers(api: Api) -> None:
    real, ours = {}, {}
    for label, document in pod_cases.WARNED.items():
        code, _answer = api.call("POST", f"{api.path(document)}?dryRun=All", document)
        assert code == 201
        real[label], ours[label] = api.warnings, PodStrategy().warnings(created(document, api.namespace))
    assert ours == real


def test_quantities_are_kept_in_the_same_text(api: Api) -> None:
    """One Pod with a volume for each; a size is the one quantity that is not rounded to thousandths."""
    numbers = ("0", "1", "1.5", "0.5", "1.500", "+5", "1000", "1024", "2048", "100000", "0.1", "007", "12345678901234567890")
    suffixes = [
        "",
        *["n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-3", "E2", "e0", "e4"],
    ]
    texts = [number + suffix for number in numbers for suffix in suffixes]
    volumes = [{"name": f"v{index}", "emptyDir": {"sizeLimit": text}} for index, text in enumerate(texts)]
    code, answer = api.call("POST", f"{api.path(pod())}?dryRun=All", pod(volumes=volumes))
    assert code == 201, answer
    real = [volume["emptyDir"]["sizeLimit"] for volume in answer["spec"]["volumes"]]
    assert [parse_quantity(text).canonical for text in texts] == real


@pytest.mark.parametrize(
    "binding",
    [
        {"metadata": {"name": "other"}, "target": {"name": "n"}},
        {"metadata": {"name": "runner"}, "target": {"kind": "Pod", "name": ""}},
        {"metadata": {"name": "runner"}, "target": {"name": ""}},
        {"metadata": {"name": "runner", "uid": "other"}, "target": {"name": "n"}},
        {"metadata": {"name": "runner", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "target": {"name": "n"}},
    ],
)
def test_binding_a_pod_ends_as_on_a_real_server(api: Api, binding: dict[str, Any]) -> None:
    """Bound as asked, and then once more: the second time is always refused."""
    _code, stored = api.call("POST", api.path(pod()), pod())
    body = {"apiVersion": "v1", "kind": "Binding", **binding}
    for _attempt in range(2):
        code, answer = api.call("POST", f"{api.path(pod(), 'runner')}/binding", body)
        _code, after = api.call("GET", api.path(pod(), "runner"))
        stored, refused = bound(stored, body)
        if code == 500:  # a real server forgets that this is the caller's mistake; its words are the same
            assert refused is not None
            assert (refused["code"], refused["message"]) == (400, answer["message"])
        else:
            assert (comparable(refused) if refused else 201) == (comparable(answer) if code != 201 else code)
        assert normal(stored) == normal(after)


def bound(obj: dict[str, Any], binding: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The Pod afterwards, and the refusal if there was one."""
    try:
        validate_binding("runner", binding)
        return bind(obj, binding, NOW), None
    except Refusal as refusal:
        return obj, refusal.document()


def test_the_kinds_are_listed_as_a_real_server_lists_them(api: Api) -> None:
    """Names, verbs and subresources; the real server has more of both, which nobody needs here."""
    listed: dict[tuple[str, str], dict[str, Any]] = {}
    served = [entry.resource for entry in builtin_kinds()] + list(VIRTUAL_RESOURCES)
    for version in {resource.api_version for resource in served}:
        _code, answer = api.call("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
        listed |= {(version, one["name"]): one for one in answer["resources"]}
    for entry in builtin_kinds():
        resource = entry.resource
        real = listed[resource.api_version, resource.plural]
        assert (real["kind"], real["namespaced"], tuple(real["verbs"])) == (resource.kind, resource.namespaced, entry.verbs)
        assert tuple(real.get("shortNames", ())) == entry.short_names
        assert tuple(real.get("categories", ())) == entry.categories
        assert real["singularName"] == resource.kind.lower()
        for sub in entry.subresources:
            below = listed[resource.api_version, f"{resource.plural}/{sub.name}"]
            assert (below["kind"], tuple(below["verbs"])) == (sub.kind, sub.verbs)
            assert (below.get("group", ""), below.get("version", "")) == (sub.group, sub.version)
    for resource in VIRTUAL_RESOURCES:
        real = listed[resource.api_version, resource.plural]
        assert (real["kind"], real["namespaced"], real["verbs"]) == (resource.kind, resource.namespaced, ["create"])
