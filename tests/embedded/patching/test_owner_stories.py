"""Whatever several writers do to one object, in whatever order: nobody's fields are lost, and a real server says the same."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from applecart.clock import Clock
from applecart.embedded.patching.field_set import NOTHING, FieldSet
from applecart.embedded.patching.managed_fields import APPLY, NEVER_OWNED, managed_fields_of, read_entries
from applecart.embedded.patching.structured_merge import fields_in
from applecart.embedded.server.server import RunningApi
from applecart.embedded.shape import Shape
from applecart.embedded.structure.types import shape_of
from applecart.kube.transport import Request
from tests.conformance.normal import normalise
from tests.embedded.kinds import kind_cases, pod_cases
from tests.embedded.kinds.documents import entry_of
from tests.embedded.patching.owner_stories import Call, IdleStory, Story, Written
from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import PROBE, PROBE_CRD
from tests.kube.embedded_api import serving
from tests.soak import seeds

SHAPES = {"ConfigMap": shape_of("v1", "ConfigMap"), "Pod": shape_of("v1", "Pod"), "Probe": PROBE}
JSON = "application/json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def embedded(running: RunningApi) -> Call:
    transport = running.transport()

    async def call(method: str, path: str, body: Any, media_type: str) -> tuple[int, Any]:
        parts = urlsplit(path)
        sent = None if body is None else json.dumps(body).encode()
        query = tuple(parse_qsl(parts.query))
        answer = await transport.send(Request(method, parts.path, query, sent, media_type))
        return answer.status, json.loads(answer.body)

    return call


def real(api: RealApi) -> Call:
    async def call(method: str, path: str, body: Any, media_type: str) -> tuple[int, Any]:
        return api.call(method, path, body, media_type)

    return call


def told(story: list[Written], namespace: str) -> list[Any]:
    """The answers, without what is accidental. Of refusals only conflicts are whole: other texts are compared elsewhere."""
    answers = [one.answer if one.code < 300 or one.code == 409 else {"code": one.code} for one in story]
    return list(normalise(answers, {namespace: "ns"}, managed_fields=True))


@pytest.mark.kubernetes
@pytest.mark.parametrize("story_of", [Story, IdleStory])
@pytest.mark.parametrize("kind", SHAPES)
async def test_any_story_leaves_the_same_object_with_the_same_owners_as_on_a_real_server(
    kind: str, story_of: type[Story], real_api: RealApi, namespace: str, clock: Clock
) -> None:
    """An object was written again, with a new revision for all watchers, because of the time of a change that was ignored."""
    async with serving(clock, [namespace]) as running:
        ours = embedded(running)
        await ours("POST", DEFINITIONS, PROBE_CRD, JSON)
        for seed in seeds(12, soak=400 if story_of is Story else 150):
            stories = [story_of(real(real_api), namespace, kind), story_of(ours, namespace, kind)]
            wanted, got = [await story.tell(seed) for story in stories]
            for number, (one, other) in enumerate(zip(told(wanted, namespace), told(got, namespace), strict=True), 1):
                steps = "\n".join(f"{step.code} {step.what}" for step in wanted[:number])
                assert other == one, f"story {seed} of a {kind} parts at:\n{steps}"
            for story in stories:
                await story.end()


@pytest.mark.kubernetes
async def test_the_creator_of_any_built_in_kind_owns_what_it_owns_on_a_real_server(
    real_api: RealApi, namespace: str, clock: Clock
) -> None:
    async with serving(clock, [namespace]) as running:
        ours, theirs, compared = embedded(running), real(real_api), 0
        for label, document in {**pod_cases.CREATED, **kind_cases.CREATED}.items():
            resource = entry_of(document).resource
            place = f"namespaces/{namespace}/" if resource.namespaced else ""
            root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
            path = f"{root}/{place}{resource.plural}?dryRun=All&fieldManager=me"
            answers = [await call("POST", path, document, JSON) for call in (theirs, ours)]
            if all(code < 300 for code, _ in answers):  # other tests compare refusals
                wanted, got = (normalise(answer["metadata"].get("managedFields"), {}) for _, answer in answers)
                assert got == wanted, label
                compared += 1
    assert compared > 50


@pytest.mark.parametrize("kind", SHAPES)
async def test_in_any_story_what_a_writer_wants_is_owned_and_no_apply_takes_what_others_own(kind: str, clock: Clock) -> None:
    async with serving(clock, ["ci"]) as running:
        call = embedded(running)
        await call("POST", DEFINITIONS, PROBE_CRD, JSON)
        for seed in seeds(12, soak=400):
            story = Story(call, "ci", kind)
            before: dict[str, Any] = {}
            is_tracked = True
            for number, step in enumerate(await story.tell(seed)):
                if step.code >= 300:
                    continue
                about = f"story {seed} of a {kind}, step {number}: {step.what}"
                entries = read_entries(step.answer["metadata"].get("managedFields"))
                owned = union(entry.fields for entry in entries.values())
                is_tracked = is_tracked and bool(entries)  # until somebody clears them
                if is_tracked:
                    wanted = fields_of(step.sent, SHAPES[kind]) & fields_of(step.answer, SHAPES[kind])
                    lacking = wanted - owned - NEVER_OWNED
                    assert not lacking, f"{about} leaves {lacking.written()} without an owner"
                if applier := step.applier:
                    held = read_entries(managed_fields_of(before)).items()
                    others = union(
                        entry.fields for owner, entry in held if (owner.manager, owner.operation) != (applier, APPLY)
                    )
                    lost = (others & fields_of(before, SHAPES[kind])) - fields_of(step.answer, SHAPES[kind], all_members=True)
                    assert not lost, f"{about} takes {lost.written()} from its owners"
                before = step.answer
            await story.end()


def fields_of(document: dict[str, Any], shape: Shape, *, all_members: bool = False) -> FieldSet:
    """Of what callers set. What has no shape may turn from a map into a text, and then loses what it held."""
    content = {name: document[name] for name in ("metadata", "data", "spec") if name in document}
    if "free" in content.get("spec", {}):
        content["spec"] = {name: value for name, value in content["spec"].items() if name != "free"}
    return fields_in(content, shape, all_members=all_members)


def union(sets: Iterable[FieldSet]) -> FieldSet:
    everything = NOTHING
    for one in sets:
        everything = everything | one
    return everything
