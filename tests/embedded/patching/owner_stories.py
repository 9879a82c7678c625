"""Random stories of several writers and one object, the same for every server that they are told to.

A story is drawn from a seed before any server is asked. What a write needs of the object (its revision, what kubectl last
applied) it reads from the server it writes to. Writes that are refused are as good as those that succeed.
"""

import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from applecart.embedded.patching.apply import LAST_APPLIED
from applecart.embedded.patching.values import copied
from tests.embedded.patching.shapes import GROUP, config_map, pod, probe

Call = Callable[[str, str, Any, str], Awaitable[tuple[int, Any]]]  # method, path, body, media type: code and answer

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGERS = ("m1", "m2", "m3")
CLIENT_SIDE = "kubectl-client-side-apply"
WRITES = 10
LETTERS = "abcd"
PATHS = {"ConfigMap": "/api/v1", "Pod": "/api/v1", "Probe": f"/apis/{GROUP}/v1"}
PLURALS = {"ConfigMap": "configmaps", "Pod": "pods", "Probe": "probes"}


@dataclass(frozen=True)
class Written:
    """One write: what it was, and what came of it."""

    what: str
    code: int
    answer: dict[str, Any]
    sent: dict[str, Any] = field(default_factory=dict)  # what the writer wanted to be there

    @property
    def applier(self) -> str:
        """Who applied it; "" when it was no apply, or one of the status."""
        return self.what.partition("fieldManager=")[2].partition("&")[0] if self.what.startswith("apply:") else ""


class Story:
    """One object on one server."""

    def __init__(self, call: Call, namespace: str, kind: str) -> None:
        self._call = call
        self.kind = kind
        self.collection = f"{PATHS[kind]}/namespaces/{namespace}/{PLURALS[kind]}"
        self.path = f"{self.collection}/subject"
        self._draws: dict[Callable[[random.Random], Awaitable[Written]], int] = {
            self._apply: 5,
            self._client_side: 3,
            self._merge: 3,
            self._put: 2,
            self._strategic: 2,
            self._json_patch: 2,
            self._status: 2,
            self._apply_status: 1,
        }

    async def tell(self, seed: int) -> list[Written]:
        chance = random.Random(f"{self.kind} {seed}")
        written = [await self._create(chance)]
        for _ in range(WRITES):
            [draw] = chance.choices(list(self._draws), list(self._draws.values()))
            written.append(await draw(chance))
        return written

    async def end(self) -> None:
        """Take the object away for the next story."""
        await self._call("PATCH", self.path, {"metadata": {"finalizers": None}}, MERGE)
        await self._call("DELETE", self.path, {"gracePeriodSeconds": 0}, JSON)

    async def _send(self, what: str, method: str, path: str, body: Any, media_type: str, wanted: Any = None) -> Written:
        code, answer = await self._call(method, path, body, media_type)
        return Written(f"{what}: {method} {path} {json.dumps(body)}", code, answer, wanted or {})

    async def _create(self, chance: random.Random) -> Written:
        body = some(chance, self.kind)
        return await self._send("create", "POST", f"{self.collection}?fieldManager={manager(chance)}", body, JSON, body)

    async def _apply(self, chance: random.Random) -> Written:
        """Server-side, as kubectl now and then."""
        name, force = chance.choice((*MANAGERS, "kubectl")), chance.random() < 0.4
        body = some(chance, self.kind)
        path = f"{self.path}?fieldManager={name}&force={str(force).lower()}"
        return await self._send("apply", "PATCH", path, body, APPLY, body)

    async def _client_side(self, chance: random.Random) -> Written:
        """As kubectl computes it: what the last configuration had and this one has not is taken away."""
        body = some(chance, self.kind)
        body["metadata"].pop("finalizers", None)
        _, live = await self._call("GET", self.path, None, JSON)
        last = json.loads(live["metadata"].get("annotations", {}).get(LAST_APPLIED) or "{}")
        annotations = body["metadata"].pop("annotations", {})
        wanted = copied(body) | {"metadata": {**body["metadata"], "annotations": annotations}}
        patch = three_ways(last, wanted)
        patch.setdefault("metadata", {}).setdefault("annotations", {})[LAST_APPLIED] = json.dumps(wanted)
        media_type = MERGE if self.kind == "Probe" else STRATEGIC
        return await self._send("client-side", "PATCH", f"{self.path}?fieldManager={CLIENT_SIDE}", patch, media_type, wanted)

    async def _merge(self, chance: random.Random) -> Written:
        patch = some(chance, self.kind)
        for part in (patch["metadata"].get("labels"), patch.get("data"), patch.get("spec") if self.kind == "Probe" else None):
            if part and chance.random() < 0.5:
                part[chance.choice(list(part))] = None
        path = f"{self.path}?fieldManager={manager(chance)}"
        return await self._send("merge", "PATCH", path, patch, MERGE, without_nulls(patch))

    async def _strategic(self, chance: random.Random) -> Written:
        patch = some(chance, self.kind)
        return await self._send("strategic", "PATCH", f"{self.path}?fieldManager={manager(chance)}", patch, STRATEGIC)

    async def _json_patch(self, chance: random.Random) -> Written:
        operations = (
            {"op": "add", "path": "/metadata/labels", "value": {chance.choice(LETTERS): "json"}},
            {"op": "remove", "path": "/metadata/labels/a"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/json"]},
            {"op": "replace", "path": "/metadata/managedFields", "value": chance.choice(([], [{}]))},
        )
        patch = chance.sample(operations, chance.randrange(1, 3))
        return await self._send("json", "PATCH", f"{self.path}?fieldManager={manager(chance)}", patch, JSON_PATCH)

    async def _put(self, chance: random.Random) -> Written:
        """Read, change, write; by a client that never heard of owners, or one that clears them."""
        _, body = await self._call("GET", self.path, None, JSON)
        changes = some(chance, self.kind)
        knows = chance.choice(("all", "all", "nothing", "clears"))
        body["metadata"].pop("labels", None)
        body["metadata"].update({name: changes["metadata"][name] for name in ("labels",) if name in changes["metadata"]})
        if knows == "nothing":
            body["metadata"].pop("managedFields", None)
        elif knows == "clears" and chance.random() < 0.3:
            body["metadata"]["managedFields"] = []
        if self.kind == "Pod":
            body["spec"]["containers"][0]["image"] = changes["spec"]["containers"][0]["image"]
        else:
            part = "data" if self.kind == "ConfigMap" else "spec"
            body[part] = changes.get(part) or {}
        return await self._send(f"put, knows {knows}", "PUT", f"{self.path}?fieldManager={manager(chance)}", body, JSON)

    async def _status(self, chance: random.Random) -> Written:
        body = {"status": status(chance), "metadata": {"labels": {chance.choice(LETTERS): "status"}}}
        path = f"{self.path}/status?fieldManager={manager(chance)}"
        return await self._send("status", "PATCH", path, body, STRATEGIC if self.kind == "Pod" else MERGE)

    async def _apply_status(self, chance: random.Random) -> Written:
        body = {**some(chance, self.kind), "status": status(chance)}
        path = f"{self.path}/status?fieldManager={manager(chance)}&force={str(chance.random() < 0.5).lower()}"
        return await self._send("apply status", "PATCH", path, body, APPLY)


class IdleStory(Story):
    """Writes that change nothing, or only what their endpoint ignores, each long after the one before."""

    def __init__(self, call: Call, namespace: str, kind: str) -> None:
        super().__init__(call, namespace, kind)
        self._applied: dict[str, dict[str, Any]] = {}
        self._draws = {
            self._apply_again: 4,
            self._put_ignored: 4,
            self._merge_ignored: 3,
            self._put: 1,
            self._merge: 1,
            self._status: 1,
        }

    async def tell(self, seed: int) -> list[Written]:
        chance = random.Random(f"idle {self.kind} {seed}")
        written = [await self._create(chance)]
        for number in range(WRITES):
            written.append(await self._grow_old(number))
            [draw] = chance.choices(list(self._draws), list(self._draws.values()))
            written.append(await draw(chance))
        return written

    async def _grow_old(self, number: int) -> Written:
        """All owners have what they have since long ago: a real server has no clock that a test could move."""
        _, live = await self._call("GET", self.path, None, JSON)
        entries = live["metadata"].get("managedFields") or []
        aged = [{**entry, "time": f"2020-01-01T00:00:{place:02d}Z"} for place, entry in enumerate(entries)]
        patch = {"metadata": {"annotations": {"age": str(number)}, "managedFields": aged}}
        return await self._send("age", "PATCH", f"{self.path}?fieldManager=age", patch, MERGE)

    async def _apply_again(self, chance: random.Random) -> Written:
        """What the manager applied before, or something new; with what this endpoint ignores, now and then."""
        name, below = chance.choice(MANAGERS[:2]), chance.choice(("", "", "/status"))
        body = some(chance, self.kind)
        if chance.random() < 0.7:
            body = self._applied.setdefault(name + below, body)
        if self.kind != "ConfigMap" and (below or chance.random() < 0.5):
            body = {**body, "status": status(chance)}
        path = f"{self.path}{below}?fieldManager={name}&force=true"
        return await self._send("apply again", "PATCH", path, body, APPLY)

    async def _put_ignored(self, chance: random.Random) -> Written:
        _, body = await self._call("GET", self.path, None, JSON)
        below = chance.choice(("", "", "/status"))
        self._touch_ignored(chance, body, below)
        if chance.random() < 0.3:
            body["metadata"].pop("managedFields", None)
        return await self._send("put ignored", "PUT", f"{self.path}{below}?fieldManager={manager(chance)}", body, JSON)

    async def _merge_ignored(self, chance: random.Random) -> Written:
        body: dict[str, Any] = {"metadata": {}}
        below = chance.choice(("", "", "/status"))
        self._touch_ignored(chance, body, below)
        body["metadata"].pop("resourceVersion", None)
        return await self._send("merge ignored", "PATCH", f"{self.path}{below}?fieldManager={manager(chance)}", body, MERGE)

    def _touch_ignored(self, chance: random.Random, body: dict[str, Any], below: str) -> None:
        metadata = body["metadata"]
        changes: dict[str, Callable[[], None]] = {
            "generation": lambda: metadata.update(generation=99),
            "creation": lambda: metadata.update(creationTimestamp="2019-01-01T00:00:00Z"),
            "link": lambda: metadata.update(selfLink="/somewhere"),
            "revision": lambda: None if self.kind == "Probe" else metadata.pop("resourceVersion", None),
            "status": lambda: body.update(status=status(chance)) if self.kind != "ConfigMap" and not below else None,
            "spec": lambda: (
                body.update(spec={**(body.get("spec") or {}), "size": 7}) if self.kind == "Probe" and below else None
            ),
            "labels": lambda: metadata.update(labels={"other": "1"}) if self.kind == "Probe" and below else None,
        }
        for name in chance.sample(list(changes), chance.randrange(4)):
            changes[name]()


def manager(chance: random.Random) -> str:
    return chance.choice(MANAGERS)


def some(chance: random.Random, kind: str) -> dict[str, Any]:
    """A part of an object that somebody wants."""
    if kind == "ConfigMap":
        body = config_map(texts(chance) or None)
    elif kind == "Pod":
        body = pod({"name": "main", "image": f"example.invalid/{chance.choice(LETTERS)}"})
        if chance.random() < 0.3:
            body["spec"]["activeDeadlineSeconds"] = 100
    else:
        body = probe(**spec(chance))
    metadata = body["metadata"]
    for name in ("labels", "annotations"):
        if chance.random() < 0.5:
            metadata[name] = texts(chance) or {"a": "1"}  # what is empty there is stored or not, and nobody sees it
    if chance.random() < 0.3:
        metadata["finalizers"] = [f"a.b/{one}" for one in chance.sample(LETTERS, chance.randrange(1, 3))]
    return body


def texts(chance: random.Random) -> dict[str, str]:
    return {one: chance.choice("12") for one in chance.sample(LETTERS, chance.randrange(4))}


def status(chance: random.Random) -> dict[str, Any]:
    conditions = [
        {"type": one, "status": chance.choice(("True", "False"))} for one in chance.sample("AB", chance.randrange(1, 3))
    ]
    return {"phase": chance.choice(("Running", "Pending")), "conditions": conditions}


def spec(chance: random.Random) -> dict[str, Any]:
    """One field of every type of list and map, some of them."""
    whole = {
        "size": chance.randrange(3),
        "items": [
            {"name": one, "value": chance.choice("12"), **({"options": texts(chance)} if chance.random() < 0.3 else {})}
            for one in chance.sample(LETTERS, chance.randrange(3))
        ],
        "ports": [{"port": one, "protocol": "UDP"} if one > 1 else {"port": one} for one in chance.sample((1, 2, 3), 2)],
        "tags": chance.sample(LETTERS, chance.randrange(3)),
        "numbers": chance.sample((1, 2, 10), chance.randrange(3)),
        "order": [chance.choice(LETTERS) for _ in range(chance.randrange(3))],
        "labels": texts(chance),
        "whole": texts(chance),
        "point": {"x": chance.randrange(2), "y": 1},
        "nested": {"a": "1", "inner": {"b": chance.choice("12")}},
        "free": {one: chance.choice(("1", 2, True, {"in": "1"}, [1])) for one in chance.sample(LETTERS, chance.randrange(3))},
    }
    return {name: whole[name] for name in chance.sample(list(whole), chance.randrange(1, 5))}


def three_ways(last: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """What to send so that what `last` had and `wanted` has not goes; lists are sent whole."""
    patch: dict[str, Any] = {name: None for name in last if name not in wanted}
    for name, value in wanted.items():
        before = last.get(name)
        patch[name] = three_ways(before if isinstance(before, dict) else {}, value) if isinstance(value, dict) else value
    return patch


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return value
