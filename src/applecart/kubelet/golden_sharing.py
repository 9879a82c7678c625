"""One piece of work that many wait for.

Several Pods may need the same pull. It runs once; whoever stops waiting does not stop it for the others, and when nobody waits
any more it is cancelled. A newcomer meanwhile waits until the cancelled one is really over, so the same work never runs twice
at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
News = TypeVar("News")
Listener = Callable[[News], None]


class _Work(Generic[T, News]):
    def __init__(self) -> None:
        self.task: asyncio.Task[T]
        self.listeners: list[Listener[News]] = []
        self.waiting = 0
        self.is_stopping = False

    def tell(self, news: News) -> None:
        for listener in list(self.listeners):
            listener(news)


class Shared(Generic[T, News]):
    def __init__(self) -> None:
        self._works: dict[str, _Work[T, News]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._works

    async def join(
        self, key: str, begin: Callable[[Listener[News]], Awaitable[T]], listener: Listener[News] | None = None
    ) -> T:
        """The result of the work under that key, begun now unless it runs already."""
        while (work := self._works.get(key)) is not None and work.is_stopping and not work.task.done():
            await asyncio.wait([work.task])
        if work is None or work.task.done():
            work = self._start(key, begin)
        work.waiting += 1
        if listener is not None:
            work.listeners.append(listener)
        try:
            return await asyncio.shield(work.task)
        finally:
            work.waiting -= 1
            if listener is not None:
                work.listeners.remove(listener)
            if not work.waiting and not work.task.done():
                work.is_stopping = True
                work.task.cancel()
                await asyncio.wait([work.task])

    def _start(self, key: str, begin: Callable[[Listener[News]], Awaitable[T]]) -> _Work[T, News]:
        work = self._works[key] = _Work[T, News]()

        async def run() -> T:
            return await begin(work.tell)

        def forget(task: asyncio.Task[T]) -> None:
            if self._works.get(key) is work:
                del self._works[key]
            if not task.cancelled():
                task.exception()  # those who waited have it; when nobody did, nobody needs it

        work.task = asyncio.create_task(run(), name=key)
        work.task.add_done_callback(forget)
        return work
