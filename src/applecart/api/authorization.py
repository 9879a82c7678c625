"""SubjectAccessReview: may this user do that?

Asked by everything of ours that serves requests for others (logs and exec of a guest, metrics). Only `allowed` is a yes; an
error or no opinion is a no.
"""

from applecart.api.meta import Object, Part, Resource


class ResourceAttributes(Part):
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class NonResourceAttributes(Part):
    verb: str = ""
    path: str = ""


class SubjectAccessReviewSpec(Part):
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewStatus(Part):
    """No opinion is neither allowed nor denied; it must be read as no."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(Object):
    resource = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)

    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
