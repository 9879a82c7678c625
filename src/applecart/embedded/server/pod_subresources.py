"""What is posted below a Pod: its binding to a node, and its eviction."""

from applecart.api.meta import Key
from applecart.embedded.kinds import binding as bindings
from applecart.embedded.kinds import disruption
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import not_found
from applecart.embedded.server import deletion
from applecart.embedded.server.core import Core
from applecart.embedded.server.objects import encode, find, put_view, viewed
from applecart.embedded.server.representation import sent
from applecart.embedded.server.request import Answer, ApiRequest, is_dry_run

OPTIONS = "CreateOptions"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(core: Core, request: ApiRequest, kind: Kind, key: Key, binding: Document) -> Answer:
    dry = is_dry_run(request.query, OPTIONS)
    bindings.validate_binding(key.name, binding)
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    pod = viewed(core, kind, record)
    bound = bindings.bind(pod, binding, core.clock.now())
    if not dry:
        await put_view(core, kind, bound, is_new=False).settle()
    return sent(SUCCESS, request.accept, 201)


async def evict(core: Core, request: ApiRequest, kind: Kind, key: Key, eviction: Document) -> Answer:
    dry = ["All"] if is_dry_run(request.query, OPTIONS) else []
    options = disruption.delete_options(key.name, eviction, dry)
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    asked = ApiRequest("DELETE", request.path, {}, request.user, {}, encode(options))
    wanted = deletion.read_options(asked)
    if not wanted.is_dry_run:
        pod = viewed(core, kind, record)
        disruption.check_preconditions(pod, options)
        if _is_running(pod):
            put_view(core, kind, disruption.mark_evicted(pod, core.clock.now()), is_new=False)
            wanted = deletion.without_revision(wanted)
    _, submitted, _ = deletion.delete(core, request, kind, key, wanted)
    if submitted is not None:
        await submitted.settle()
    return sent(SUCCESS, request.accept, 201)


def _is_running(pod: Document) -> bool:
    """A Pod that has ended or is going already needs no word on why."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and pod["metadata"].get("deletionTimestamp") is None
