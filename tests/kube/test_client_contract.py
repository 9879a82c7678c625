"""What every API server gives the client, and what the client makes of it: reading, creating, deleting, and refusals."""

import asyncio

import msgspec
import pytest

from applecart.api.core import ConfigMap, Namespace
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import Pod
from applecart.errors import BadInput
from applecart.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    UnsupportedMediaType,
)
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kube.objects import config_map, pod

FINALIZER = "applecart.dev/test"


async def create_many(api: Backend, count: int) -> list[str]:
    """Config maps m-000, m-001, ... with labels that say whether their number is even and which tenth they are in."""
    names = [f"m-{number:03}" for number in range(count)]
    batch = [
        config_map(api.namespace, name, labels={"parity": "odd" if number % 2 else "even", "tenth": str(number // 10)})
        for number, name in enumerate(names)
    ]
    await asyncio.gather(*(api.client.create(obj) for obj in batch))
    return names


def names(objects: list[ConfigMap]) -> list[str]:
    return [obj.name for obj in objects if obj.name != "kube-root-ca.crt"]


# Reading


async def test_a_created_object_is_read_back_with_what_the_server_added(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    assert created.uid
    assert created.revision
    assert created.metadata.creation_timestamp is not None
    assert created.namespace == api.namespace
    assert await api.client.get(ConfigMap, created.key) == created


async def test_reading_what_does_not_exist_is_not_found_and_names_it(api: Backend) -> None:
    with pytest.raises(NotFound, match='configmaps "nowhere" not found') as caught:
        await api.client.get(ConfigMap, Key(api.namespace, "nowhere"))
    details = caught.value.status.details
    assert details is not None
    assert (details.name, details.kind) == ("nowhere", "configmaps")


async def test_a_list_comes_in_pages_of_one_snapshot(api: Backend) -> None:
    expected = await create_many(api, 23)
    pages = []
    async for page in api.client.pages(ConfigMap, api.namespace, page_size=5):
        pages.append(page)
        if len(pages) == 1:
            await api.client.create(config_map(api.namespace, "m-late"))
            await api.client.delete(ConfigMap, Key(api.namespace, "m-022"))
    assert [len(page.items) for page in pages] == [5, 5, 5, 5, 3]
    assert names([obj for page in pages for obj in page.items]) == expected
    assert len({page.metadata.resource_version for page in pages}) == 1


async def test_a_list_in_pages_equals_a_list_in_one_piece(api: Backend) -> None:
    await create_many(api, 12)
    in_pages = [obj async for page in api.client.pages(ConfigMap, api.namespace, page_size=5) for obj in page.items]
    assert in_pages == await api.client.list(ConfigMap, api.namespace)


async def test_a_list_whose_snapshot_was_compacted_between_two_pages_is_expired(api: Backend) -> None:
    await create_many(api, 12)
    pages = api.client.pages(ConfigMap, api.namespace, page_size=5)
    await anext(pages)
    await api.client.create(config_map(api.namespace, "later"))
    await api.compact()
    with pytest.raises(Expired):
        await anext(pages)


async def test_a_list_of_all_namespaces_holds_this_one(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    assert created in await api.client.list(ConfigMap)


@pytest.mark.parametrize(
    ("labels", "fields", "expected"),
    [
        ("parity=even", "", ["m-000", "m-002", "m-010", "m-012"]),
        ("parity==even,tenth=1", "", ["m-010", "m-012"]),
        ("parity!=even,tenth!=0", "", ["m-011"]),
        ("tenth in (1, 2)", "", ["m-010", "m-011", "m-012"]),
        ("tenth notin (0)", "", ["m-010", "m-011", "m-012"]),
        ("parity,!tenth", "", []),
        ("nothing", "", []),
        ("!nothing,tenth=1", "", ["m-010", "m-011", "m-012"]),
        ("", "metadata.name=m-001", ["m-001"]),
        ("tenth=1", "metadata.name!=m-011", ["m-010", "m-012"]),
    ],
)
async def test_selectors_choose_the_same_objects_everywhere(
    api: Backend, labels: str, fields: str, expected: list[str]
) -> None:
    for name in ("m-000", "m-001", "m-002", "m-010", "m-011", "m-012"):
        chosen = {"parity": "odd" if int(name[-1]) % 2 else "even", "tenth": name[-2]}
        await api.client.create(config_map(api.namespace, name, labels=chosen))
    assert names(await api.client.list(ConfigMap, api.namespace, labels=labels, fields=fields)) == expected


async def test_pods_are_selected_by_node_and_phase(api: Backend) -> None:
    await api.client.create(pod(api.namespace, "here", node_name="mac-1"))
    await api.client.create(pod(api.namespace, "there", node_name="mac-2"))
    await api.client.create(pod(api.namespace, "nowhere"))
    await api.client.patch_status(Pod, Key(api.namespace, "there"), Merge({"status": {"phase": "Running"}}))
    assert [one.name for one in await api.client.list(Pod, api.namespace, fields="spec.nodeName=mac-1")] == ["here"]
    assert [one.name for one in await api.client.list(Pod, api.namespace, fields="status.phase!=Pending")] == ["there"]
    both = "spec.nodeName=mac-2,status.phase=Pending"
    assert await api.client.list(Pod, api.namespace, fields=both) == []


@pytest.mark.parametrize(("labels", "fields"), [("a in (", ""), ("=a", ""), ("", "data.colour=green")])
async def test_a_selector_that_cannot_be_read_is_a_bad_request(api: Backend, labels: str, fields: str) -> None:
    with pytest.raises(BadRequest):
        await api.client.list(ConfigMap, api.namespace, labels=labels, fields=fields)


# Creating


async def test_generated_names_differ_and_keep_their_beginning(api: Backend) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(generate_name="runner-", namespace=api.namespace))
    created = [await api.client.create(wanted) for _ in range(3)]
    assert all(obj.name.startswith("runner-") and len(obj.name) == len("runner-") + 5 for obj in created)
    assert len({obj.name for obj in created}) == 3


async def test_a_name_that_is_taken_already_exists(api: Backend) -> None:
    await api.client.create(config_map(api.namespace, "a"))
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await api.client.create(config_map(api.namespace, "a"))


async def test_a_name_of_an_object_that_is_going_is_still_taken(api: Backend) -> None:
    held = await api.client.create(config_map(api.namespace, "a", finalizers=(FINALIZER,)))
    await api.client.delete(ConfigMap, held.key)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await api.client.create(config_map(api.namespace, "a"))


async def test_a_rehearsed_creation_stores_nothing(api: Backend) -> None:
    rehearsed = await api.client.create(config_map(api.namespace, "a"), dry_run=True)
    assert rehearsed.uid
    with pytest.raises(NotFound):
        await api.client.get(ConfigMap, rehearsed.key)


async def test_an_object_without_a_namespace_is_refused_before_it_lands_somewhere(api: Backend) -> None:
    with pytest.raises((MethodNotAllowed, BadInput)):
        await api.client.create(config_map("", "a"))


async def test_a_name_that_breaks_the_rules_is_invalid_and_the_field_is_named(api: Backend) -> None:
    with pytest.raises(Invalid, match=r"metadata\.name") as caught:
        await api.client.create(config_map(api.namespace, "Not_A_Name"))
    assert caught.value.fields == ("metadata.name",)


async def test_the_status_of_a_new_object_is_the_servers(api: Backend) -> None:
    wanted = pod(api.namespace, "a")
    running = msgspec.structs.replace(wanted, status=msgspec.structs.replace(wanted.status, phase="Running"))
    assert (await api.client.create(running)).status.phase == "Pending"


# Deleting


async def test_a_deleted_object_is_gone(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, created.key)
    with pytest.raises(NotFound):
        await api.client.get(ConfigMap, created.key)
    with pytest.raises(NotFound):
        await api.client.delete(ConfigMap, created.key)


async def test_a_rehearsed_deletion_deletes_nothing(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, created.key, dry_run=True)
    assert await api.client.get(ConfigMap, created.key) == created


async def test_deleting_another_object_of_that_name_is_a_conflict(api: Backend) -> None:
    first = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, first.key)
    second = await api.client.create(config_map(api.namespace, "a"))
    with pytest.raises(Conflict):
        await api.client.delete(ConfigMap, first.key, if_uid=first.uid)
    await api.client.delete(ConfigMap, first.key, if_uid=second.uid)


async def test_deleting_an_object_that_changed_meanwhile_is_a_conflict(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    changed = await api.client.patch(ConfigMap, created.key, Merge({"data": {"a": "b"}}))
    with pytest.raises(Conflict):
        await api.client.delete(ConfigMap, created.key, if_revision=created.revision)
    await api.client.delete(ConfigMap, created.key, if_revision=changed.revision)


async def test_a_finalizer_holds_an_object_until_it_is_removed(api: Backend) -> None:
    held = await api.client.create(config_map(api.namespace, "a", finalizers=(FINALIZER,)))
    await api.client.delete(ConfigMap, held.key)
    going = await api.client.get(ConfigMap, held.key)
    assert going.is_being_deleted
    assert going.metadata.deletion_grace_period_seconds == 0
    await api.client.delete(ConfigMap, held.key)
    assert (await api.client.get(ConfigMap, held.key)).revision == going.revision
    await api.client.patch(ConfigMap, held.key, Merge({"metadata": {"finalizers": None}}))
    with pytest.raises(NotFound):
        await api.client.get(ConfigMap, held.key)


async def test_an_object_that_is_going_takes_no_new_finalizer(api: Backend) -> None:
    held = await api.client.create(config_map(api.namespace, "a", finalizers=(FINALIZER,)))
    await api.client.delete(ConfigMap, held.key)
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        await api.client.patch(ConfigMap, held.key, Merge({"metadata": {"finalizers": [FINALIZER, "applecart.dev/late"]}}))


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [("Foreground", ("foregroundDeletion",)), ("Orphan", ("orphan",))],
)
async def test_a_propagation_that_waits_for_dependents_holds_the_owner(
    api: Backend, propagation: str, finalizers: tuple[str, ...]
) -> None:
    """No garbage collector runs here, so the owner stays as the server left it."""
    created = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, created.key, propagation=propagation)
    assert (await api.client.get(ConfigMap, created.key)).metadata.finalizers == finalizers


async def test_background_propagation_does_not_hold_the_owner(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, created.key, propagation="Background")
    with pytest.raises(NotFound):
        await api.client.get(ConfigMap, created.key)


async def test_a_bound_pod_stays_until_its_grace_period_is_cut_to_nothing(api: Backend) -> None:
    created = await api.client.create(pod(api.namespace, "a", node_name="mac-1"))
    await api.client.delete(Pod, created.key)
    going = await api.client.get(Pod, created.key)
    assert going.is_being_deleted
    assert going.metadata.deletion_grace_period_seconds == 30
    await api.client.delete(Pod, created.key, grace_s=60)
    assert (await api.client.get(Pod, created.key)).metadata.deletion_grace_period_seconds == 30
    await api.client.delete(Pod, created.key, grace_s=5)
    assert (await api.client.get(Pod, created.key)).metadata.deletion_grace_period_seconds == 5
    await api.client.delete(Pod, created.key, grace_s=0)
    with pytest.raises(NotFound):
        await api.client.get(Pod, created.key)


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
async def test_a_pod_that_runs_nowhere_goes_at_once(api: Backend, phase: str) -> None:
    created = await api.client.create(pod(api.namespace, "a", node_name="mac-1" if phase else ""))
    if phase:
        await api.client.patch_status(Pod, created.key, Merge({"status": {"phase": phase}}))
    await api.client.delete(Pod, created.key)
    with pytest.raises(NotFound):
        await api.client.get(Pod, created.key)


# Refusals


async def test_a_resource_that_no_path_leads_to_is_not_found(api: Backend) -> None:
    with pytest.raises(NotFound):
        await api.client.call(Request("GET", "/apis/nobody.example.com/v1/a/b/c/d/e/f"))


async def test_a_verb_that_a_path_does_not_serve_is_not_allowed(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    with pytest.raises(MethodNotAllowed):
        await api.client.call(Request("POST", f"/api/v1/namespaces/{api.namespace}/configmaps/{created.name}", body=b"{}"))


async def test_a_body_of_an_unknown_type_is_refused(api: Backend) -> None:
    body = msgspec.json.encode(config_map(api.namespace, "a"))
    request = Request("POST", f"/api/v1/namespaces/{api.namespace}/configmaps", body=body, content_type="text/plain")
    with pytest.raises(UnsupportedMediaType):
        await api.client.call(request, repeatable=False)


async def test_a_body_beyond_the_servers_limit_is_too_large(api: Backend) -> None:
    with pytest.raises(TooLarge):
        await api.client.create(config_map(api.namespace, "a", big="x" * (3 * 1024 * 1024)))


async def test_a_body_that_is_no_object_is_a_bad_request(api: Backend) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    with pytest.raises(BadRequest):
        await api.client.call(Request("POST", path, body=b"{"), repeatable=False)
    of_another_version = b'{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}'
    with pytest.raises(BadRequest, match=r"does not match the expected API version|no kind"):
        await api.client.call(Request("POST", path, body=of_another_version), repeatable=False)


async def test_who_may_nothing_is_forbidden(api: Backend) -> None:
    stranger = await api.stranger()
    try:
        with pytest.raises(Forbidden, match="cannot list resource"):
            await stranger.list(Namespace)
    finally:
        await stranger.aclose()
