"""Runs an embedded server until it is told to stop: `python serve.py FOLDER`.

A process of its own, so that a test's loop and the programs it starts never wait for each other. Prints one line when it
answers; ends when its standard input closes, so it never outlives the test session that started it.
"""

import asyncio
import sys
from pathlib import Path

from applecart.clock import SystemClock
from applecart.embedded.server.core import Settings
from applecart.embedded.server.server import EmbeddedServer


async def serve(folder: Path) -> None:
    # Owners of fields from the first write on, as a real server keeps them: an apply over a create conflicts the same way.
    async with EmbeddedServer(folder, SystemClock(), settings=Settings(tracks_all_fields=True)) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
