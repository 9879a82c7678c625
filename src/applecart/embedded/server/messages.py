"""A request and its answer, whoever carries them: HTTP or a client in the same process."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from applecart.embedded.auth.user import User

JSON = "application/json"
BODY_LIMIT_BYTES = 3 << 20  # of a request, as on the real server


@dataclass(slots=True)
class ApiRequest:
    method: str
    path: str  # decoded, without query
    query: Mapping[str, str]  # the first value of each parameter
    user: User
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)  # gathered on the way, sent beside the answer

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")


@dataclass(slots=True)
class Answer:
    """An answer whose body is known."""

    status: int
    body: bytes = b""
    content_type: str = JSON  # "" sends none
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # one header each


@dataclass(slots=True)
class StreamAnswer:
    """An answer whose body comes in pieces: a watch, or a list too long to build at once."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
