"""How a command that runs until it is told ends: Ctrl-C and a polite kill are the same, an orderly stop with exit code 0."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def stop_signal() -> asyncio.Event:
    """Set by SIGINT and by SIGTERM."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one has ended; the others are given up. One that ended with an error raises it."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
