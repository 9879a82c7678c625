"""Screens of guests, for people who may look: one relay per Pod that was asked for, as long as it is asked for.

A Pod's label makes its guest capable of it; a request with a token opens the relay; annotations and a state file tell where it
is. A host with a fixed relay port shows one screen at a time, and says so to the second. Everything here can be lost: a new
agent opens again what is still asked for, and the state files of relays that died with an earlier one are removed at its start.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from applecart.api.labels import RUNNER, TRUE_VALUE
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.screen.control_folder import ControlFolder
from applecart.kubelet.screen.endpoint import ScreenLog
from applecart.kubelet.screen.listener import Listen, Listening, listen_viewers
from applecart.kubelet.screen.relay import Relay
from applecart.kubelet.screen.request import Request, Shown, annotation_changes, request_of
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED, Network
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.mac import Mac

log = logger(__name__)


class _Open(msgspec.Struct):
    """A relay, and what it was opened for."""

    pod: Key
    request: Request
    relay: Relay
    listening: Listening
    control: ControlFolder
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
        self._clock = clock
        self._control = ControlFolder(control_dir, files) if control_dir is not None else None
        self._node_ip = node_ip
        self._warn = warn
        self._host = relay_host or node_ip
        self._port = relay_port
        self._allowed = tuple(allowed) or DEFAULT_ALLOWED
        self._listen = listen
        self._known: dict[str, _Known] = {}  # by the Pod's uid

    def is_capable(self, pod: Pod) -> bool:
        """Whether its VM is started with a screen; nothing in the guest can make it so."""
        return self._control is not None and pod.metadata.labels.get(RUNNER) == TRUE_VALUE

    async def sync(self, pod: Pod, vm: str, vm_log: Path) -> Mapping[str, str | None] | None:
        """Make it as it is asked for; the changes of annotations that say so, None when there is nothing to write."""
        shown = None
        if self._control is not None and self.is_capable(pod):
            shown = await self._sync(pod, vm, vm_log, self._control)
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

    async def _sync(self, pod: Pod, vm: str, vm_log: Path, control: ControlFolder) -> Shown | None:
        known = self._known.get(pod.uid)
        if known is None:
            known = self._known[pod.uid] = _Known(ScreenLog(vm_log))
        endpoint = known.screen.endpoint()  # at every look, so that it is known before the log is cut
        request = self._requested(pod, known, control)
        if known.open is not None and known.open.request != request:
            await self._close(known)
        if request is None:
            return None
        if known.open is None and endpoint is None:
            self._say(pod, known, f"the screen is not shown: Tart has not yet said where the one of VM {vm} is")
        elif known.open is None:
            await self._open(pod, vm, known, request, control)
        return known.open.shown if known.open is not None and request.session else None

    def _requested(self, pod: Pod, known: _Known, control: ControlFolder) -> Request | None:
        try:
            request = request_of(pod, control.requests)
        except BadInput as error:
            self._say(pod, known, f"the screen is not shown: {error}")
            return None
        if request is None:
            known.said = ""
        elif not self._node_ip:
            self._say(pod, known, "the screen is not shown: the node's address is not known; set --node-ip")
            return None
        return request

    async def _open(self, pod: Pod, vm: str, known: _Known, request: Request, control: ControlFolder) -> None:
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
        known.open = _Open(pod.key, request, relay, listening, control, shown)
        known.said = ""
        control.note(pod.key, vm, shown)
        log.info("the screen of a guest can be seen", object=pod, vm=vm, host=shown.host, port=shown.port)

    async def _close(self, known: _Known) -> None:
        gone, known.open = known.open, None
        if gone is not None:
            await gone.listening.aclose()
            await gone.relay.aclose()
            gone.control.forget(gone.pod)

    def _say(self, pod: Pod, known: _Known, sentence: str) -> None:
        """Once, not at every look."""
        if known.said != sentence:
            known.said = sentence
            self._warn(pod, sentence)
