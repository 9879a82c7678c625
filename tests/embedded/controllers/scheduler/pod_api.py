"""The API in memory with the parts that schedulers use: binding Pods, and conditions that merge by their type.

Refuses what a real API server refuses: a second binding, one of another uid, of a Pod that is going or gated. Sets what it
sets: the node, `PodScheduled`, and the condition of a gated Pod.
"""

from typing import Any

import msgspec

from applecart.kube.patches import Merge, Strategic
from applecart.kube.transport import Request, Response
from tests.kube.memory_address import Address, address
from tests.kube.memory_api import MemoryApi, ok
from tests.kube.memory_deletion import timestamp
from tests.kube.memory_refusals import Refusal, conflict
from tests.kube.memory_store import Document, Kind

PODS = Kind("", "pods")
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodApi(MemoryApi):
    def _answer(self, request: Request) -> Response:
        at = address(request.path)
        if (request.method, at.kind, at.subresource) == ("POST", PODS, "binding"):
            self._bind(at, msgspec.json.decode(request.body or b""))
            return ok(SUCCESS, 201)
        if request.content_type == Strategic.content_type and at.kind == PODS:
            request = self._as_merge(at, request)
        return super()._answer(request)

    def _create(self, at: Address, query: dict[str, str], request: Request) -> Document:
        created = super()._create(at, query, request)
        if at.kind == PODS and created.get("spec", {}).get("schedulingGates"):
            place = at._replace(name=created["metadata"]["name"]).place
            gated = {**created["status"], "conditions": [{**GATED, "lastTransitionTime": timestamp(self.clock.now())}]}
            return self.store.commit(place, {**created, "status": gated})
        return created

    def _bind(self, at: Address, binding: Document) -> None:
        pod = self._existing(at)
        metadata, spec = pod["metadata"], pod["spec"]
        uid, node = binding["metadata"].get("uid", metadata["uid"]), binding["target"]["name"]
        if uid != metadata["uid"]:
            raise conflict(at.kind, at.name, f"Precondition failed: UID in precondition: {uid}")
        if "deletionTimestamp" in metadata:
            raise conflict(at.kind, at.name, f"pod {at.name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise conflict(at.kind, at.name, f'pod {at.name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise conflict(at.kind, at.name, f"pod {at.name} has non-empty .spec.schedulingGates")
        if not node:
            raise Refusal(422, "Invalid", "target.name: Required value")
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(self.clock.now())}
        status = {**pod["status"], "conditions": _by_type(pod["status"].get("conditions", []), [scheduled], keep=False)}
        self.store.commit(at.place, {**pod, "spec": {**spec, "nodeName": node}, "status": status})

    def _as_merge(self, at: Address, request: Request) -> Request:
        body = msgspec.json.decode(request.body or b"")
        status = body.get("status", {})
        if "conditions" in status:
            known = self._existing(at).get("status", {}).get("conditions", [])
            status["conditions"] = _by_type(known, status["conditions"], keep=True)
        return msgspec.structs.replace(request, body=msgspec.json.encode(body), content_type=Merge.content_type)


def _by_type(known: list[Any], changes: list[Any], *, keep: bool) -> list[Any]:
    merged = {condition["type"]: condition for condition in known}
    for change in changes:
        before = merged.get(change["type"], {}) if keep else {}
        merged[change["type"]] = {**before, **change}
    return list(merged.values())
