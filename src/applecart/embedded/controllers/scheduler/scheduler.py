"""Gives Pods their nodes, as an ordinary client of the API.

Follows Pods, Nodes and RuntimeClasses, decides one Pod at a time (`decide.py`) and binds it by POST. The next decision waits
until the informers show what the ones before it wrote (`applecart.kube.own_writes`), so no node ever gets more than it has,
however late its watch is. A binding whose outcome is unknown holds its room until that is known, and holds up nobody else. What
it cannot place it explains in a condition and an Event and tries again when something changed that helps. Never evicts a Pod
(I7) and never touches one that has a node.
"""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from functools import partial

from applecart.api.conditions import POD_SCHEDULED
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node, RuntimeClass
from applecart.api.pods import Binding, ObjectReference, Pod, PodCondition
from applecart.api.reasons import upstream
from applecart.embedded.controllers.scheduler.decide import GATED, Decider, Decision, Turn, assigned
from applecart.embedded.controllers.scheduler.fit import fits
from applecart.embedded.controllers.scheduler.fleet import Fleet, facts_of
from applecart.embedded.controllers.scheduler.pod_shape import PodShape, Wants, amounts_taken, host_ports_of, wants_of
from applecart.embedded.controllers.scheduler.queue import Pending, PendingPod, State
from applecart.errors import ApplecartError
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kube.conditions import FALSE, find, set_condition
from applecart.kube.manager import Manager
from applecart.kube.patch import Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from applecart.observe.logs import logger

BINDING = "binding"

DEFAULT_SCHEDULER = "default-scheduler"  # what a Pod asks for that names none
STEPS_OF_A_SHAPE = 50  # beside those that depend on how long it is
STEPS_OF_AN_ATTEMPT = 500  # one that ends as the last one did waits for nobody, and thousands may be due at once
CALL_S = 10.0  # one hung call must not hold up every other Pod for longer (I13); a binding takes milliseconds
GATED_REASON = "SchedulingGated"
# As kube-scheduler calls them, so that dashboards made for it show ours too.
QUEUES = {"active": (State.READY, State.TRIED), "backoff": (State.FAILED,), "unschedulable": (State.WAITING,)}


log = logger(__name__)


async def bind(client: Client, pod: Pod, node: str) -> None:
    # The uid keeps a Pod that took the name meanwhile from being bound by a decision about its predecessor.
    binding = Binding(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        target=ObjectReference(kind="Node", name=node),
    )
    request = Request("POST", object_path(Pod.resource, pod.key, BINDING), body=encode_object(binding))
    await client.call(request, repeatable=False)


async def explain(client: Client, pod: Pod, reason: str, message: str, now: datetime) -> None:
    """Say in the Pod's status why it has no node, unless that stands there already."""
    said = PodCondition(
        type=POD_SCHEDULED,
        status=FALSE,
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation or None,
    )
    conditions = set_condition(pod.status.conditions, said, now)
    if conditions is pod.status.conditions:
        return
    patch = Strategic({"status": {"conditions": [find(conditions, POD_SCHEDULED)]}})
    await client.patch_status(Pod, pod.key, patch, if_revision=pod.revision)


class Scheduler:
    def __init__(self, manager: Manager) -> None:
        self.fleet = Fleet()
        self.pending = Pending()
        self._client = manager.client
        self._pods = manager.informer(Pod)
        self._nodes = manager.informer(Node)
        self._runtime_classes = manager.informer(RuntimeClass)
        self._recorder = manager.recorder(DEFAULT_SCHEDULER)
        self._own_writes = manager.own_writes()
        self._own_writes.read_from(self._pods)
        self._clock = manager.clock
        self._decider = Decider(self.fleet)
        self._roomier: dict[str, None] = {}  # nodes with room that nobody was woken for yet
        self._woken = asyncio.Event()
        self._runtime_classes.on_change(self._runtime_class_changed)
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        pods = manager.metrics.gauge("scheduler_pending_pods", "Pods without a node, by what they wait for.", ["queue"])
        for queue, standings in QUEUES.items():
            pods.of(queue).set_function(partial(self.pending.count, *standings))
        manager.background("scheduler", self.run)

    async def run(self) -> None:
        """Place Pods until cancelled."""
        # Before all bound Pods are known every node looks empty.
        for informer in (self._runtime_classes, self._nodes, self._pods):
            await informer.synced()
        self._roomier = {room.facts.name: None for room in self.fleet}  # who ran before may have been stopped in the middle
        turn = Turn()
        while True:
            if turn.spend(STEPS_OF_AN_ATTEMPT):
                await asyncio.sleep(0)
            self._woken.clear()
            await self._wake_those_who_fit()
            entry = self.pending.next(self._clock.monotonic())
            if entry is None:
                await self._wait()
                continue
            try:
                await self._try(entry)
            except (ApplecartError, TimeoutError) as error:
                self.pending.failed(entry, self._clock.monotonic())
                because = str(error) or f"the API did not answer within {CALL_S:g} s"
                log.bind(entry.wants.key).warning("a Pod could not be placed, trying again", because=because)
            except Exception:
                self.pending.failed(entry, self._clock.monotonic())
                log.bind(entry.wants.key).exception("placing a Pod failed unexpectedly, trying again")
            except asyncio.CancelledError:
                self.pending.failed(entry, self._clock.monotonic())  # whoever runs next, after an election above all, tries it
                raise

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self.pending.due_in_s(self._clock.monotonic())):
                await self._woken.wait()
        except TimeoutError:
            pass

    # One Pod

    async def _try(self, entry: PendingPod) -> None:
        wants = entry.wants
        await self._settle(wants)
        pod = self._pods.get(wants.key)
        if pod is None or pod.uid != wants.uid or not self._is_ours_to_place(pod):
            self.pending.done(entry)
        elif wants.is_gated:
            await self._write(wants, explain(self._client, pod, GATED_REASON, GATED, self._clock.now()))
            self.pending.done(entry)  # whoever lifts a gate changes the Pod, and so puts it back
        else:
            await self._place(pod, entry)

    async def _place(self, pod: Pod, entry: PendingPod) -> None:
        wants, version = entry.wants, self.fleet.version
        decision = await self._decide(wants.shape)
        is_outdated = self.fleet.version != version
        if not decision.node:
            await self._refuse(pod, entry, decision.message, is_outdated=is_outdated)
        elif is_outdated and not fits(wants.shape, self.fleet.node(decision.node)):
            self.pending.failed(entry, self._clock.monotonic())
        else:
            await self._bind(pod, wants, decision.node)
            self.pending.done(entry)

    async def _decide(self, shape: PodShape) -> Decision:
        deciding = self._decider.decide(shape)
        while True:
            try:
                next(deciding)
            except StopIteration as done:
                decision: Decision = done.value
                return decision
            await asyncio.sleep(0)

    async def _settle(self, wants: Wants) -> None:
        """See what was written before, and learn what became of a binding of this Pod whose answer was lost."""
        node = self.fleet.held_node(wants.uid)
        if node and self.fleet.node(node) is None:
            self._own_writes.forget(wants.uid)  # a node that is gone needs no care: nothing can be too much there
        async with asyncio.timeout(CALL_S):
            await self._own_writes.seen(wants.uid)
        self._room_appeared(self.fleet.release(wants.uid))

    async def _bind(self, pod: Pod, wants: Wants, node: str) -> None:
        try:
            await self._write(wants, bind(self._client, pod, node))
        finally:
            if self._own_writes.is_in_doubt(wants.uid):
                known = self._pods.get(wants.key)
                if known is not None and known.uid == wants.uid and not known.is_terminal:
                    self.fleet.hold(wants.uid, node, wants.shape)
                else:  # it went meanwhile, and nothing would ever give its room back
                    self._own_writes.forget(wants.uid)
        self._recorder.event(pod, upstream.SCHEDULED.type, upstream.SCHEDULED.name, assigned(pod.namespace, pod.name, node))

    async def _refuse(self, pod: Pod, entry: PendingPod, message: str, *, is_outdated: bool) -> None:
        """Room that appears meanwhile wakes it at the next look at `_roomier`, when it waits."""
        self.pending.waits(entry, self._clock.monotonic())
        if is_outdated:  # the sentence may be about several moments
            self.pending.failed(entry, self._clock.monotonic())
        if entry.is_worth_telling(message, self._clock.monotonic()):
            self._recorder.event(pod, upstream.FAILED_SCHEDULING.type, upstream.FAILED_SCHEDULING.name, message)
        await self._write(entry.wants, explain(self._client, pod, upstream.UNSCHEDULABLE.name, message, self._clock.now()))

    async def _write(self, wants: Wants, call: Awaitable[None]) -> None:
        async with asyncio.timeout(CALL_S):
            with self._own_writes.noted(wants.uid):
                await call

    # What changed

    def _is_ours_to_place(self, pod: Pod) -> bool:
        is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        return is_named and not pod.spec.node_name and pod.is_alive

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod, freed = change.new, ""
        if pod is None or pod.is_terminal:
            gone = change.old if pod is None else pod
            if gone is not None:
                freed = self.fleet.forget_pod(gone.uid)
                self._own_writes.forget(gone.uid)
        elif pod.spec.node_name:
            taken = tuple(sorted(amounts_taken(pod, self._runtime_class(pod)).items()))
            freed = self.fleet.observe_bound(pod.uid, pod.spec.node_name, taken, host_ports_of(pod.spec))
        if pod is not None and self._is_ours_to_place(pod):
            self.pending.put(wants_of(pod, self._runtime_class(pod)))
            self._woken.set()
        else:
            self.pending.drop(change.key)
        self._room_appeared(freed)

    def _node_changed(self, change: Change[Node]) -> None:
        if change.new is None:
            self.fleet.forget_node(change.key.name)
        elif not self.fleet.observe_node(facts_of(change.new)):
            return
        self.pending.nodes_changed(self._clock.monotonic())
        self._room_appeared(change.key.name)

    def _runtime_class_changed(self, change: Change[RuntimeClass]) -> None:
        """Pods of that class may cost more or less, or be wanted elsewhere, than before."""
        for pod in self._pods:
            if pod.spec.runtime_class_name == change.key.name:
                self._pod_changed(Change(pod.key, pod, pod))

    def _runtime_class(self, pod: Pod) -> RuntimeClass | None:
        name = pod.spec.runtime_class_name
        return self._runtime_classes.get(Key("", name)) if name else None

    def _room_appeared(self, node: str) -> None:
        if node:
            self._roomier[node] = None
        self._woken.set()

    async def _wake_those_who_fit(self) -> None:
        """The first of each shape that fits a node with new room. Others get a turn: thousands of shapes may wait."""
        turn = Turn()
        nodes, self._roomier = self._roomier, {}
        for node in nodes:
            for shape in self.pending.waiting_shapes():
                if turn.spend(STEPS_OF_A_SHAPE + shape.steps):
                    await asyncio.sleep(0)
                if fits(shape, self.fleet.node(node)):
                    self.pending.room_appeared(shape)
