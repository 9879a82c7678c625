"""Work beside the agent's own, one at a time for each VM: whoever begins something else with a VM's cache stops it first."""

import asyncio
from collections.abc import Coroutine


class Tasks:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._tasks

    def begin(self, uid: str, work: Coroutine[None, None, None], name: str) -> "asyncio.Task[None]":
        def ended(task: "asyncio.Task[None]") -> None:
            if self._tasks.get(uid) is task:  # and not one that began while this one was being stopped
                del self._tasks[uid]

        task = self._tasks[uid] = asyncio.create_task(work, name=name)
        task.add_done_callback(ended)
        return task

    async def stop(self, uid: str) -> None:
        task = self._tasks.pop(uid, None)
        if task is not None:
            await end(task)

    async def aclose(self) -> None:
        for uid in list(self._tasks):
            await self.stop(uid)


async def end(task: "asyncio.Task[None]") -> None:
    """It has ended when this returns, however."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
