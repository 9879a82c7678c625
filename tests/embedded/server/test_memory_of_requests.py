"""What a large request held goes with it: the product collects cycles once in thousands of requests."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from applecart.clock import Clock, SystemClock
from applecart.embedded.server import trial
from applecart.embedded.server.server import ADMIN, running_api
from applecart.embedded.server.worker import LARGE_BYTES
from applecart.kube.transport import Request
from tests.embedded.memory_log import MemoryLog
from tests.embedded.server.test_trial import Callers
from tests.kube.embedded_api import serving, token_keys

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LARGE = {"large": "x" * LARGE_BYTES}
LABEL = {"metadata": {"labels": {"a": "b"}}}
APPLIED = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {a: b}}"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Any]]]:
    """Every one that is made, while nothing is collected; the worker itself switches the collector off and on."""
    made: list[weakref.ref[Any]] = []

    class Noted(trial.Trial):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(weakref.ref(self))

    monkeypatch.setattr(trial, "Trial", Noted)
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    yield made
    gc.set_threshold(*thresholds)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (Request("PATCH", f"{MAPS}/a", body=msgspec.json.encode(LABEL), content_type=MERGE), 200),
        (Request("PATCH", f"{MAPS}/a", (("dryRun", "All"),), body=msgspec.json.encode(LABEL), content_type=MERGE), 200),
        (Request("PATCH", f"{MAPS}/a", (("fieldManager", "me"),), body=APPLIED, content_type=APPLY), 200),
        (Request("PATCH", f"{MAPS}/a", body=b'{"data":{"not a key":""}}', content_type=MERGE), 422),
        (Request("PUT", f"{MAPS}/a", body=msgspec.json.encode({"metadata": {"name": "a", "resourceVersion": "1"}})), 409),
        (Request("DELETE", f"{MAPS}/a", body=b'{"preconditions":{"uid":"another"}}'), 409),
        (Request("GET", f"{MAPS}/a", accept=TABLE), 200),
        (Request("DELETE", f"{MAPS}/a"), 200),
        (Request("DELETE", MAPS), 200),
    ],
    ids=["patch", "dry run", "apply", "refused", "out of date", "another object", "table", "deletion", "deletion of all"],
)
@pytest.mark.real_time
async def test_a_large_request_leaves_nothing_for_the_garbage_collector(
    trials: list[weakref.ref[Any]], request_: Request, status: int
) -> None:
    """Each kept the object as it was and as it became: 300 patches of 0.9 MB took a server from 67 to 602 MB, for hours."""
    async with running_api(MemoryLog(), SystemClock(), token_keys(), has_worker=True) as running:
        send = running.transport().send
        large = {"metadata": {"name": "a"}, "data": LARGE}
        assert (await send(Request("POST", MAPS, body=msgspec.json.encode(large)))).status == 201
        before = len(trials)
        assert (await send(request_)).status == status
        assert running.core.worker is not None
        await running.core.worker.run(ADMIN, str)  # then its thread has let go of the one before
        assert len(trials) > before
        assert [one for one in trials if one() is not None] == []


async def test_nor_does_one_that_was_tried_in_vain(trials: list[weakref.ref[Any]], clock: Clock) -> None:
    async with serving(clock, ["ci"]) as running:
        callers = Callers(running)
        await callers.asks("POST", f"{MAPS}", {"metadata": {"name": "a"}})
        callers.meanwhile("PATCH", f"{MAPS}/a", {"data": {"turn": "TURN"}}, times=trial.TRIES)
        assert (await callers.asks("PATCH", f"{MAPS}/a", {"data": LARGE}, MERGE)).status == 429
        assert len(trials) == trial.TRIES
        assert [one for one in trials if one() is not None] == []
