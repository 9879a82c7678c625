"""Gives Pods their nodes, as an ordinary client of the API.

Follows Pods, Nodes and RuntimeClasses, decides one Pod at a time (`decide.py`) and binds it by POST. Room is taken before the
POST and given back only when the API surely refused: after a lost answer the same binding is tried again, so no node ever gets
more than it has, whatever the network does. What it cannot place it explains in a condition and an Event and tries again when
something changed that helps. Never evicts a Pod (I7) and never touches one that has a node.
"""

import asyncio
from datetime import datetime

import msgspec

from applecart.api.conditions import POD_SCHEDULED
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node, RuntimeClass
from applecart.api.pods import Binding, ObjectReference, Pod, PodCondition
from applecart.api.reasons import upstream
from applecart.clock import Clock
from applecart.embedded.controllers.scheduler.decide import GATED, Decider, assigned
from applecart.embedded.controllers.scheduler.fit import fits
from applecart.embedded.controllers.scheduler.fleet import Fleet, facts_of
from applecart.embedded.controllers.scheduler.queue import Pending, PendingPod
from applecart.embedded.controllers.scheduler.shape import Wants, amounts_taken, host_ports_of, wants_of
from applecart.errors import ApplecartError, NeverSent
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kube.conditions import FALSE, find, set_condition
from applecart.kube.errors import ApiError, Conflict, NotFound, ServerFault
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer, Tuning
from applecart.kube.patch import Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from applecart.observe.logs import logger

BINDING = "binding"

DEFAULT_SCHEDULER = "default-scheduler"  # what a Pod asks for that names none
ATTEMPT_S = 10.0  # one hung call must not hold up every other Pod for longer (I13); a binding takes milliseconds
GATED_REASON = "SchedulingGated"


log = logger(__name__)


class Answer(msgspec.Struct, frozen=True):
    """What the API said to a binding."""

    node: str = ""  # where the Pod is now, which may be another than we asked for
    is_refused: bool = False
    because: str = ""


async def bind(client: Client, pod: Pod, node: str, *, in_doubt: bool = False) -> Answer:
    """Ask for the node. Never raises for what an API can do.

    `in_doubt` says that an earlier binding to this node got no answer: that this one did nothing then proves nothing.
    """
    # The uid keeps a Pod that took the name meanwhile from being bound by a decision about its predecessor.
    binding = Binding(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        target=ObjectReference(kind="Node", name=node),
    )
    request = Request("POST", object_path(Pod.resource, pod.key, BINDING), body=encode_object(binding))
    try:
        await client.call(request, repeatable=False)
    except Conflict as error:
        return await _after_conflict(client, pod, error)
    except ApplecartError as error:
        is_refused = isinstance(error, NotFound) or (_did_nothing(error) and not in_doubt)
        return Answer(is_refused=is_refused, because=str(error))
    return Answer(node=node)


async def _after_conflict(client: Client, pod: Pod, refusal: Conflict) -> Answer:
    """Somebody bound it, perhaps we did with an answer that got lost; or it is going, gated or another one."""
    try:
        now = await client.get(Pod, pod.key)
    except NotFound:
        return Answer(is_refused=True, because=str(refusal))
    except ApplecartError as error:
        return Answer(because=str(error))
    if now.uid == pod.uid and now.spec.node_name:
        return Answer(node=now.spec.node_name)
    return Answer(is_refused=True, because=str(refusal))


def _did_nothing(error: ApplecartError) -> bool:
    """A server in trouble may have done what it could not answer for; one that says no has not."""
    return isinstance(error, NeverSent) or (isinstance(error, ApiError) and not isinstance(error, ServerFault))


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
    def __init__(
        self,
        client: Client,
        pods: Informer[Pod],
        nodes: Informer[Node],
        runtime_classes: Informer[RuntimeClass],
        recorder: Recorder,
        clock: Clock,
        *,
        name: str = DEFAULT_SCHEDULER,
        packing: bool = False,
    ) -> None:
        self.fleet = Fleet()
        self.pending = Pending()
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._runtime_classes = runtime_classes
        self._recorder = recorder
        self._clock = clock
        self._name = name
        self._decider = Decider(self.fleet, packing=packing)
        self._woken = asyncio.Event()
        runtime_classes.on_change(self._runtime_class_changed)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Place Pods until cancelled."""
        # Before all bound Pods are known every node looks empty.
        for informer in (self._runtime_classes, self._nodes, self._pods):
            await informer.synced()
        while True:
            entry = self.pending.next(self._clock.monotonic())
            if entry is None:
                await self._wait()
                continue
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    await self._try(entry)
            except (ApplecartError, TimeoutError) as error:
                self.pending.failed(entry, self._clock.monotonic())
                because = str(error) or f"the API did not answer within {ATTEMPT_S:g} s"
                log.bind(entry.wants.key).warning("a Pod could not be placed, trying again", because=because)
            except Exception:
                self.pending.failed(entry, self._clock.monotonic())
                log.bind(entry.wants.key).exception("placing a Pod failed unexpectedly, trying again")

    async def _wait(self) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(self.pending.due_in_s(self._clock.monotonic())):
                await self._woken.wait()
        except TimeoutError:
            pass

    # One Pod

    async def _try(self, entry: PendingPod) -> None:
        wants = entry.wants
        pod = self._pods.get(wants.key)
        if pod is None or pod.uid != wants.uid or not self._is_ours_to_place(pod):
            self.pending.done(entry)
        elif wants.is_gated:
            await explain(self._client, pod, GATED_REASON, GATED, self._clock.now())
            self.pending.done(entry)  # whoever lifts a gate changes the Pod, and so puts it back
        elif node := self._node_of_lost_answer(wants):
            await self._bind(pod, entry, node, in_doubt=True)
        elif node := self._take_node(wants):
            await self._bind(pod, entry, node, in_doubt=False)
        else:
            await self._refuse(pod, entry)

    def _node_of_lost_answer(self, wants: Wants) -> str:
        """Where an earlier binding may have put the Pod. A node that is gone needs no care: nothing can be too much there."""
        node = self.fleet.assumed_node(wants.uid)
        if node and self.fleet.node(node) is None:
            self.fleet.refused(wants.uid)
            return ""
        return node

    def _take_node(self, wants: Wants) -> str:
        node = self._decider.decide(wants.shape).node
        if node:
            self.fleet.assume(wants.uid, node, wants.shape)
        return node

    async def _bind(self, pod: Pod, entry: PendingPod, node: str, *, in_doubt: bool) -> None:
        wants = entry.wants
        answer = await bind(self._client, pod, node, in_doubt=in_doubt)
        if answer.node:
            known = self._pods.get(wants.key)
            if known is None or known.uid != wants.uid or known.is_terminal:
                # The watch overtook the answer: the Pod is over, and nothing would ever give its room back.
                freed = self.fleet.forget_pod(wants.uid)
            else:
                freed = self.fleet.observe_bound(wants.uid, answer.node, wants.shape.amounts, wants.shape.ports)
            self._room_appeared(freed)
            if answer.node == node:
                text = assigned(pod.namespace, pod.name, node)
                self._recorder.event(pod, upstream.SCHEDULED.type, upstream.SCHEDULED.name, text)
            self.pending.done(entry)
            return
        if answer.is_refused:
            self._room_appeared(self.fleet.refused(wants.uid))
        self.pending.failed(entry, self._clock.monotonic())
        log.bind(wants.key).warning("a binding did not come about, trying again", node=node, because=answer.because)

    async def _refuse(self, pod: Pod, entry: PendingPod) -> None:
        """Nothing may come between the decision and `waits`: room that appears then would wake nobody."""
        message = self._decider.decide(entry.wants.shape).message
        self.pending.waits(entry, self._clock.monotonic())
        if entry.is_worth_telling(message, self._clock.monotonic()):
            failed = upstream.FAILED_SCHEDULING
            self._recorder.event(pod, failed.type, failed.name, message)
        await explain(self._client, pod, upstream.UNSCHEDULABLE.name, message, self._clock.now())

    # What changed

    def _is_ours_to_place(self, pod: Pod) -> bool:
        is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == self._name
        return is_named and not pod.spec.node_name and pod.is_alive and not self.fleet.is_bound(pod.uid)

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None or pod.is_terminal:
            gone = change.old if pod is None else pod
            freed = self.fleet.forget_pod(gone.uid) if gone is not None else ""
        elif pod.spec.node_name:
            taken = tuple(sorted(amounts_taken(pod, self._runtime_class(pod)).items()))
            freed = self.fleet.observe_bound(pod.uid, pod.spec.node_name, taken, host_ports_of(pod.spec))
        else:
            freed = ""
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
            self.pending.room_appeared(lambda shape: fits(shape, self.fleet.node(node)))
        self._woken.set()


async def run_scheduler(
    client: Client, clock: Clock, *, name: str = DEFAULT_SCHEDULER, packing: bool = False, tuning: Tuning | None = None
) -> None:
    """Schedule until cancelled."""
    tuning = tuning or Tuning()
    pods = Informer(client, Pod, tuning=tuning)
    nodes = Informer(client, Node, tuning=tuning)
    runtime_classes = Informer(client, RuntimeClass, tuning=tuning)
    recorder = Recorder(client, name, clock)
    scheduler = Scheduler(client, pods, nodes, runtime_classes, recorder, clock, name=name, packing=packing)
    async with asyncio.TaskGroup() as group:
        for work in (pods.run(), nodes.run(), runtime_classes.run(), recorder.run(), scheduler.run()):
            group.create_task(work)
