"""Fills the Secrets that hold tokens of service accounts, and removes them with their account.

A Secret belongs to the account that it names, and once it carries that account's uid to no other. What is filled in is never
overwritten, except a CA that is no longer the cluster's. Signing is handed in: this controller holds no key. A token is written
on the revision that was judged, so that nobody gets two of them. A Secret is deleted only after the API itself said that its
account is not there, and only under its own uid. No value of a Secret is ever logged or put into an error.
"""

import base64
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from applecart.api.core import SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount, secret_data
from applecart.api.meta import Key
from applecart.kube.controller import DONE, Controller, Result
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.patch import Merge
from applecart.observe.logs import logger
from applecart.secrets import Secret as SecretText

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN, CA, NAMESPACE = "token", "ca.crt", "namespace"

BY_ACCOUNT = "account"
BY_SECRET = "secret"

Sign = Callable[[str, str, str, str], str]  # namespace, account, its uid, Secret: the token

WORKERS = 2


log = logger(__name__)


class Lacks(msgspec.Struct, frozen=True):
    """What is to be written into a Secret."""

    token: bool = False
    ca: bool = False
    namespace: bool = False

    @property
    def is_nothing(self) -> bool:
        return not (self.token or self.ca or self.namespace)


def account_named_by(secret: Secret) -> str:
    """The ServiceAccount of a token Secret; empty for every other Secret."""
    return secret.annotations.get(ACCOUNT_NAME, "") if secret.type == SERVICE_ACCOUNT_TOKEN else ""


def is_of(secret: Secret, account: ServiceAccount | None) -> bool:
    """Whether this is the account that the Secret was made for."""
    if account is None:
        return False
    uid = secret.annotations.get(ACCOUNT_UID, "")
    return account.namespace == secret.namespace and account.name == account_named_by(secret) and uid in ("", account.uid)


def lacks(secret: Secret, ca_pem: bytes) -> Lacks:
    return Lacks(
        token=not secret.data.get(TOKEN),
        ca=bool(ca_pem) and secret.data.get(CA) != encoded(ca_pem),
        namespace=not secret.data.get(NAMESPACE),
    )


def encoded(value: bytes) -> str:
    """As the data of a Secret holds it."""
    return base64.b64encode(value).decode()


def index_by_account(secret: Secret) -> list[str]:
    return [f"{secret.namespace}/{account_named_by(secret)}"]


def index_by_secret(account: ServiceAccount) -> list[str]:
    return [f"{account.namespace}/{reference.name}" for reference in account.secrets]


class Tokens:
    def __init__(self, manager: Manager, ca_pem: bytes, sign: Sign) -> None:
        self._client = manager.client
        # Only token Secrets: nothing else is read, so nothing else can be given away.
        of_tokens = f"type={SERVICE_ACCOUNT_TOKEN}"
        self._secrets = manager.informer(Secret, fields=of_tokens, indexes={BY_ACCOUNT: index_by_account})
        self._accounts = manager.informer(ServiceAccount, indexes={BY_SECRET: index_by_secret})
        self._ca_pem = ca_pem
        self._sign = sign
        controller: Controller[Key] = manager.controller("service-account tokens", self.reconcile, workers=WORKERS)
        controller.watch(self._secrets)
        controller.watch(self._accounts, keys_of=self.secrets_of)

    def secrets_of(self, account: ServiceAccount) -> list[Key]:
        return [secret.key for secret in self._secrets.by_index(BY_ACCOUNT, f"{account.namespace}/{account.name}")]

    async def reconcile(self, key: Key) -> Result:
        """`key` is a Secret's."""
        secret = self._secrets.get(key)
        if secret is None:
            await self._forget_references(key)
        elif not secret.is_being_deleted:
            await self._settle(secret)
        return DONE

    async def _settle(self, secret: Secret) -> None:
        account = await self._account_of(secret)
        if account is None:
            with suppress(NotFound, Conflict):
                await self._client.delete(Secret, secret.key, if_uid=secret.uid)
                log.bind(secret.key).info("deleted a token with its service account", account=account_named_by(secret))
            return
        missing = lacks(secret, self._ca_pem)
        if missing.is_nothing:
            return
        # Only the token is a secret; a namespace that were registered as one would be masked in every log.
        data: dict[str, str] = {}
        if missing.ca:
            data[CA] = encoded(self._ca_pem)
        if missing.namespace:
            data[NAMESPACE] = encoded(secret.namespace.encode())
        if missing.token:
            signed = SecretText(self._sign(account.namespace, account.name, account.uid, secret.name))
            data |= secret_data({TOKEN: signed})
        change: dict[str, Any] = {
            "metadata": {"annotations": {ACCOUNT_NAME: account.name, ACCOUNT_UID: account.uid}},
            "data": data,
        }
        with suppress(NotFound):
            await self._client.patch(Secret, secret.key, Merge(change), if_revision=secret.revision)

    async def _account_of(self, secret: Secret) -> ServiceAccount | None:
        """From the cache when it is there; its absence is asked for."""
        key = Key(secret.namespace, account_named_by(secret))
        known = self._accounts.get(key)
        if known is not None and is_of(secret, known):
            return known
        try:
            live = await self._client.get(ServiceAccount, key)
        except NotFound:
            return None
        return live if is_of(secret, live) else None

    async def _forget_references(self, key: Key) -> None:
        """Take a Secret that is gone from the accounts that list it."""
        accounts = self._accounts.by_index(BY_SECRET, f"{key.namespace}/{key.name}")
        if not accounts or await self._exists(key):
            return
        for account in accounts:
            left = [msgspec.to_builtins(reference) for reference in account.secrets if reference.name != key.name]
            with suppress(NotFound):
                await self._client.patch(
                    ServiceAccount, account.key, Merge({"secrets": left or None}), if_revision=account.revision
                )

    async def _exists(self, key: Key) -> bool:
        """A Secret of another type is none of ours, and an account may list it."""
        try:
            await MetadataClient.of(self._client).get(metadata_kind(Secret.resource), key)
        except NotFound:
            return False
        return True
