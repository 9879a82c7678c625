"""Questions about identity and rights, asked as objects: a document and a user in, the document with its status out.

Nothing is stored and nobody's rights change. Whether the caller may ask about others was decided before; the reviews about
oneself are open to everybody who is known. Of selectors only those of fields decide anything (a node may list its own Pods);
one that cannot be read is ignored and said so: the question is then broader, and the answer can only be more careful.
"""

from collections.abc import Iterator, Sequence

from applecart.api.meta import Resource, stamp
from applecart.clock import Clock
from applecart.embedded import field_errors
from applecart.embedded.auth.authenticate import BearerTokens
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.rbac import aggregated
from applecart.embedded.auth.roles import Rule
from applecart.embedded.auth.token_keys import BadToken
from applecart.embedded.auth.untyped import Document, items, mapping, mappings, metadata, text, texts
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.field_errors import FieldError, shown
from applecart.embedded.kinds.names import EXISTS_SAID, IN_SAID
from applecart.embedded.refusals import Refusal, bad_request, invalid
from applecart.embedded.selectors import is_readable, written

_IGNORED = "spec.resourceAttributes.fieldSelector ignored due to parse error"
_PARTLY_IGNORED = "spec.resourceAttributes.fieldSelector partially ignored due to parse error"


def read_field_selector(selector: object) -> tuple[str, str]:
    """The selector as text, and what had to be ignored of it."""
    given = mapping(selector)
    requirements = mappings(given.get("requirements"))
    raw = text(given.get("rawSelector"))
    if not requirements:
        return (raw, "") if is_readable(raw) else ("", _IGNORED)
    terms = [_term(one) for one in requirements]
    readable = [term for term in terms if term]
    if len(readable) == len(terms):
        return ",".join(readable), ""
    return ",".join(readable), _PARTLY_IGNORED if readable else _IGNORED


def selector_problems(asked: Document) -> list[FieldError]:
    """What is wrong with the selectors of resourceAttributes."""
    problems: list[FieldError] = []
    for member in ("fieldSelector", "labelSelector"):
        selector, field = asked.get(member), f"spec.resourceAttributes.{member}"
        if not isinstance(selector, dict):
            continue
        raw, requirements = text(selector.get("rawSelector")), mappings(selector.get("requirements"))
        if raw and requirements:
            detail = "may not specified at the same time as requirements"
            problems.append(field_errors.invalid(f"{field}.rawSelector", raw, detail))
        if not raw and not requirements:
            detail = f"when {field} is specified, requirements or rawSelector is required"
            problems.append(field_errors.required(f"{field}.requirements", detail))
        for place, requirement in enumerate(requirements):
            here = f"{field}.requirements[{place}]"
            if not text(requirement.get("key")):
                problems.append(field_errors.required(f"{here}.key", "must be specified"))
            operator, values = requirement.get("operator"), texts(requirement.get("values"))
            if operator in ("In", "NotIn") and not values:
                problems.append(field_errors.required(f"{here}.values", IN_SAID))
            if operator in ("Exists", "DoesNotExist") and values:
                problems.append(field_errors.forbidden(f"{here}.values", EXISTS_SAID))
    return problems


def _term(requirement: Document) -> str:
    """One requirement as text; "" when field selectors cannot say it."""
    operator, values = requirement.get("operator"), texts(requirement.get("values"))
    if operator not in ("In", "NotIn") or len(values) != 1:
        return ""
    return written(text(requirement.get("key")), values[0], is_equal=operator == "In")


AUTHENTICATION = "authentication.k8s.io/v1"
AUTHORIZATION = "authorization.k8s.io/v1"
MOST_RULES = 2000  # of one answer, as many as two of the largest roles; a user holds some hundred
MOST_WORDS = 20_000  # in all their lists
ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def token_review(review: Document, tokens: BearerTokens) -> Document:
    """Whose token it is. The answer repeats the request, token included, as the API does."""
    spec = mapping(review.get("spec"))
    token = text(spec.get("token"))
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    status: Document
    try:
        verified = tokens.verify(token, texts(spec.get("audiences")) or None)
    except BadToken as error:
        status = {"user": {}, "error": str(error)}
    else:
        status = {"authenticated": True, "user": user_document(verified.user), "audiences": list(verified.audiences)}
    return {**_head("TokenReview", AUTHENTICATION, metadata(review)), "spec": spec, "status": status}


def self_subject_review(user: User, clock: Clock) -> Document:
    """Who asks (`kubectl auth whoami`)."""
    head = _head("SelfSubjectReview", AUTHENTICATION, {"creationTimestamp": stamp(clock.now())})
    return {**head, "status": {"userInfo": user_document(user)}}


def subject_access_review(review: Document, authorizer: Authorizer) -> Document:
    """Whether somebody may do something."""
    return _access_review("SubjectAccessReview", review, _subject(review), authorizer, _subject_problems(review))


def local_subject_access_review(review: Document, namespace: str, authorizer: Authorizer) -> Document:
    """The same within the namespace of the request."""
    if metadata(review).get("namespace") not in (None, "", namespace):
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    problems = _subject_problems(review)
    spec = mapping(review.get("spec"))
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if asked is not None and text(mapping(asked).get("namespace")) != namespace:
        asked_namespace = text(mapping(asked).get("namespace"))
        field = "spec.resourceAttributes.namespace"
        problems.append(field_errors.invalid(field, asked_namespace, "must match metadata.namespace"))
    if path is not None:
        problems.append(_bad_path(path, "disallowed on this kind of request"))
    return _access_review("LocalSubjectAccessReview", review, _subject(review), authorizer, problems, {"namespace": namespace})


def self_subject_access_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """Whether the asking user may do something (`kubectl auth can-i`)."""
    return _access_review("SelfSubjectAccessReview", review, user, authorizer, [])


def self_subject_rules_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """What the asking user may do in a namespace (`kubectl auth can-i --list`)."""
    namespace = text(mapping(review.get("spec")).get("namespace"))
    if not namespace:
        raise bad_request("no namespace on request")
    rules, problems, is_incomplete = authorizer.rules_for(user, namespace)
    shown_rules = list(_as_many_as_fit(rules))
    if len(shown_rules) < len(rules):
        is_incomplete = True
        problems = [*problems, f"only the first {len(shown_rules)} of {len(rules)} rules are shown"]
    on_resources, on_paths = [], []
    for rule in shown_rules:
        verbs = list(rule.verbs)
        if rule.resources:
            names = {"resourceNames": list(rule.names)} if rule.names else {}
            on_resources.append({"verbs": verbs, "apiGroups": list(rule.groups), "resources": list(rule.resources), **names})
        if rule.paths:
            on_paths.append({"verbs": verbs, "nonResourceURLs": list(rule.paths)})
    status: Document = {"resourceRules": on_resources, "nonResourceRules": on_paths, "incomplete": is_incomplete}
    if problems:
        status["evaluationError"] = aggregated(problems)
    return {**_head("SelfSubjectRulesReview", AUTHORIZATION, {}), "spec": {}, "status": status}


def _as_many_as_fit(rules: Sequence[Rule]) -> Iterator[Rule]:
    words = 0
    for rule in rules[:MOST_RULES]:
        words += len(rule.verbs) + len(rule.groups) + len(rule.resources) + len(rule.names) + len(rule.paths)
        if words > MOST_WORDS:
            return
        yield rule


def user_document(user: User) -> Document:
    """A user as reviews show it."""
    members = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in members.items() if value}


def _access_review(
    kind: str, review: Document, user: User, authorizer: Authorizer, problems: list[FieldError], meta: Document | None = None
) -> Document:
    spec = mapping(review.get("spec"))
    problems = [*_attribute_problems(spec), *problems, *_metadata_problems(review, meta)]
    if problems:
        raise _invalid(problems)
    attributes, ignored = _attributes(spec)
    decision = authorizer.decide(user, attributes)
    status: Document = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if ignored:
        status["evaluationError"] = ignored
    return {**_head(kind, AUTHORIZATION, meta or {}), "spec": spec, "status": status}


def _attributes(spec: Document) -> tuple[Attributes, str]:
    """What is asked, and which part of the question could not be read."""
    if (path := spec.get("nonResourceAttributes")) is not None:
        return Attributes(verb=text(mapping(path).get("verb")), path=text(mapping(path).get("path"))), ""
    asked = mapping(spec.get("resourceAttributes"))
    field_selector, ignored = read_field_selector(asked.get("fieldSelector"))
    return (
        Attributes(
            verb=text(asked.get("verb")),
            is_resource=True,
            group=text(asked.get("group")),
            version=text(asked.get("version")) or "*",
            resource=text(asked.get("resource")),
            subresource=text(asked.get("subresource")),
            namespace=text(asked.get("namespace")),
            name=text(asked.get("name")),
            field_selector=field_selector,
        ),
        ignored,
    )


def _subject(review: Document) -> User:
    spec = mapping(review.get("spec"))
    extra = {key: texts(values) for key, values in mapping(spec.get("extra")).items()}
    return User(text(spec.get("user")), texts(spec.get("groups")), text(spec.get("uid")), extra)


def _subject_problems(review: Document) -> list[FieldError]:
    spec = mapping(review.get("spec"))
    if text(spec.get("user")) or items(spec.get("groups")):
        return []
    return [field_errors.invalid("spec.user", "", "at least one of user or group must be specified")]


def _attribute_problems(spec: Document) -> list[FieldError]:
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    problems = []
    if asked is not None and path is not None:
        problems.append(_bad_path(path, "cannot be specified in combination with resourceAttributes"))
    if asked is None and path is None:
        problems.append(FieldError("Invalid", "spec.resourceAttributes", f"null: {ONE_OF_TWO}", shows_value=False))
    return problems + selector_problems(mapping(asked))


def _metadata_problems(review: Document, meta: Document | None) -> list[FieldError]:
    given = {name: value for name, value in metadata(review).items() if name not in ("managedFields", "creationTimestamp")}
    if meta is not None:
        given.pop("namespace", None)
    if not any(given.values()):
        return []
    return [field_errors.invalid("metadata", given, "must be empty" if meta is None else "must be empty except for namespace")]


def _bad_path(path: object, detail: str) -> FieldError:
    asked = {"Path": text(mapping(path).get("path")), "Verb": text(mapping(path).get("verb"))}
    return FieldError("Invalid", "spec.nonResourceAttributes", f"{shown(asked)}: {detail}", shows_value=False)


def _invalid(problems: list[FieldError]) -> Refusal:
    """The 422 of a review: the real server does not know the kind's name at this point."""
    refusal = invalid(Resource("authorization.k8s.io", "v1", "", ""), "", problems)
    if refusal.details is not None:
        refusal.details.pop("kind", None)
    return refusal


def _head(kind: str, api_version: str, meta: Document) -> Document:
    return {"kind": kind, "apiVersion": api_version, "metadata": meta}
