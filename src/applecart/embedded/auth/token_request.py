"""Handing out a service-account token (`POST .../serviceaccounts/{name}/token`).

The caller says for whom the token shall be good, for how long, and with which object it shall die. Nothing is stored: the
answer is the request with a status. Whether the caller may ask at all was decided before.
"""

from datetime import timedelta
from typing import Any

from applecart.api.meta import Resource, stamp
from applecart.clock import Clock
from applecart.embedded import field_errors
from applecart.embedded.auth.service_account_tokens import Bound, ServiceAccountTokens
from applecart.embedded.auth.untyped import Document, go_quoted, mapping, metadata, text, texts, uid_of
from applecart.embedded.refusals import Refusal, bad_request, conflict, invalid, not_found
from applecart.embedded.store.store import Reader

DEFAULT_LIFETIME_S = 3600
SHORTEST_LIFETIME_S = 600  # below that, clients would do little else than renew
LONGEST_LIFETIME_S = 2**32  # what the API allows
TOKEN_REQUEST = Resource("authentication.k8s.io", "v1", "TokenRequest", "TokenRequest")
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def issue(request: Document, namespace: str, name: str, tokens: ServiceAccountTokens, reader: Reader, clock: Clock) -> Document:
    """The answer to a request for a token of the account `namespace`/`name`."""
    given = metadata(request)
    for member, wanted in (("name", name), ("namespace", namespace)):
        if given.get(member) and given[member] != wanted:
            detail = f"must match the service account {member} if specified"
            raise invalid(TOKEN_REQUEST, name, [field_errors.invalid(f"metadata.{member}", given[member], detail)])
    account = reader.get("serviceaccounts", namespace, name)
    if account is None:
        raise not_found(Resource("", "v1", "ServiceAccount", "serviceaccounts"), name)
    uid = uid_of(account)
    if given.get("uid") and given["uid"] != uid:
        why = f"the UID in the token request ({given['uid']}) does not match the UID of the service account ({uid})"
        raise conflict(TOKEN_REQUEST, name, why)
    spec = mapping(request.get("spec"))
    lifetime_s = _lifetime_s(spec.get("expirationSeconds"))
    audiences = texts(spec.get("audiences")) or tokens.audiences
    reference = spec.get("boundObjectRef")
    bound = _bound_objects(mapping(reference), namespace, name, reader) if reference is not None else {}
    now = clock.now()
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**given, "name": name, "namespace": namespace, "uid": uid, "creationTimestamp": stamp(now)},
        "spec": {"audiences": list(audiences), "expirationSeconds": lifetime_s, "boundObjectRef": reference},
        "status": {
            "token": tokens.issue(Bound(name, uid), namespace, audiences, lifetime_s, **bound),
            "expirationTimestamp": stamp(now + timedelta(seconds=lifetime_s)),
        },
    }


def _lifetime_s(asked: Any) -> int:
    if asked is None:
        return DEFAULT_LIFETIME_S
    if not isinstance(asked, int) or isinstance(asked, bool):
        raise bad_request("spec.expirationSeconds must be a whole number of seconds")
    if asked < SHORTEST_LIFETIME_S:
        raise _bad_lifetime(asked, "may not specify a duration less than 10 minutes")
    if asked > LONGEST_LIFETIME_S:
        raise _bad_lifetime(asked, "may not specify a duration larger than 2^32 seconds")
    return asked


def _bad_lifetime(asked: int, detail: str) -> Refusal:
    # Shown as text: numbers may be larger than what JSON encoders write.
    error = field_errors.FieldError("Invalid", "spec.expirationSeconds", f"{asked}: {detail}", shows_value=False)
    return invalid(TOKEN_REQUEST, "", [error])


def _bound_objects(reference: Document, namespace: str, account: str, reader: Reader) -> dict[str, Bound]:
    """What the token dies with, by the name of its claim; the node of a Pod comes along."""
    group, _, version = text(reference.get("apiVersion")).rpartition("/")
    kind, name = text(reference.get("kind")), text(reference.get("name"))
    label = _BOUND.get(kind) if not group else None
    if label is None:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = reader.get(label, "" if kind == "Node" else namespace, name)
    if found is None:
        raise not_found(Resource("", "v1", kind, label), name)
    spec = mapping(found.get("spec"))
    if kind == "Pod" and text(spec.get("serviceAccountName")) != account:
        raise bad_request(
            f"cannot bind token for serviceaccount {go_quoted(account)} to pod running with different serviceaccount name."
        )
    uid = uid_of(found)
    if reference.get("uid") and reference["uid"] != uid:
        why = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(Resource("", "v1", kind, kind), name, why)
    bound = {kind.lower(): Bound(name, uid)}
    node = text(spec.get("nodeName")) if kind == "Pod" else ""
    if node:
        bound["node"] = Bound(node, uid_of(reader.get("nodes", "", node)))
    return bound
