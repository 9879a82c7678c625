"""Kinds that are questions: created, answered and never stored."""

from applecart.api.meta import Resource

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"

TOKEN_REVIEW = Resource(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", False)
SELF_SUBJECT_REVIEW = Resource(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", False)
SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", False)
LOCAL_SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True)
SELF_SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
SELF_SUBJECT_RULES_REVIEW = Resource(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False)
BINDING = Resource("", "v1", "Binding", "bindings", True)

VIRTUAL_KINDS: tuple[Resource, ...] = (
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    BINDING,
)
