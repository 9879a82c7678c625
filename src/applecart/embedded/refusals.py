"""The API's refusals, raised anywhere below a handler and answered as a `Status`.

A refusal carries what a client decides on (code, reason, details) and the text a real API server would use. Nothing else may
leave the server as an error: an exception that is no Refusal is a defect and becomes a 500 without its text.
"""

from collections.abc import Sequence
from typing import Any

from applecart.api.meta import Resource
from applecart.embedded.field_errors import FieldError, quoted


class Refusal(Exception):
    """One refusal. `headers` go beside the answer (Retry-After)."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}
        self.headers = headers or {}

    def document(self) -> dict[str, Any]:
        """The `Status` object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        if self.details is None:
            del status["details"]
        if not self.reason:
            del status["reason"]
        return status


def details_of(resource: Resource, name: str = "", **more: Any) -> dict[str, Any]:
    """Which object a refusal is about: absent parts are left out, as the real server does."""
    return {
        **({"name": name} if name else {}),
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.plural,
        **more,
    }


def not_found(resource: Resource, name: str) -> Refusal:
    return Refusal(404, "NotFound", f"{resource.label} {quoted(name)} not found", details_of(resource, name))


def already_exists(resource: Resource, name: str, *, is_being_deleted: bool = False) -> Refusal:
    prefix = "object is being deleted: " if is_being_deleted else ""
    return Refusal(409, "AlreadyExists", f"{prefix}{resource.label} {quoted(name)} already exists", details_of(resource, name))


def conflict(resource: Resource, name: str, why: str) -> Refusal:
    text = f"Operation cannot be fulfilled on {resource.label} {quoted(name)}: {why}"
    return Refusal(409, "Conflict", text, details_of(resource, name))


def was_modified(resource: Resource, name: str) -> Refusal:
    """Somebody else wrote first."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def unmet_in_storage(resource: Resource, place: str, name: str, what: str, wanted: str, found: str) -> Refusal:
    """The words of the real server's storage; its key and code say nothing here, but people grep the rest."""
    differs = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    why = f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: {differs}"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str, **more: Any) -> Refusal:
    about = f"{resource.label} {quoted(name)}" if name else resource.label
    return Refusal(403, "Forbidden", f"{about} is forbidden: {why}", details_of(resource, name, **more))


def invalid(resource: Resource, name: str, errors: Sequence[FieldError]) -> Refusal:
    """422 with one cause per field."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    texts = list(dict.fromkeys(str(error) for error in errors))
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {
        **({"name": name} if name else {}),
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.kind,
        "causes": [{"reason": error.reason, "message": error.body, "field": error.field} for error in errors],
    }
    return Refusal(422, "Invalid", f"{kind} {quoted(name)} is invalid: {summary}", details)


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def no_such_resource() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Refusal:
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def verb_not_supported(resource: Resource, verb: str) -> Refusal:
    """405 as custom kinds say it."""
    text = f"{verb} is not supported on resources of kind {quoted(resource.label)}"
    return Refusal(405, "MethodNotAllowed", text, details_of(resource))


def not_acceptable(offered: Sequence[str]) -> Refusal:
    return Refusal(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


def unsupported_media_type(accepted: Sequence[str]) -> Refusal:
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return Refusal(415, "UnsupportedMediaType", text)


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit_bytes}")


def expired(message: str) -> Refusal:
    return Refusal(410, "Expired", message)


def too_many_requests(message: str, retry_after_s: int) -> Refusal:
    details = {"retryAfterSeconds": retry_after_s}
    return Refusal(429, "TooManyRequests", message, details, headers={"Retry-After": str(retry_after_s)})
