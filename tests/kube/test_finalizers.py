"""Our finalizer is stored before we go on, and nobody else's is ever lost."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.finalizers import ATTEMPTS, BeingDeleted, ensure_finalizer, remove_finalizer
from applecart.kube.patch import Merge
from applecart.kube.transport import Request, Response, Transport
from tests.kube.backends import Backend
from tests.kube.embedded_api import serving

OURS = "applecart.dev/ours"
THEIRS = "example.com/theirs"


async def stored(api: Backend, *finalizers: str) -> ConfigMap:
    metadata = ObjectMeta(name="guarded", namespace=api.namespace, finalizers=finalizers)
    return await api.client.create(ConfigMap(metadata=metadata))


async def set_finalizers(api: Backend, *finalizers: str) -> ConfigMap:
    key = Key(api.namespace, "guarded")
    return await api.client.patch(ConfigMap, key, Merge({"metadata": {"finalizers": list(finalizers)}}))


async def test_a_finalizer_is_stored_when_ensure_returns(api: Backend) -> None:
    obj = await stored(api)
    ensured = await ensure_finalizer(api.client, obj, OURS)
    assert ensured.metadata.finalizers == (OURS,)
    assert (await api.client.get(ConfigMap, obj.key)).metadata.finalizers == (OURS,)
    await remove_finalizer(api.client, ensured, OURS)


async def test_a_finalizer_that_is_there_costs_no_call(api: Backend) -> None:
    obj = await ensure_finalizer(api.client, await stored(api), OURS)
    assert await ensure_finalizer(api.client, obj, OURS) is obj
    bare = await remove_finalizer(api.client, obj, OURS)
    assert bare is not None
    assert await remove_finalizer(api.client, bare, OURS) is bare


async def test_a_finalizer_somebody_added_meanwhile_survives_ours(api: Backend) -> None:
    seen = await stored(api)
    await set_finalizers(api, THEIRS)
    ensured = await ensure_finalizer(api.client, seen, OURS)
    assert ensured.metadata.finalizers == (THEIRS, OURS)
    seen = ensured
    await set_finalizers(api, THEIRS, OURS, "example.com/third")
    removed = await remove_finalizer(api.client, seen, OURS)
    assert removed is not None
    assert removed.metadata.finalizers == (THEIRS, "example.com/third")
    await set_finalizers(api)


async def test_a_finalizer_somebody_removed_meanwhile_does_not_come_back(api: Backend) -> None:
    seen = await stored(api, THEIRS)
    await set_finalizers(api)
    ensured = await ensure_finalizer(api.client, seen, OURS)
    assert ensured.metadata.finalizers == (OURS,)
    await remove_finalizer(api.client, ensured, OURS)


async def test_an_object_on_its_way_out_takes_no_new_finalizer(api: Backend) -> None:
    seen = await stored(api, THEIRS)
    await api.client.delete(ConfigMap, seen.key)
    with pytest.raises(BeingDeleted, match=f"guarded is being deleted; finalizer {OURS}"):
        await ensure_finalizer(api.client, seen, OURS)
    await set_finalizers(api)


async def test_the_last_finalizer_to_go_ends_an_object_that_was_deleted(api: Backend) -> None:
    seen = await ensure_finalizer(api.client, await stored(api), OURS)
    await api.client.delete(ConfigMap, seen.key)
    await remove_finalizer(api.client, seen, OURS)
    with pytest.raises(NotFound):
        await api.client.get(ConfigMap, seen.key)
    assert await remove_finalizer(api.client, seen, OURS) is None


async def test_a_successor_of_the_same_name_keeps_its_finalizer(api: Backend) -> None:
    first = await stored(api, OURS)
    await set_finalizers(api)
    await api.client.delete(ConfigMap, first.key)
    second = await stored(api, OURS)
    assert await remove_finalizer(api.client, first, OURS) is None
    assert (await api.client.get(ConfigMap, second.key)).metadata.finalizers == (OURS,)
    with pytest.raises(BeingDeleted):
        await ensure_finalizer(api.client, first, THEIRS)
    await set_finalizers(api)


class Restless:
    """An API on which somebody else writes just before every write of ours."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self.writes = 0
        self._inner = inner
        self._others = Client(inner, clock)

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH":
            self.writes += 1
            await self._others.patch(ConfigMap, Key("test", "guarded"), Merge({"data": {"n": str(self.writes)}}))
        return await self._inner.send(request)

    open = None

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_an_object_that_never_rests_ends_in_a_conflict_for_the_caller_to_retry(running: RunningApi, clock: Clock) -> None:
    server = running.transport()
    seen = await Client(server, clock).create(ConfigMap(metadata=ObjectMeta(name="guarded", namespace="test")))
    restless = Restless(server, clock)
    with pytest.raises(Conflict):
        await ensure_finalizer(Client(restless, clock), seen, OURS)  # type: ignore[arg-type]
    assert restless.writes == ATTEMPTS


WISHES = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 3)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(WISHES)
def test_owners_that_add_and_remove_at_the_same_time_each_get_their_own_wish_and_nobody_elses(
    wishes: list[tuple[str, bool, int]],
) -> None:
    async def scenario() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        async with serving(clock, ["test"]) as running:
            await play(Client(running.transport(), clock))

    async def play(client: Client) -> None:
        metadata = ObjectMeta(name="guarded", namespace="test", finalizers=("x.dev/others",))
        await client.create(ConfigMap(metadata=metadata))
        key = Key("test", "guarded")

        async def owner(name: str) -> None:
            """Carries out its own wishes in order, on a view of the object that may be old."""
            seen = await client.get(ConfigMap, key)
            for wisher, wants, rest_steps in wishes:
                if wisher == name:
                    finalizer = f"x.dev/{name}"
                    change = ensure_finalizer if wants else remove_finalizer
                    changed = await change(client, seen, finalizer)
                    assert changed is not None
                    assert (finalizer in changed.metadata.finalizers) == wants
                    seen = changed
                for _ in range(rest_steps):
                    await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(owner(name))
        wanted = {f"x.dev/{wisher}" for wisher, wants in {w: wants for w, wants, _ in wishes}.items() if wants}
        finalizers = (await client.get(ConfigMap, key)).metadata.finalizers
        assert set(finalizers) == wanted | {"x.dev/others"}
        assert len(finalizers) == len(set(finalizers))

    run_virtual(scenario())
