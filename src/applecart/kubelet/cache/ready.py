"""Whether the disk for caches can be used: it is mounted, our folders are on it, and what an earlier agent left is settled.

Asked before every use. Settling happens once and goes on when whoever waits for it cannot wait any longer. It is not done again
when the disk was away for a moment: it would take its files from under what is going on.
"""

import asyncio
from collections.abc import Callable, Coroutine

from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.mount import is_mounted
from applecart.kubelet.cache.tasks import end
from applecart.tart.files import Files
from applecart.tart.mac import Mac


class Ready:
    def __init__(self, layout: Layout, mac: Mac, files: Files, settle: Callable[[], Coroutine[None, None, None]]) -> None:
        self.is_settled = False
        self._layout = layout
        self._mac = mac
        self._files = files
        self._settle = settle
        self._settling: asyncio.Task[None] | None = None

    async def is_ready(self) -> bool:
        if not await is_mounted(self._mac, self._layout.root):
            return False
        for folder in self._layout.missing_folders():
            self._files.make_folder(folder)
        if not self.is_settled:
            if self._settling is None or self._settling.done():
                self._settling = asyncio.create_task(self._settle_once(), name="settle caches")
            await asyncio.shield(self._settling)
        return True

    async def aclose(self) -> None:
        if self._settling is not None:
            await end(self._settling)

    async def _settle_once(self) -> None:
        await self._settle()
        self.is_settled = True
