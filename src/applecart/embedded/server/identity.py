"""The questions about identities and rights that are answered and never stored, and tokens of service accounts."""

from collections.abc import Callable
from dataclasses import dataclass

from applecart.api.meta import Key
from applecart.embedded.auth import reviews, token_request
from applecart.embedded.auth.authenticate import BearerTokens
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens
from applecart.embedded.auth.user import User
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import bad_request
from applecart.embedded.server.admission import write_of
from applecart.embedded.server.bodies import read_body
from applecart.embedded.server.core import Core
from applecart.embedded.server.gate import admit_below
from applecart.embedded.server.representation import sent
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import type_of


@dataclass(frozen=True, slots=True)
class Identity:
    """What knows users: the authorizer and the tokens."""

    authorizer: Authorizer
    bearer: BearerTokens
    accounts: ServiceAccountTokens


def answer_review(core: Core, identity: Identity, request: ApiRequest, plural: str, namespace: str) -> Answer:
    """POST of one of the review kinds."""
    user: User = request.user
    authorizer = identity.authorizer
    answers: dict[str, tuple[str, str, Callable[[Document], Document]]] = {
        "tokenreviews": ("authentication.k8s.io/v1", "TokenReview", lambda d: reviews.token_review(d, identity.bearer)),
        "selfsubjectreviews": (
            "authentication.k8s.io/v1",
            "SelfSubjectReview",
            lambda d: reviews.self_subject_review(user, core.clock),
        ),
        "subjectaccessreviews": (
            "authorization.k8s.io/v1",
            "SubjectAccessReview",
            lambda d: reviews.subject_access_review(d, authorizer),
        ),
        "localsubjectaccessreviews": (
            "authorization.k8s.io/v1",
            "LocalSubjectAccessReview",
            lambda d: reviews.local_subject_access_review(d, namespace, authorizer),
        ),
        "selfsubjectaccessreviews": (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            lambda d: reviews.self_subject_access_review(d, user, authorizer),
        ),
        "selfsubjectrulesreviews": (
            "authorization.k8s.io/v1",
            "SelfSubjectRulesReview",
            lambda d: reviews.self_subject_rules_review(d, user, authorizer),
        ),
    }
    api_version, kind, answer = answers[plural]
    return sent(answer(read_virtual(request, api_version, kind)), request.accept, 201)


def issue_token(core: Core, identity: Identity, request: ApiRequest, kind: Kind, namespace: str, name: str) -> Answer:
    """POST of a TokenRequest below a ServiceAccount."""
    asked = read_virtual(request, "authentication.k8s.io/v1", "TokenRequest")
    asked["metadata"].setdefault("name", name)
    asked["metadata"].setdefault("namespace", namespace)
    admit_below(core, write_of(request, "create", kind, Key(namespace, name), "CreateOptions", "token"), asked)
    issued = token_request.issue(asked, namespace, name, identity.accounts, core.reader, core.clock)
    return sent(issued, request.accept, 201)


def read_virtual(request: ApiRequest, api_version: str, kind: str, *, older: str = "") -> Document:
    """The body as a document of a kind that is not stored."""
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
    return conformed
