"""The refusals of `MemoryApi`, in kube-apiserver's words: people grep for them and clients decide by their reasons."""

from collections.abc import Mapping, Sequence

import msgspec

from applecart.kube.transport import JSON, Response
from tests.kube.memory_store import Document, Kind


class Refusal(Exception):
    """A `Status` that says no."""

    def __init__(self, code: int, reason: str, message: str, details: Document | None = None) -> None:
        self.code = code
        self.status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details or {},
            "code": code,
        }
        super().__init__(message)

    @property
    def response(self) -> Response:
        return self.response_with({})

    def response_with(self, headers: Mapping[str, str]) -> Response:
        return Response(self.code, msgspec.json.encode(self.status), {"content-type": JSON, **headers})


def not_found(kind: Kind, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{kind} "{name}" not found', _details(kind, name))


def unknown_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource")


def not_allowed() -> Refusal:
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def already_exists(kind: Kind, name: str, *, is_going: bool) -> Refusal:
    prefix = "object is being deleted: " if is_going else ""
    return Refusal(409, "AlreadyExists", f'{prefix}{kind} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}', _details(kind, name))


def expired(message: str) -> Refusal:
    return Refusal(410, "Expired", message)


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit_bytes}")


def unsupported(accepted: Sequence[str]) -> Refusal:
    words = "the body of the request was in an unknown format - accepted media types include: "
    return Refusal(415, "UnsupportedMediaType", words + ", ".join(accepted))


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def invalid(kind_name: str, name: str, field: str, message: str) -> Refusal:
    details = {"name": name, "kind": kind_name, "causes": [{"field": field, "message": message, "reason": "FieldValueInvalid"}]}
    return Refusal(422, "Invalid", f'{kind_name} "{name}" is invalid: {field}: {message}', details)


def _details(kind: Kind, name: str) -> Document:
    return {"name": name, "group": kind.group, "kind": kind.plural}
