"""Screens of guests, for people who may look: one relay per Pod that was asked for, as long as it is asked for.

A Pod's label makes its guest capable of it; a request with a token opens the relay; annotations and a state file tell where it
is. A host with a fixed relay port shows one screen at a time, and says so to the second. Everything here can be lost: a new
agent opens again what is still asked for, and the state files of relays that died with an earlier one are removed at its start.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from applecart.api.labels import RUNNER, TRUE_VALUE
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.screen.endpoint import ScreenLog
from applecart.kubelet.screen.listener import Listen, Listening, listen_viewers
from applecart.kubelet.screen.relay import Relay
from applecart.kubelet.screen.request import Request, Shown, annotation_changes, file_stem, request_of, timestamp
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED, Network
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.mac import Mac

log = logger(__name__)


class _Open(msgspec.Struct):
    """A relay, and what it was opened for."""

    pod: str  # for people
    request: Request
    relay: Relay
    listening: Listening
    state: Path
    shown: Shown


class _Known(msgspec.Struct):
    """A guest whose screen may be asked for."""

    screen: ScreenLog
    open: _Open | None = None
    said: str = ""


class Screens:
    def __init__(
        self,
        mac: Mac,
        files: Files,
        clock: Clock,
        *,
        control_dir: Path | None,
        node_ip: str,
        warn: Callable[[Pod, str], None],
        relay_host: str = "",
        relay_port: int = 0,
        allowed: Sequence[Network] = DEFAULT_ALLOWED,
        listen: Listen = listen_viewers,
    ) -> None:
        """Without a control folder nothing is shown. `warn` records an Event; `relay_host` is told to viewers in place of
        the node's address. Raises BadInput when the control folder cannot be made."""
        self._mac = mac
        self._files = files
        self._clock = clock
        self._control = control_dir
        self._node_ip = node_ip
        self._warn = warn
        self._host = relay_host or node_ip
        self._port = relay_port
        self._allowed = tuple(allowed) or DEFAULT_ALLOWED
        self._listen = listen
        self._known: dict[str, _Known] = {}  # by the Pod's uid
        if control_dir is not None:
            self._prepare(control_dir)

    def is_capable(self, pod: Pod) -> bool:
        """Whether its VM is started with a screen; nothing in the guest can make it so."""
        return self._control is not None and pod.metadata.labels.get(RUNNER) == TRUE_VALUE

    async def sync(self, pod: Pod, vm: str, vm_log: Path) -> Mapping[str, str | None] | None:
        """Make it as it is asked for; the changes of annotations that say so, None when there is nothing to write."""
        shown = None
        if self.is_capable(pod):
            shown = await self._sync(pod, vm, vm_log)
        else:
            await self.stop(pod.uid)
        return annotation_changes(pod.metadata.annotations, shown) or None

    async def stop(self, uid: str) -> None:
        """The guest is going. Harmless when there is nothing to stop."""
        known = self._known.pop(uid, None)
        if known is not None:
            known.screen.close()
            await self._close(known)

    async def aclose(self) -> None:
        for uid in list(self._known):
            await self.stop(uid)

    async def _sync(self, pod: Pod, vm: str, vm_log: Path) -> Shown | None:
        known = self._known.get(pod.uid)
        if known is None:
            known = self._known[pod.uid] = _Known(ScreenLog(vm_log))
        endpoint = known.screen.endpoint()  # at every look, so that it is known before the log is cut
        request = self._requested(pod, known)
        if known.open is not None and known.open.request != request:
            await self._close(known)
        if request is None:
            return None
        if known.open is None and endpoint is None:
            self._say(pod, known, f"the screen is not shown: Tart has not yet said where the one of VM {vm} is")
        elif known.open is None:
            await self._open(pod, vm, known, request)
        return known.open.shown if known.open is not None and request.session else None

    def _requested(self, pod: Pod, known: _Known) -> Request | None:
        assert self._control is not None
        try:
            request = request_of(pod, self._control / "requests")
        except BadInput as error:
            self._say(pod, known, f"the screen is not shown: {error}")
            return None
        if request is None:
            known.said = ""
        elif not self._node_ip:
            self._say(pod, known, "the screen is not shown: the node's address is not known; set --node-ip")
            return None
        return request

    async def _open(self, pod: Pod, vm: str, known: _Known, request: Request) -> None:
        other = self._port and next((one.open for one in self._known.values() if one.open is not None), None)
        if other:
            self._say(pod, known, f"the screen is not shown: port {self._port} of the host shows the one of {other.pod}")
            return
        relay = Relay(
            self._mac,
            self._clock,
            log.bind(pod, vm=vm, session=request.session or "operator"),
            token_hash=request.token_hash,
            endpoint=known.screen.endpoint,
            allowed=self._allowed,
        )
        try:
            listening = await self._listen(self._node_ip, self._port, relay.accept)
        except OSError as error:
            why = error.strerror or "taken"
            self._say(pod, known, f"the screen is not shown: port {self._port} of {self._node_ip} cannot be used ({why})")
            return
        if self._known.get(pod.uid) is not known:
            await listening.aclose()  # it was stopped meanwhile
            await relay.aclose()
            return
        shown = Shown(self._host, listening.port, self._clock.now())
        known.open = _Open(str(pod.key), request, relay, listening, self._state_file(pod), shown)
        known.said = ""
        self._write_state(known.open, vm)
        log.info("the screen of a guest can be seen", object=pod, vm=vm, host=shown.host, port=shown.port)

    async def _close(self, known: _Known) -> None:
        gone, known.open = known.open, None
        if gone is not None:
            await gone.listening.aclose()
            await gone.relay.aclose()
            self._remove_state(gone.state)

    def _say(self, pod: Pod, known: _Known, sentence: str) -> None:
        """Once, not at every look."""
        if known.said != sentence:
            known.said = sentence
            self._warn(pod, sentence)

    # The control folder

    def _prepare(self, control: Path) -> None:
        try:
            for folder in (control, control / "requests", control / "state"):
                self._files.make_folder(folder)
            for stale in (control / "state").glob("*.json"):
                self._files.remove(stale)
        except OSError as error:
            raise BadInput(
                f"the folder {control} for screens cannot be used ({error.strerror}); make it for the agent's user, or switch "
                "screens off with an empty --vnc-control-dir"
            ) from None

    def _state_file(self, pod: Pod) -> Path:
        assert self._control is not None
        return self._control / "state" / f"{file_stem(pod)}.json"

    def _write_state(self, opened: _Open, vm: str) -> None:
        shown = opened.shown
        state = {
            "pod": opened.pod,
            "vm_name": vm,
            "relay_url": f"vnc://{_bracketed(shown.host)}:{shown.port}",
            "relay_host": shown.host,
            "relay_port": shown.port,
            "updated_at": timestamp(shown.ready_at),
        }
        try:
            self._files.write(opened.state, msgspec.json.encode(state))
        except OSError as error:
            log.warning("where a screen can be seen was not noted", file=str(opened.state), exc_info=error)

    def _remove_state(self, file: Path) -> None:
        try:
            self._files.remove(file)
        except OSError as error:
            log.warning("a note about a screen stays", file=str(file), exc_info=error)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
