"""Our server as a program, for the rows that compare it: what `applecart api start` does, without its words.

    python -m bench.embedded_server DATA [PROFILE]      prints its URL when it serves; serves until its standard input ends

With PROFILE it writes what the server spent its time on, as cProfile does, to that file when it ends.
"""

import asyncio
import cProfile
import sys
from pathlib import Path

from applecart.clock import SystemClock
from applecart.embedded.server.server import EmbeddedServer


async def main(data: Path) -> None:
    async with EmbeddedServer(data, SystemClock()) as server:
        print(server.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    profile = cProfile.Profile() if len(sys.argv) > 2 else None
    if profile:
        profile.runcall(asyncio.run, main(Path(sys.argv[1])))
        profile.dump_stats(sys.argv[2])
    else:
        asyncio.run(main(Path(sys.argv[1])))
