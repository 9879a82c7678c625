"""Bytes to structs and back, one decoder per kind.

Building a msgspec decoder costs milliseconds and using it microseconds, so each kind's is made once.
"""

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from applecart.api.meta import Object
from applecart.errors import Transient

K = TypeVar("K", bound=Object)
T = TypeVar("T")


_encode = msgspec.json.Encoder().encode


class Garbled(Transient):
    """The peer sent bytes that are no answer: broken JSON, or a watch that went back in time."""


class ListMeta(msgspec.Struct, frozen=True, gc=False):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    continue_: str = msgspec.field(name="continue", default="")


class ListPage(msgspec.Struct, Generic[K], frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[K] = []


class Frame(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: K


class Decoder(Generic[T]):
    """A msgspec decoder whose failures are ours, and which knows that null means absent.

    Go writes null for a list or map that is not there, in places that no schema names. The strict decoder refuses it; only
    then is the document read a second time, without its nulls.
    """

    def __init__(self, kind: Any, what: str) -> None:
        self._kind = kind
        self._what = what
        self.strict = msgspec.json.Decoder(kind).decode  # for hot loops, which handle its errors with `decode`

    def decode(self, body: bytes) -> T:
        try:
            return self.strict(body)  # type: ignore[no-any-return]
        except msgspec.MsgspecError as strict_error:
            try:
                document = without_nulls(msgspec.json.decode(body))
                return msgspec.convert(document, self._kind)  # type: ignore[no-any-return]
            except msgspec.MsgspecError:
                raise Garbled(f"the API server's {self._what} cannot be read: {strict_error}") from None


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value if inner is not None] if isinstance(value, list) else value


def decoder(kind: type[K]) -> Decoder[K]:
    made: Decoder[K] = _decoder(kind)
    return made


def list_decoder(kind: type[K]) -> Decoder[ListPage[K]]:
    made: Decoder[ListPage[K]] = _list_decoder(kind)
    return made


def frame_decoder(kind: type[K]) -> Decoder[Frame[K]]:
    made: Decoder[Frame[K]] = _frame_decoder(kind)
    return made


@cache
def _decoder(kind: type[Object]) -> Any:
    return Decoder(kind, kind.__name__)


@cache
def _list_decoder(kind: type[Object]) -> Any:
    return Decoder(ListPage[kind], f"list of {kind.resource.plural}")  # type: ignore[valid-type]


@cache
def _frame_decoder(kind: type[Object]) -> Any:
    return Decoder(Frame[kind], f"watch of {kind.resource.plural}")  # type: ignore[valid-type]


def encode_object(obj: Object) -> bytes:
    """A request body. apiVersion and kind are put in front of what the struct encodes to."""
    body = _encode(obj)
    return _head(type(obj)) + (b"," + body[1:] if len(body) > len(b"{}") else b"}")


@cache
def _head(kind: type[Object]) -> bytes:
    return _encode({"apiVersion": kind.resource.api_version, "kind": kind.resource.kind})[:-1]
