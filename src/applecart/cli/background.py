"""Work that goes on beside a command's own, and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from applecart.kube.background import uncancelled

Work = Callable[[], Coroutine[Any, Any, object]]


@asynccontextmanager
async def in_background(*work: Work) -> AsyncIterator[None]:
    """Run all of it until the block ends; what fails there ends the block with its error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(uncancelled(one())) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
