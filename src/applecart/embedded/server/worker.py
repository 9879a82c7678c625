"""One thread for what would keep the event loop too long.

One, because the interpreter runs only one at a time; between two of its instructions the loop gets its turn. What takes too
long is ended wherever it is, and one user's work waits behind at most so much of another's.
"""

import asyncio
import ctypes
import gc
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal, too_many_requests
from applecart.observe.logs import logger

LARGE_BYTES = 16 << 10  # of JSON: what the worst of this size takes the loop is some 20 ms
MOST_WAITING = 8  # requests of one payer
LONGEST_S = 10.0  # ten times what the largest objects take that anybody needs

_log = logger(__name__)
Result = TypeVar("Result")
_Whose = tuple[str, bool]  # the payer's name, and whether it is a part of a stream


class _TakesTooLong(BaseException):
    """Raised inside the thread, wherever it is."""


class Broken(Exception):
    """Work ended by something that is not even an error."""


class Worker:
    """The thread, and the queue in front of it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer  # of this thread: what it derives from roles and Pods is shared with no other
        self._turn = asyncio.Lock()
        self._turns_of: defaultdict[_Whose, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: Counter[_Whose] = Counter()
        self._begun: asyncio.Task[None] | None = None  # whose turn it is
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="large-requests", daemon=True)
        self._thread.start()

    async def run(self, user: User, work: Callable[[], Result], *, is_stream: bool = False) -> Result:
        """What `work` returns or raises, once it was its turn. Streams that have begun all wait: a refusal would cut them."""
        payer = user.payer
        whose = payer.name, is_stream
        if not is_stream and self._waiting[whose] >= MOST_WAITING and MASTERS not in payer.groups:
            raise too_many_requests("too many large requests, please try again later", 1)
        self._waiting[whose] += 1
        told: asyncio.Future[Result | Refusal] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._in_turn(whose, work, told))
        try:
            result = await told
        except asyncio.CancelledError:
            # Whoever goes away meanwhile does not give its turn to the next one: there is one thread.
            if is_stream and task is not self._begun:
                task.cancel()
            raise
        if isinstance(result, Refusal):
            raise result
        return result

    def close(self) -> None:
        self._jobs.put(None)

    async def _in_turn(self, whose: _Whose, work: Callable[[], Result], told: "asyncio.Future[Result | Refusal]") -> None:
        try:
            async with self._turns_of[whose], self._turn:  # users take turns, however much one of them sends
                self._begun = asyncio.current_task()
                _tell(told.set_result, told, await self._run(work))  # before the next turn, which may use what was made
        except Refusal as refusal:  # as a value: to raise it where nobody waits any more would be told as a defect
            _tell(told.set_result, told, refusal)
        except Exception as error:
            _tell(told.set_exception, told, error)
        finally:
            told.cancel()
            self._waiting[whose] -= 1
            if not self._waiting[whose]:
                del self._waiting[whose], self._turns_of[whose]

    async def _run(self, work: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()

        def job() -> None:
            tell: Callable[[Any], None] = done.set_exception
            told: Any = Broken("what went wrong could not even be noted")
            gc.disable()  # a million values are looked through again and again while they come into being, and all wait for it
            try:
                told = work()
                tell = done.set_result
            except _TakesTooLong:
                raise
            except BaseException as error:  # also a panic in Rust, which is no Exception
                if isinstance(error, Refusal):  # its trace would hold a million values, for the loop to take apart
                    error.__traceback__ = error.__context__ = None
                told = error if isinstance(error, Exception) else Broken(repr(error))
            finally:
                gc.enable()
                loop.call_soon_threadsafe(_tell, tell, done, told)

        if not self._thread.is_alive():
            _log.error("the thread of large requests was gone; there is a new one")
            self._start()
        self._jobs.put(job)
        try:
            return await asyncio.wait_for(done, LONGEST_S)
        except TimeoutError:
            assert self._thread.ident is not None
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(_TakesTooLong))
            self._jobs.put(lambda: None)  # it ends this, should the work have come to its end in this moment
            text = f"the request takes longer than {LONGEST_S:g} s to work out; make it smaller"
            raise Refusal(413, "RequestEntityTooLarge", text) from None

    def _work(self) -> None:
        while True:
            with suppress(_TakesTooLong):
                while (job := self._jobs.get()) is not None:
                    try:
                        job()
                    except Exception:  # without this thread every large request would be told that it takes too long
                        _log.exception("a large request broke off in a way nobody foresaw")
                    del job  # with the request it holds: the next one may be hours away
                return
            gc.enable()  # it may have come just before the job did so


def _tell(tell: Callable[[Any], None], done: "asyncio.Future[Any]", what: Any) -> None:
    """Whoever asked may have stopped waiting."""
    if not done.done():
        tell(what)
