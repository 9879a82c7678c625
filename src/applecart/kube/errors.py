"""The API's refusals as classes.

Kubernetes answers a failed call with a `Status` object; its `reason` (or, from proxies that send none, the HTTP code) picks
the class. Each class is also `Transient`, `Permanent` or a `ControlPlaneFault`, so a controller knows what to do with it
without looking inside.
"""

import msgspec

from applecart.api.meta import Part
from applecart.errors import ApplecartError, BadInput, ControlPlaneFault, Permanent, Transient

SHOWN_BODY_CHARS = 200  # of an answer that is no Status, such as a proxy's page


class Cause(Part):
    field: str = ""
    message: str = ""
    reason: str = ""


class Details(Part):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Part):
    """A metav1 Status."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(ApplecartError):
    """The API server answered, and the answer is no."""

    def __init__(self, status: Status, call: str, retry_after_s: float | None = None) -> None:
        self.status = status
        self.call = call
        self.retry_after_s = retry_after_s
        super().__init__(f"{call}: {status.message or status.reason or 'no message'} ({status.code})")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields the server complains about, as paths (`spec.os`)."""
        return tuple(cause.field for cause in self.status.details.causes if cause.field) if self.status.details else ()


class BadRequest(ApiError, Permanent):
    """400: we sent something that makes no sense."""


class Unauthorized(ApiError, ControlPlaneFault):
    """401: the server does not know who we are, or the credential expired."""


class Forbidden(ApiError, ControlPlaneFault):
    """403: we may not do this; somebody must grant it."""


class NotFound(ApiError, Permanent):
    """404: no such object or kind."""


class MethodNotAllowed(ApiError, Permanent):
    """405: the resource does not serve this verb."""


class AlreadyExists(ApiError, Permanent):
    """409: an object of this name exists."""


class Conflict(ApiError, Transient):
    """409: the object changed since we read it; read it again and decide again."""


class Expired(ApiError, Transient):
    """410: the revision or continue token is too old; list again."""


class TooLarge(ApiError, Permanent):
    """413: the request body is over the server's limit."""


class UnsupportedMediaType(ApiError, Permanent):
    """415: the server does not take this patch kind for this resource."""


class Invalid(ApiError, BadInput):
    """422: the object breaks its schema; `fields` names where."""


class TooManyRequests(ApiError, Transient):
    """429: slow down; also an eviction that a disruption budget refuses."""


class ServerFault(ApiError, Transient):
    """5xx: the server or something in front of it is in trouble."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "RequestEntityTooLarge": TooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "ServerTimeout": ServerFault,
    "Timeout": ServerFault,
    "InternalError": ServerFault,
    "ServiceUnavailable": ServerFault,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
}
_decode_status = msgspec.json.Decoder(Status).decode


def error_from_status(status: Status, call: str, retry_after_s: float | None = None) -> ApiError:
    """The class that a Status means. Unknown client errors are permanent, unknown server errors are not."""
    by_code = _BY_CODE.get(status.code, ServerFault if status.code >= 500 else BadRequest)
    return _BY_REASON.get(status.reason, by_code)(status, call, retry_after_s)


def error_from_answer(code: int, body: bytes, call: str, retry_after_s: float | None = None) -> ApiError:
    """The class that an HTTP answer means, whether or not it carries a Status."""
    try:
        status = _decode_status(body)
    except msgspec.MsgspecError:
        text = " ".join(body.decode("utf-8", "replace").split())[:SHOWN_BODY_CHARS]
        status = Status(message=text or "the server sent no reason", code=code)
    if status.code != code:
        status = msgspec.structs.replace(status, code=code)
    if retry_after_s is None and status.details and status.details.retry_after_seconds > 0:
        retry_after_s = float(status.details.retry_after_seconds)
    return error_from_status(status, call, retry_after_s)
