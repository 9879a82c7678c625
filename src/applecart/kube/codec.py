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
    """A msgspec decoder whose failures are ours."""

    def __init__(self, kind: Any, what: str) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._what = what

    def decode(self, body: bytes) -> T:
        try:
            return self._decode(body)  # type: ignore[no-any-return]
        except msgspec.MsgspecError as error:
            raise Garbled(f"the API server's {self._what} cannot be read: {error}") from None


def decoder(kind: type[K]) -> Decoder[K]:
    made: Decoder[K] = _decoder(kind)
    return made


def list_decoder(kind: type[K]) -> Decoder[ListPage[K]]:
    made: Decoder[ListPage[K]] = _list_decoder(kind)
    return made


@cache
def _decoder(kind: type[Object]) -> Any:
    return Decoder(kind, kind.__name__)


@cache
def _list_decoder(kind: type[Object]) -> Any:
    return Decoder(ListPage[kind], f"list of {kind.resource.plural}")  # type: ignore[valid-type]


def with_type(obj: K) -> K:
    """The object with apiVersion and kind filled in: the API wants them in a body, and our structs know them."""
    if obj.kind:
        return obj
    return msgspec.structs.replace(obj, api_version=obj.resource.api_version, kind=obj.resource.kind)
