"""CustomResourceDefinitions at work: a committed one is served from that write on, a deleted one takes its objects along.

Serving follows the commits, in their order. Cleaning up is a task of its own, because objects may have finalizers and take
their time; the definition's own finalizer holds it until the last one is gone.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from applecart.api.meta import Key
from applecart.embedded.kinds.conditions import is_true
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.crd_strategy import (
    BUILT_IN,
    FINALIZER,
    IN_PROGRESS,
    is_established,
    names_of,
    say_leaving,
    status_with_names,
    taken_names,
)
from applecart.embedded.schema.custom_kind import custom_kinds
from applecart.embedded.server import gate
from applecart.embedded.server.core import Core
from applecart.embedded.server.deletion import DeleteOptions
from applecart.embedded.server.objects import find, viewed
from applecart.embedded.server.registry import CRD_LABEL, Registry
from applecart.embedded.store.log import StoreFailed
from applecart.embedded.store.record import Change, Op
from applecart.observe.logs import logger

LOOK_AGAIN_S = 1.0  # while objects of a deleted definition wait for their finalizers

log = logger(__name__)


def install(registry: Registry, definition: dict[str, Any]) -> None:
    """Serve what a definition says, if its names were accepted."""
    name = definition["metadata"]["name"]
    registry.install(name, custom_kinds(definition) if is_established(definition) else [])
    registry.leave(name, is_leaving=bool(definition["metadata"].get("deletionTimestamp")))


class Definitions:
    """Follows the committed definitions of a server."""

    def __init__(self, core: Core, kind: Kind) -> None:
        self._core = core
        self._kind = kind
        self._leaving: set[str] = set()
        self._told: set[str] = set()  # of which an object was refused
        self._woken = asyncio.Event()
        core.store.on_commit(CRD_LABEL, self._committed)
        for record in core.store.table(CRD_LABEL).records():
            definition = record.document()
            core.registry.names[record.key.name] = names_of(definition)
            if definition["metadata"].get("deletionTimestamp"):
                self._leaving.add(record.key.name)
                self._woken.set()
            group = definition["spec"].get("group") or ""
            if core.registry.is_builtin_group(group):  # of a server that did not refuse it
                core.store.soon(self._offer_names, group)

    def _committed(self, change: Change) -> None:
        name = change.record.key.name
        registry, store = self._core.registry, self._core.store
        labels = {kind.storage.label for kind in registry.custom(name)}
        definition = change.record.document()
        if change.op is Op.DELETED:
            registry.install(name, [])
            registry.names.pop(name, None)
            registry.leave(name, is_leaving=False)
            for label in labels:
                store.table(label).close_watchers()
            # A name that is free again goes to a definition that waits for it.
            store.soon(self._offer_names, (definition.get("spec") or {}).get("group") or "")
            return
        if store.table(CRD_LABEL).tip(change.record.key) is change.record:  # names that were given meanwhile are known
            registry.names[name] = names_of(definition)
        if change.previous is None or _served(change.previous.value) != _served(change.record.value):
            install(registry, definition)
            for label in labels:
                store.renew(label)
        if definition["metadata"].get("deletionTimestamp"):
            registry.leave(name, is_leaving=True)
            self._leaving.add(name)
            self._woken.set()

    async def run(self) -> None:
        """Clean up behind deleted definitions."""
        while True:
            if not self._leaving:
                self._woken.clear()
                await self._woken.wait()
            failed: dict[str, Exception] = {}
            for name in sorted(self._leaving):
                try:
                    if await self._clean_up(name):
                        self._leaving.discard(name)
                        self._told.discard(name)
                except Exception as error:  # of one; the others go all the same
                    failed[name] = error
            if failed:
                raise ExceptionGroup(f"cannot clean up behind {', '.join(failed)}", list(failed.values()))
            if self._leaving:
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _clean_up(self, name: str) -> bool:
        """Delete the objects, then let the definition go; whether that is done."""
        core = self._core
        definition = self._held(name)
        if definition is None:
            return True
        kinds = core.registry.custom(name)
        kept = core.registry.storing(kinds[0].storage.label) if kinds else None
        if kept is not None and kept.is_custom:  # objects of a built-in kind are never those of a definition
            table = core.store.table(kept.storage.label)
            records = table.records()
            conditions = (definition.get("status") or {}).get("conditions") or []
            if records and not any(one.get("reason") == IN_PROGRESS[0] for one in conditions):
                say_leaving(definition, *IN_PROGRESS, core.clock.now())
                gate.write_own(core, self._kind, definition)
            refused: dict[int, Refusal] = {}
            await gate.delete_each(core, gate.SYSTEM, kinds[0], records, DeleteOptions(), lambda _: True, refused)
            # A large one that others keep changing is no defect: whoever may write objects can bring that about.
            changing = refused.pop(429, None)
            if refused:
                raise next(iter(refused.values()))
            if changing is not None and name not in self._told:
                self._told.add(name)
                about = log.bind(definition=name, because=changing.message)
                about.warning("an object of a deleted definition is refused to be deleted, trying again")
            if len(table):
                return False
            definition = self._held(name)
            if definition is None:
                return True
        definition["metadata"]["finalizers"].remove(FINALIZER)
        if definition["metadata"]["finalizers"]:
            gate.write_own(core, self._kind, definition)
        elif (record := find(core, self._kind, Key("", name))) is not None:
            gate.remove(core, self._kind, record)
        return True

    def _held(self, name: str) -> Document | None:
        """The definition, while it waits for its objects to go."""
        record = find(self._core, self._kind, Key("", name))
        definition = viewed(self._core, self._kind, record) if record else {}
        return definition if FINALIZER in (definition.get("metadata", {}).get("finalizers") or ()) else None

    def _offer_names(self, group: str, left: Sequence[str] | None = None) -> None:
        """To one definition after the other, with a turn for everybody else between them: they may be large."""
        core, names = self._core, self._core.registry.names
        is_builtin = core.registry.is_builtin_group(group)
        if left is None:
            others = ((name, of) for name, of in names.items() if of["spec"]["group"] == group)
            left = sorted(name for name, of in others if is_builtin or not is_true(of, "NamesAccepted"))
        if not left:
            return
        name, *left = left
        tip = find(core, self._kind, Key("", name))
        definition = viewed(core, self._kind, tip) if tip else {}
        if definition and (is_builtin or not is_true(definition, "NamesAccepted")):
            taken = BUILT_IN if is_builtin else taken_names(names.values(), group, name)
            status = status_with_names(definition, taken, core.clock.now())
            if status != definition.get("status"):
                definition["status"] = status
                names[name] = names_of(definition)  # the next one that waits does not get the same
                try:
                    gate.write_own(core, self._kind, definition)
                except StoreFailed:
                    return
        core.store.soon(self._offer_names, group, left)


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    acceptedNames: msgspec.Raw = msgspec.Raw()
    conditions: tuple[_Condition, ...] | None = None


class _Served(msgspec.Struct, frozen=True):
    """What serving depends on, as it is written: a default that was 1 and is true is another one."""

    spec: msgspec.Raw = msgspec.Raw()
    status: _Status = _Status()


def _served(value: bytes) -> Any:
    found = _decode(value)
    established = any(one.type == "Established" and one.status == "True" for one in found.status.conditions or ())
    return found.spec, found.status.acceptedNames, established


_decode = msgspec.json.Decoder(_Served).decode
