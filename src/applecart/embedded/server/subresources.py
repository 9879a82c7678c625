"""What is asked below an object and beside all of them: tokens, bindings, evictions, `/scale`, and the reviews.

A review is answered and never stored. The others change an object without showing it: a token is issued for an account, a Pod
is bound or evicted, and a custom object is told how many replicas are wanted, by somebody who knows nothing else of it.
"""

from dataclasses import dataclass, replace

from applecart.api.meta import Key, Resource
from applecart.embedded.auth import token_request
from applecart.embedded.auth.authenticate import BearerTokens
from applecart.embedded.auth.reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens
from applecart.embedded.kinds import binding as bindings
from applecart.embedded.kinds import disruption
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, not_found, unsupported_media_type
from applecart.embedded.schema.budget import spend
from applecart.embedded.schema.scale import ScalePaths, read_scale, write_scale
from applecart.embedded.server import deletion, gate
from applecart.embedded.server.admission import Write, write_of
from applecart.embedded.server.bodies import SCHEME, read_body
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import track_scaled
from applecart.embedded.server.objects import encode, find, viewed
from applecart.embedded.server.representation import sent
from applecart.embedded.server.request import END, Answer, ApiRequest, media_type
from applecart.embedded.server.writing import CREATE, JSON_PATCH, MERGE_PATCH, UPDATE, bad_patch, patcher, refuse_other_place
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import struct_of, type_of
from applecart.embedded.surface.negotiation import choose_answer, choose_plain
from applecart.embedded.tables.printer_columns import table_of_columns
from applecart.embedded.tables.render import table_document

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
SCALE_VERSION = "autoscaling/v1"
STEPS_OF_A_BUDGET = 20  # of disruptions, to be read and held against a Pod
SCALES = table_of_columns(
    [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Available", "type": "integer", "jsonPath": ".status.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
)

_SCALE = struct_of("autoscaling/v1.Scale")


@dataclass(frozen=True, slots=True)
class Identity:
    """What knows users by their tokens."""

    bearer: BearerTokens
    accounts: ServiceAccountTokens


def answer_review(core: Core, identity: Identity, request: ApiRequest, asked: Resource, namespace: str) -> Answer:
    """POST of one of the review kinds."""
    user, authorizer = request.user, core.authorizer
    review = read_virtual(request, asked.api_version, asked.kind, namespace)
    match asked.kind:
        case "TokenReview":
            answer = token_review(review, identity.bearer)
        case "SelfSubjectReview":
            answer = self_subject_review(user, core.clock)
        case "SubjectAccessReview":
            answer = subject_access_review(review, authorizer)
        case "LocalSubjectAccessReview":
            answer = local_subject_access_review(review, namespace, authorizer)
        case "SelfSubjectAccessReview":
            answer = self_subject_access_review(review, user, authorizer)
        case _:
            answer = self_subject_rules_review(review, user, authorizer)
    return sent(answer, request.accept, 201)


def issue_token(core: Core, identity: Identity, request: ApiRequest, kind: Kind, namespace: str, name: str) -> Answer:
    """POST of a TokenRequest below a ServiceAccount."""
    asked = read_virtual(request, "authentication.k8s.io/v1", "TokenRequest", namespace)
    asked["metadata"].setdefault("name", name)
    asked["metadata"].setdefault("namespace", namespace)
    gate.admit_below(core, write_of(request, "create", kind, Key(namespace, name), CREATE, "token"), asked)
    return sent(token_request.issue(asked, namespace, name, identity.accounts, core.reader, core.clock), request.accept, 201)


def read_virtual(request: ApiRequest, api_version: str, kind: str, namespace: str, *, older: str = "") -> Document:
    """The body as a document of a kind that is not stored, meant for this namespace if any."""
    document = read_body(request)
    if not isinstance(document, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    given = (document.get("apiVersion") or api_version, document.get("kind") or kind)
    if given not in ((api_version, kind), (older, kind)):
        raise bad_request(f"{given[1]} in version {given[0]} cannot be handled as a {kind}")
    type = type_of(api_version, kind)
    assert type is not None
    conformed = conform({**document, "apiVersion": api_version, "kind": kind}, type).document
    if not isinstance(conformed.get("metadata"), dict):
        conformed["metadata"] = {}
    if namespace:
        gate.refuse_other_namespace(conformed["metadata"], namespace)
    return conformed


async def bind(core: Core, request: ApiRequest, kind: Kind, key: Key, binding: Document) -> Answer:
    """Below a Pod and, for its name alone, below the namespace."""
    choose_plain(request.accept)  # before anything is done
    write = write_of(request, "create", kind, key, CREATE, "binding")
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
    choose_plain(request.accept)
    write = write_of(request, "create", kind, key, CREATE, "eviction")
    admitted = gate.admit_below(core, write, eviction)
    options = disruption.delete_options(key.name, eviction, ["All"] if write.is_dry_run else [])
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    wanted = deletion.read_options(ApiRequest("DELETE", request.path, {}, request.user, {}, encode(options)))
    pod = viewed(core, kind, record)
    budgets = core.registry.built_in("v1", "poddisruptionbudgets", "policy")
    # Nothing waits from here to the write: two evictions never spend the same disruption.
    charged = None if disruption.ignores_budgets(pod) else _charged(core, budgets, pod)
    if not wanted.is_dry_run:
        if refusal := deletion.refuse_unmet(kind, pod, wanted):
            raise refusal
        if charged is not None:
            gate.amend(core, admitted, charged, budgets)
        if _is_running(pod):
            gate.amend(core, admitted, disruption.mark_evicted(pod, core.clock.now()))
            wanted = replace(wanted, resource_version=None)  # the Pod was changed by ourselves
    _, submitted, _ = gate.delete(core, Write(request.user, "delete", kind, key), wanted)
    if submitted is not None:
        await submitted.settle()
    return sent(SUCCESS, request.accept, 201)


def _charged(core: Core, budgets: Kind, pod: Document) -> Document | None:
    known = core.store.table(budgets.storage.label).records(pod["metadata"]["namespace"])
    spend(STEPS_OF_A_BUDGET * len(known))
    tips = [find(core, budgets, record.key) for record in known]
    return disruption.charged_budget(pod, [viewed(core, budgets, tip) for tip in tips if tip], core.clock.now())


def _is_running(pod: Document) -> bool:
    """A Pod that has ended or is going already needs no word on why."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and pod["metadata"].get("deletionTimestamp") is None


async def get_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    record = core.store.table(kind.storage.label).get(key)
    if record is None:
        raise not_found(kind.resource, key.name)
    return _answered(core, request, read_scale(viewed(core, kind, record), paths))


async def change_scale(core: Core, request: ApiRequest, kind: Kind, key: Key, paths: ScalePaths) -> Answer:
    """PUT or PATCH of the Scale."""
    if choose_answer(request.accept).shape != "table":
        choose_plain(request.accept)
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    current = read_scale(viewed(core, kind, record), paths, is_written=True)
    scale = _patched(request, kind, current) if request.method == "PATCH" else _given(request)
    refuse_other_place(kind, key, scale)
    write = write_of(request, "update", kind, key, UPDATE, "scale")

    def make(document: Document) -> Document:
        before = read_scale(document, paths, is_written=True)["spec"]
        write_scale(document, scale, paths)
        if read_scale(document, paths)["spec"] != before:
            track_scaled(core, kind, document, paths.spec_replicas, write.manager)
        metadata = document["metadata"]
        metadata["resourceVersion"] = scale["metadata"].get("resourceVersion") or metadata["resourceVersion"]
        if scale["metadata"].get("uid"):
            metadata["uid"] = scale["metadata"]["uid"]
        return document

    document, submitted = gate.update(core, write, record, make, is_applied=True)
    if submitted is not None:
        await submitted.settle()
    return _answered(core, request, read_scale(document, paths))


def _given(request: ApiRequest) -> Document:
    scale = read_body(request)
    if not isinstance(scale, dict) or (scale.get("apiVersion"), scale.get("kind")) != (SCALE_VERSION, "Scale"):
        raise bad_request(f"no kind is registered for the type v1.Scale {SCHEME}")
    return _conformed(scale)


def _patched(request: ApiRequest, kind: Kind, current: Document) -> Document:
    given = media_type(request.content_type)
    if given not in (JSON_PATCH, MERGE_PATCH):
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH))
    change, _ = patcher(given, request.body, kind, "Ignore")
    changed = change(current)
    try:
        return _conformed(changed)
    except Refusal as refusal:
        raise bad_patch(changed, refusal) from None


def _conformed(scale: Document) -> Document:
    conformed = conform(scale, _SCALE).document
    conformed.setdefault("metadata", {})
    return conformed


def _answered(core: Core, request: ApiRequest, scale: Document) -> Answer:
    wanted = choose_answer(request.accept)
    if wanted.shape != "table":
        return sent(scale, request.accept)
    revision = {"resourceVersion": scale["metadata"].get("resourceVersion", "")}
    return Answer(200, table_document(SCALES, [scale], core.clock.now(), revision, version=wanted.meta_version) + END)
