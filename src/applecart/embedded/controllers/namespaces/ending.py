"""Ends a deleted namespace: empties it round by round, says in its status how that goes, and lets it go when it is empty.

The finalizer is taken only after a round that found nothing, knew every kind and met no refusal. Acts on the namespace as the
API has it, never on a cached one: a namespace that was made again under the same name is not touched.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from applecart.api.core import Namespace
from applecart.api.meta import Key, instant
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.conditions import Survey, conditions_after
from applecart.embedded.controllers.namespaces.content import Content
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.discovery import discover
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge
from applecart.kube.paths import object_path
from applecart.kube.results import DONE, Result, again_in
from applecart.kube.transport import Request
from applecart.observe.logs import logger

FINALIZER = "kubernetes"
TERMINATING = "Terminating"
# A Pod's end or somebody's finalizer is waited for: soon at first, then about as often as kube-controller-manager looks.
PACE = Backoff(first_s=0.5, longest_s=10.0)

Document = dict[str, Any]
log = logger(__name__)


class Ending:
    def __init__(self, client: Client, namespaces: Informer[Namespace], clock: Clock) -> None:
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        self._content = Content(client)
        self._rounds: dict[str, int] = {}  # by uid, of namespaces that are going

    async def reconcile(self, key: Key) -> Result:
        seen = self._namespaces.get(key)
        if seen is None or not seen.is_being_deleted:
            return DONE
        document = await self._read(key)
        if document is None or document["metadata"]["uid"] != seen.uid or FINALIZER not in finalizers_of(document):
            self._rounds.pop(seen.uid, None)
            return DONE
        deleted_at = instant(document["metadata"].get("deletionTimestamp", "")) or self._clock.now()
        deleted_for_s = (self._clock.now() - deleted_at).total_seconds()
        survey = await self._content.delete(key.name, await discover(self._client), deleted_for_s)
        try:
            document = await self._tell(key, document, survey)
            if survey.is_clear:
                await self._let_go(key, document)
        except NotFound:
            return DONE
        if survey.is_clear:
            self._rounds.pop(seen.uid, None)
            log.bind(seen).info("a namespace is empty and gone", kind="namespaces")
            return DONE
        self._rounds[seen.uid] = rounds = self._rounds.get(seen.uid, 0) + 1
        return again_in(timedelta(seconds=PACE.wait_s(rounds, self._clock.random)))

    async def _read(self, key: Key) -> Document | None:
        try:
            answer = await self._client.call(Request("GET", object_path(Namespace.resource, key)))
        except NotFound:
            return None
        document: Document = msgspec.json.decode(answer.body)
        return document

    async def _tell(self, key: Key, document: Document, survey: Survey) -> Document:
        """Write the status unless it says so already; the namespace as it is now."""
        status = status_after(document.get("status") or {}, survey, self._clock.now())
        if status == document.get("status"):
            return document
        revision = document["metadata"]["resourceVersion"]
        body = Merge({"metadata": {"resourceVersion": revision}, "status": status})
        path = object_path(Namespace.resource, key, "status")
        request = Request("PATCH", path, body=body.encoded(), content_type=body.content_type)
        changed: Document = msgspec.json.decode((await self._client.call(request)).body)
        return changed

    async def _let_go(self, key: Key, document: Document) -> None:
        left = [finalizer for finalizer in finalizers_of(document) if finalizer != FINALIZER]
        body = {**document, "spec": {**document["spec"], "finalizers": left}}
        path = object_path(Namespace.resource, key, "finalize")
        await self._client.call(Request("PUT", path, body=msgspec.json.encode(body)))


def finalizers_of(document: Document) -> list[str]:
    return list((document.get("spec") or {}).get("finalizers") or ())


def status_after(status: Document, survey: Survey, now: datetime) -> Document:
    return {**status, "phase": TERMINATING, "conditions": conditions_after(survey, status.get("conditions") or (), now)}
