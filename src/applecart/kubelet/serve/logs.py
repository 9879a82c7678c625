"""What `kubectl logs` shows of a VM: what `tart run` printed, then what the guest wrote into its share.

Read in blocks as fast as the reader takes it, followed by looking again twice a second, ended when the VM has ended. Nothing
is kept in memory but a block and an unfinished line. What leaves is redacted (I9): the reader itself knows what the guest was
given, from before the first line to after the last, whatever the rest of the agent has forgotten by then.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from datetime import datetime

from applecart.clock import Clock
from applecart.kubelet.guest.staged_secrets import StagedSecrets
from applecart.kubelet.serve.guests import GUEST_LOG, Guest, Guests, State
from applecart.kubelet.serve.log_files import LogFile
from applecart.kubelet.serve.log_lines import BLOCK_BYTES, LineCutter, stamped, starts
from applecart.kubelet.serve.log_options import LogOptions
from applecart.observe import published

LOOK_S = 0.5  # between looks at a followed log


class NoLog(Exception):
    """There is nothing to read; the text says why, in a kubelet's words where it has some."""


class GuestLog:
    """The log of one guest, for one reader. Open it with `open_log`."""

    def __init__(
        self,
        files: list[LogFile],
        secrets: StagedSecrets | None,
        options: LogOptions,
        clock: Clock,
        is_ended: Callable[[], bool],
    ) -> None:
        self._files = files
        self._secrets = secrets
        self._cutters = [LineCutter() for _ in files]
        self._options = options
        self._clock = clock
        self._is_ended = is_ended
        self._left_bytes = options.limit_bytes

    def close(self) -> None:
        for file in self._files:
            file.close()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """What to show, as it comes."""
        try:
            async with aclosing(self._lines()) as lines:
                async for line, at in lines:
                    yield self._shown(line, at)
                    if self._left_bytes == 0:
                        return
        finally:
            self.close()

    async def _lines(self) -> AsyncGenerator[tuple[bytes, datetime], None]:
        for index, file in enumerate(self._files):
            at = file.changed_at
            for lines in self._blocks(index, file.size):
                for line in lines:
                    yield line, at
                await asyncio.sleep(0)  # a long log must not hold up the heartbeat of the node
            if not self._options.follow:
                for line in self._cutters[index].rest():
                    yield line, at
        while self._options.follow:
            is_last_look = self._is_ended()  # asked first: what was written before the end is still read
            for index, file in enumerate(self._files):
                file.refresh()
                for lines in self._blocks(index, file.size):
                    for line in lines:
                        yield line, self._clock.now()
                    await asyncio.sleep(0)
                if is_last_look:
                    for line in self._cutters[index].rest():
                        yield line, self._clock.now()
            if is_last_look:
                return
            await asyncio.sleep(LOOK_S)

    def _blocks(self, index: int, end: int) -> Iterator[list[bytes]]:
        file = self._files[index]
        if file.position < file.begin:
            file.position = file.begin
        if 0 < file.position == file.begin:
            self._cutters[index].begin_inside_a_line()
        while file.position < end:
            block = file.read(file.position, min(BLOCK_BYTES, end - file.position))
            if not block:
                return
            file.position += len(block)
            if self._secrets is not None:
                self._secrets.look()  # after the block was read: what it holds, the guest was given before
            yield self._cutters[index].feed(block)

    def _shown(self, line: bytes, at: datetime) -> bytes:
        published("log", line.decode("utf-8", "replace"))
        shown = stamped(line, at) if self._options.timestamps else line
        if self._left_bytes is not None:
            shown = shown[: self._left_bytes]
            self._left_bytes -= len(shown)
        return shown


def open_log(guests: Guests, guest: Guest, options: LogOptions, clock: Clock) -> GuestLog:
    """Raises NoLog."""
    if options.previous:
        raise NoLog(f'previous terminated container "{guest.container}" in pod "{guest.pod}" not found')
    secrets = StagedSecrets(guest.staged, guest.secret_names) if guest.staged is not None else None
    kept = ((guest.kept_log.parent, guest.kept_log.name),) if guest.kept_log and guest.state is State.ENDED else ()
    files = [LogFile((guest.vm_log.parent, guest.vm_log.name)), LogFile(*kept, (guest.share, GUEST_LOG))]
    is_any = [file.refresh() for file in files if guest.has_begun]
    if not any(is_any) and guest.state is not State.RUNNING:
        raise NoLog(_why_none(guest))
    is_wanted = [options.since is None or file.changed_at >= options.since for file in files]
    readable = [(file.read, file.begin, file.size) for file in files]
    for file, start in zip(files, starts(readable, options.tail_lines, is_wanted), strict=True):
        file.position = start
    return GuestLog(files, secrets, options, clock, lambda: has_ended(guests, guest))


def _why_none(guest: Guest) -> str:
    about = f'container "{guest.container}" in pod "{guest.pod}"'
    if guest.state is State.WAITING:
        return f"{about} is waiting to start: {guest.waiting}"
    if not guest.has_begun and guest.never_ran:
        return f"{about} never had a VM: {guest.never_ran}"
    return f"the log of {about} is no longer on its host"


def has_ended(guests: Guests, guest: Guest) -> bool:
    now = guests.find(guest.namespace, guest.pod)
    return now is None or now.uid != guest.uid or now.state is State.ENDED
