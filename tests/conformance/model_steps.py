"""Random steps that a user could take, the same for every server that takes them.

A step is drawn from a seed before any server is asked: which request, on which of few objects, with which body. What a step
needs of a server's own (an object's revision, a token of a page) it reads from that server. Steps that are refused are as
good as those that succeed. Plain requests; nothing here compares.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.caller import JSON_PATCH, MERGE, STRATEGIC, Answer
from tests.conformance.context import Context
from tests.conformance.kinds import GROUP, config_map, pod, widget

NAMES = ("a", "b", "c")
RESOURCES = ("configmaps", "pods", "widgets")
FINALIZER = "conformance.applecart.dev/hold"
STEPS = 14

Step = Callable[[Context], Awaitable[Any]]


def path_of(context: Context, resource: str, name: str = "", subresource: str = "") -> str:
    group = f"{GROUP}/v1" if resource == "widgets" else ""
    return context.path(resource, name, subresource, group=group)


def steps_of(seed: int) -> list[tuple[str, Step]]:
    """What one sequence does, each with a line that tells it."""
    chance = random.Random(seed)
    return [_draw(chance) for _ in range(STEPS)]


def _draw(chance: random.Random) -> tuple[str, Step]:
    resource, name = chance.choice(RESOURCES), chance.choice(NAMES)
    draws = (
        (_create, 5),
        (_merge, 3),
        (_json_patch, 2),
        (_strategic, 2),
        (_update, 3),
        (_status, 2),
        (_delete, 4),
        (_delete_many, 1),
        (_release, 2),
        (_pages, 1),
        (_apply, 2),
        (_select, 1),
    )
    [draw] = chance.choices([one for one, _ in draws], [weight for _, weight in draws])
    return draw(chance, resource, name)


def document(chance: random.Random, resource: str, name: str) -> dict[str, Any]:
    """An object of the kind, now and then one that is not valid."""
    metadata: dict[str, Any] = {"labels": {"color": chance.choice(("red", "blue"))}}
    if chance.random() < 0.3:
        metadata["finalizers"] = [FINALIZER]
    if chance.random() < 0.05:
        metadata["labels"]["bad label"] = "x"
    if resource == "configmaps":
        return config_map(name, {"turn": str(chance.randrange(3))}, **metadata)
    if resource == "pods":
        placed = {"nodeName": "mac-1"} if chance.random() < 0.5 else {}
        return pod(name, metadata=metadata, **placed)
    return widget(name, metadata=metadata, size=chance.choice((1, 2, 3, 11)), color=chance.choice(("red", "green")))


def change(chance: random.Random, resource: str) -> dict[str, Any]:
    """A part of an object, as patches have it."""
    if chance.random() < 0.3:
        return {"metadata": {"annotations": {"note": str(chance.randrange(2))}}}
    if resource == "configmaps":
        return {"data": {chance.choice(("turn", "other")): chance.choice(("0", "1", None))}}
    if resource == "pods":
        return {"spec": {"activeDeadlineSeconds": chance.choice((10, 5, None))}}
    return {"spec": {chance.choice(("size", "replicas")): chance.choice((1, 2, 5, "many"))}}


def maybe_dry(chance: random.Random) -> dict[str, str]:
    return {"dryRun": "All"} if chance.random() < 0.1 else {}


def _create(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    body, query = document(chance, resource, name), maybe_dry(chance)

    async def step(context: Context) -> Any:
        return told(await context.admin.post(path_of(context, resource), body, **query))

    return f"create {resource}/{name} {body} {query}", step


def _merge(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    return _patch(chance, resource, name, change(chance, resource), MERGE)


def _strategic(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    body = change(chance, resource)
    if resource == "pods" and chance.random() < 0.5:
        body = {"spec": {"containers": [{"name": "main", "image": f"example.invalid/app:{chance.randrange(3)}"}]}}
    return _patch(chance, resource, name, body, STRATEGIC)


def _json_patch(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    operations = (
        {"op": "add", "path": "/metadata/labels/step", "value": str(chance.randrange(2))},
        {"op": "test", "path": "/metadata/labels/color", "value": "red"},
        {"op": "remove", "path": "/metadata/labels/color"},
        {"op": "replace", "path": "/metadata/annotations/note", "value": "patched"},
        {"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"},
    )
    return _patch(chance, resource, name, chance.sample(operations, chance.randrange(1, 4)), JSON_PATCH)


def _patch(chance: random.Random, resource: str, name: str, body: Any, content_type: str) -> tuple[str, Step]:
    query = maybe_dry(chance)

    async def step(context: Context) -> Any:
        return told(await context.admin.patch(path_of(context, resource, name), body, content_type, **query))

    return f"patch {resource}/{name} {content_type} {body} {query}", step


def _apply(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    body = document(chance, resource, name)
    manager, force = chance.choice(("first", "second")), chance.random() < 0.5

    async def step(context: Context) -> Any:
        return told(await context.admin.apply(path_of(context, resource, name), body, manager, force=force))

    return f"apply {resource}/{name} {body} as {manager}, force {force}", step


def _update(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    """Read, change, write back; sometimes with a revision that is not the newest, or with none."""
    color, claim = chance.choice(("red", "blue", "green")), chance.choice(("current", "current", "stale", "none"))
    query = maybe_dry(chance)

    async def step(context: Context) -> Any:
        path = path_of(context, resource, name)
        read = await context.admin.get(path)
        if read.status != 200:
            return told(read)
        body = read.body
        body["metadata"].setdefault("labels", {})["color"] = color
        if claim == "stale":
            await context.admin.patch(path, {"metadata": {"annotations": {"between": color}}})
        elif claim == "none":
            del body["metadata"]["resourceVersion"]
        return told(await context.admin.put(path, body, **query))

    return f"update {resource}/{name} to {color}, revision {claim} {query}", step


def _status(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    conditions = [{"type": "Ready", "status": chance.choice(("True", "False"))}]
    body = {"status": {"phase": chance.choice(("Running", "Succeeded")), "conditions": conditions}}
    content_type = STRATEGIC if resource == "pods" else MERGE

    async def step(context: Context) -> Any:
        return told(await context.admin.patch(path_of(context, resource, name, "status"), body, content_type))

    return f"status of {resource}/{name} {body}", step


def _delete(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if chance.random() < 0.4:
        options["gracePeriodSeconds"] = chance.choice((0, 5, 60))
    if chance.random() < 0.4:
        options["propagationPolicy"] = chance.choice(("Foreground", "Background", "Orphan"))
    if chance.random() < 0.15:
        options["preconditions"] = {"uid": "0d6f3c9e-8f0e-4f7b-9a57-000000000000"}
    if chance.random() < 0.1:
        options["dryRun"] = ["All"]

    async def step(context: Context) -> Any:
        return told(await context.admin.delete(path_of(context, resource, name), options))

    return f"delete {resource}/{name} {options}", step


def _delete_many(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    selector = f"color={chance.choice(('red', 'blue'))}"

    async def step(context: Context) -> Any:
        answer = await context.admin.delete(path_of(context, resource), labelSelector=selector)
        # The objects in the answer come from several workers of a real server, some before and some after they went.
        return {"status": answer.status, "kind": answer.body.get("kind")}

    return f"delete all {resource} with {selector}", step


def _release(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    async def step(context: Context) -> Any:
        return told(await context.admin.patch(path_of(context, resource, name), {"metadata": {"finalizers": None}}))

    return f"take the finalizers of {resource}/{name}", step


def _pages(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    limit = chance.choice((1, 2))

    async def step(context: Context) -> Any:
        pages: list[Any] = []
        token = ""
        while True:
            query = {"limit": limit, **({"continue": token} if token else {})}
            answer = await context.admin.call("GET", path_of(context, resource), query=query)
            pages.append(told(answer))
            token = answer.body.get("metadata", {}).get("continue", "")
            if not token:
                return pages

    return f"pages of {resource} by {limit}", step


def _select(chance: random.Random, resource: str, name: str) -> tuple[str, Step]:
    query = chance.choice(
        (
            {"labelSelector": "color in (red)"},
            {"labelSelector": "!step"},
            {"fieldSelector": f"metadata.name={name}"},
            {"fieldSelector": "spec.nodeName=mac-1"},
            {"labelSelector": "a==,"},
        )
    )

    async def step(context: Context) -> Any:
        return told(await context.admin.call("GET", path_of(context, resource), query=query))

    return f"list {resource} with {query}", step


def told(answer: Answer) -> dict[str, Any]:
    return {"status": answer.status, "body": answer.body}
