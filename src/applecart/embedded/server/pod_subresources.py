"""What is posted below a Pod: its binding to a node, and its eviction."""

from applecart.api.meta import Key
from applecart.embedded.kinds import binding as bindings
from applecart.embedded.kinds import disruption
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import not_found
from applecart.embedded.server import deletion, gate
from applecart.embedded.server.admission import Write, write_of
from applecart.embedded.server.core import Core
from applecart.embedded.server.objects import encode, find, viewed
from applecart.embedded.server.representation import sent
from applecart.embedded.server.request import Answer, ApiRequest

OPTIONS = "CreateOptions"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(core: Core, request: ApiRequest, kind: Kind, key: Key, binding: Document) -> Answer:
    """Below a Pod and, for its name alone, below the namespace."""
    write = write_of(request, "create", kind, key, OPTIONS, "binding")
    admitted = gate.admit_below(core, write, binding)
    bindings.validate_binding(key.name, binding)
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    bound = bindings.bind(viewed(core, kind, record), binding, core.clock.now())
    if not write.is_dry_run:
        await gate.amend(core, admitted, bound).settle()
    return sent(SUCCESS, request.accept, 201)


async def evict(core: Core, request: ApiRequest, kind: Kind, key: Key, eviction: Document) -> Answer:
    write = write_of(request, "create", kind, key, OPTIONS, "eviction")
    admitted = gate.admit_below(core, write, eviction)
    options = disruption.delete_options(key.name, eviction, ["All"] if write.is_dry_run else [])
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    asked = ApiRequest("DELETE", request.path, {}, request.user, {}, encode(options))
    wanted = deletion.read_options(asked)
    pod = viewed(core, kind, record)
    budgets = core.registry.find("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None
    # Nothing waits from here to the write: two evictions never spend the same disruption.
    charged = None if disruption.ignores_budgets(pod) else _charged(core, budgets, pod)
    if not wanted.is_dry_run:
        disruption.check_preconditions(pod, options)
        if charged is not None:
            gate.amend(core, admitted, charged, budgets)
        if _is_running(pod):
            gate.amend(core, admitted, disruption.mark_evicted(pod, core.clock.now()))
            wanted = deletion.without_revision(wanted)
    _, submitted, _ = gate.delete(core, Write(request.user, "delete", kind, key), wanted)
    if submitted is not None:
        await submitted.settle()
    return sent(SUCCESS, request.accept, 201)


def _charged(core: Core, budgets: Kind, pod: Document) -> Document | None:
    namespace = pod["metadata"]["namespace"]
    known = core.reader.each(budgets.storage.label, namespace)
    tips = [find(core, budgets, Key(namespace, one["metadata"]["name"])) for one in known]
    return disruption.charged_budget(pod, [viewed(core, budgets, tip) for tip in tips if tip], core.clock.now())


def _is_running(pod: Document) -> bool:
    """A Pod that has ended or is going already needs no word on why."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and pod["metadata"].get("deletionTimestamp") is None
