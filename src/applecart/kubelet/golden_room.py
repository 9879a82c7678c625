"""One more try after making room: what a full disk refuses is asked for once more, and only once.

The agent's own files need room too, so an error of the disk counts as Tart's own would: it may pass, and the Pod is told.
"""

import errno
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from applecart.observe.logs import logger
from applecart.tart.failures import NoSpace, TartFailed

T = TypeVar("T")
Reclaim = Callable[[str], Awaitable[None]]  # given what needs the room
FULL = (errno.ENOSPC, errno.EDQUOT)

log = logger(__name__)


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failure = NoSpace if error.errno in FULL else TartFailed
        raise failure(f"{what} failed on the host's disk: {error.strerror or error}") from error


async def with_room(what: str, reclaim: Reclaim | None, work: Callable[[], Awaitable[T]]) -> T:
    """Without `reclaim` (garbage collection is off) the first refusal is the answer."""
    try:
        with disk_errors(what):
            return await work()
    except NoSpace:
        if reclaim is None:
            raise
    log.warning("the disk is full; making room, then trying once more", work=what)
    await reclaim(what)
    with disk_errors(what):
        return await work()
