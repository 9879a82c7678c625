"""The embedded server as a process of its own, for tests that start, use and stop it from different event loops.

    python -m tests.conformance.embedded_program FOLDER PORT [--controllers]

Says its URL when it serves. A line on its input is a command: `compact` forgets what was overwritten and says `compacted`; the
end of its input stops it.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from applecart.clock import SystemClock
from applecart.embedded.controllers.controller_manager import add_controllers
from applecart.embedded.server.core import Settings
from applecart.embedded.server.server import EmbeddedServer
from applecart.kube.client import Client
from applecart.kube.manager import Manager


async def main(folder: Path, port: int, *, has_controllers: bool) -> None:
    settings = Settings(needs_service_accounts=has_controllers)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddedServer(folder, clock, port=port, settings=settings))
        if has_controllers:
            client = Client(server.running.transport(), clock)
            stack.push_async_callback(client.aclose)
            keys = server.running.identity.accounts.keys
            manager = Manager(client)
            add_controllers(manager, server.authority.certificate_pem, keys)
            controllers = asyncio.create_task(manager.run())
            stack.callback(controllers.cancel)
        print(server.url, flush=True)
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            if line.strip() == b"compact":
                await server.running.store.compact(server.running.store.revision)
                print("compacted", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), has_controllers="--controllers" in sys.argv))
