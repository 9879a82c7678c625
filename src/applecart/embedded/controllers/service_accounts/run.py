"""Starts the token controller with all that it needs."""

import asyncio

from applecart.api.core import SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.controllers.service_accounts.tokens import (
    BY_ACCOUNT,
    BY_SECRET,
    Sign,
    Tokens,
    index_by_account,
    index_by_secret,
)
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.informer import Informer, Tuning
from applecart.kube.workqueue import WorkQueue

WORKERS = 2


async def run_tokens(client: Client, clock: Clock, ca_pem: bytes, sign: Sign, *, tuning: Tuning | None = None) -> None:
    """Work until cancelled."""
    tuning = tuning or Tuning()
    # Only token Secrets: nothing else is read, so nothing else can be given away.
    secrets = Informer(
        client, Secret, fields=f"type={SERVICE_ACCOUNT_TOKEN}", indexes={BY_ACCOUNT: index_by_account}, tuning=tuning
    )
    accounts = Informer(client, ServiceAccount, indexes={BY_SECRET: index_by_secret}, tuning=tuning)
    tokens = Tokens(client, secrets, accounts, ca_pem, sign)
    controller: Controller[Key] = Controller("tokens", tokens.reconcile, WorkQueue(clock), clock, workers=WORKERS)
    controller.watch(secrets)
    controller.watch(accounts, keys_of=tokens.secrets_of)
    async with asyncio.TaskGroup() as group:
        for work in (secrets.run(), accounts.run(), controller.run()):
            group.create_task(work)
