"""Starts both halves of the namespace controller on one view of the namespaces."""

import asyncio

from applecart.api.core import ConfigMap, Namespace, ServiceAccount
from applecart.api.meta import Key, Object
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.belongings import DEFAULT_ACCOUNT, ROOT_CA, Belongings
from applecart.embedded.controllers.namespaces.ending import Ending
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.informer import Informer, Tuning
from applecart.kube.workqueue import WorkQueue

WORKERS = 4  # namespaces that end at the same time; one with many Pods must not hold up the others
ENDING_S = 600.0  # a round through a namespace with tens of thousands of objects


async def run_namespaces(client: Client, clock: Clock, ca_pem: bytes, *, tuning: Tuning | None = None) -> None:
    """Work until cancelled."""
    tuning = tuning or Tuning()
    namespaces = Informer(client, Namespace, tuning=tuning)
    accounts = Informer(client, ServiceAccount, fields=f"metadata.name={DEFAULT_ACCOUNT}", tuning=tuning)
    config_maps = Informer(client, ConfigMap, fields=f"metadata.name={ROOT_CA}", tuning=tuning)
    belongings = Belongings(client, namespaces, accounts, config_maps, ca_pem)
    giving: Controller[Key] = Controller("namespace-belongings", belongings.reconcile, WorkQueue(clock), clock, workers=WORKERS)
    giving.watch(namespaces)
    # An account that appeared needs nothing, and is often our own: a look now would not see the ConfigMap on its way.
    giving.watch(accounts, key_of=_namespace_of, when=lambda change: change.new is None)
    giving.watch(config_maps, key_of=_namespace_of)
    ending = Ending(client, namespaces, clock)
    finishing: Controller[Key] = Controller(
        "namespace-ending", ending.reconcile, WorkQueue(clock), clock, workers=WORKERS, deadline_s=ENDING_S
    )
    finishing.watch(namespaces)
    async with asyncio.TaskGroup() as group:
        for work in (namespaces.run(), accounts.run(), config_maps.run(), giving.run(), finishing.run()):
            group.create_task(work)


def _namespace_of(obj: Object) -> Key:
    return Key("", obj.namespace)
