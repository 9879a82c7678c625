"""Server-side apply and field ownership, step by step beside a real API server."""

from typing import Any

import msgspec
import pytest

from applecart.embedded.patching.managed_fields import Writer, track_update
from applecart.embedded.patching.values import copied
from tests.embedded.patching.apply_cases import APPLY_CASES
from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import deployment, node, pod
from tests.embedded.patching.steps import NOW, SUBJECTS, Answer, Step, assert_equal, ours, really

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]


@pytest.mark.parametrize("title", APPLY_CASES)
def test_every_step_comes_out_as_on_a_real_server(title: str, real_api: RealApi, namespace: str) -> None:
    case = APPLY_CASES[title]
    subject = SUBJECTS[case.kind]
    live = None
    for step in case.setup:
        live = really(real_api, subject, namespace, "subject", step).document
        assert live is not None
    for step in case.steps:
        expected = really(real_api, subject, namespace, "subject", step)
        got = ours(subject, live, step)
        assert_equal(got, expected)
        if expected.code == 500:
            assert got.message == expected.message
        live = expected.document or live


CONTAINER = {"name": "main", "image": "one", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 1}]}


@pytest.mark.parametrize(
    "body",
    [
        pod({**CONTAINER, "command": ["x"]}, volumes=[{"name": "v", "emptyDir": {}}], nodeSelector={"a": "b"}),
        deployment({**CONTAINER, "resources": {"limits": {"cpu": "1"}}}),
        node(labels={"a": "b"}, annotations={"c": "d"}),
    ],
    ids=lambda body: body["kind"],
)
def test_a_creation_is_tracked_as_on_a_real_server(body: dict[str, Any], real_api: RealApi, namespace: str) -> None:
    subject = SUBJECTS[body["kind"]]
    body = {**body, "metadata": {**body["metadata"], "name": "created"}}
    expected = really(real_api, subject, namespace, "created", Step("create", body, "u1"))
    created = copied(expected.document)
    del created["metadata"]["managedFields"]
    # Admission adds these after ownership was settled.
    for name in ("tolerations", "priority", "preemptionPolicy", "taints"):
        created["spec"].pop(name, None)
    # Older minors write a time that is not set, here and in the blank object.
    created["spec"].get("template", {}).get("metadata", {}).pop("creationTimestamp", None)
    writer = Writer("u1", subject.shape, subject.api_version, NOW, reset=("status",), blank=subject.blank)
    track_update(None, created, writer)
    expected = Answer({**copied(expected.document), "spec": created["spec"]})
    assert_equal(Answer(msgspec.json.decode(msgspec.json.encode(created))), expected)
