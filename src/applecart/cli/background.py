"""Work that goes on beside a command's own, and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def in_background(*work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run all of it until the block ends; what fails there ends the block with its error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
