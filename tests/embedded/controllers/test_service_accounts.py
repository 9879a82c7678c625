"""What a token Secret lacks, and the token controller at work on the embedded API in memory."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest

from applecart.api.core import OPAQUE, SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import ObjectReference
from applecart.clock import Clock
from applecart.embedded.controllers.service_accounts import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    Lacks,
    Tokens,
    account_named_by,
    encoded,
    index_by_account,
    index_by_secret,
    is_of,
    lacks,
)
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.stages import CA_PEM, api_in_memory, run_alone
from tests.kube.faults import Fault, FaultyTransport, Lost, Refused, Says, always
from tests.virtual_time import elapse

CA = base64.b64encode(CA_PEM).decode()

LONG_S = 600.0
NAMESPACE = "default"


def secret(uid: str = "", *, name: str = "builder", type: str = SERVICE_ACCOUNT_TOKEN, **data: str) -> Secret:
    annotations = {ACCOUNT_NAME: name, **({ACCOUNT_UID: uid} if uid else {})}
    metadata = ObjectMeta(name="token", namespace="ci", annotations=annotations)
    return Secret(metadata=metadata, type=type, data={key.replace("_", "."): value for key, value in data.items()})


def account(uid: str = "u1", name: str = "builder", namespace: str = "ci") -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


@pytest.mark.parametrize(
    ("held", "of", "expected"),
    [
        (secret(), account(), True),
        (secret("u1"), account(), True),
        (secret("u2"), account(), False),
        (secret(), account(name="other"), False),
        (secret(), account(namespace="other"), False),
        (secret(), None, False),
        (secret(type=OPAQUE), account(), False),
    ],
    ids=["by name", "by uid", "a predecessor's", "another's", "another namespace", "nobody's", "no token Secret"],
)
def test_whose_a_secret_is(held: Secret, of: ServiceAccount | None, expected: bool) -> None:
    assert is_of(held, of) is expected


def test_only_a_token_secret_names_an_account() -> None:
    assert account_named_by(secret()) == "builder"
    assert account_named_by(secret(type=OPAQUE)) == ""
    assert account_named_by(Secret(type=SERVICE_ACCOUNT_TOKEN)) == ""


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (secret(), Lacks(token=True, ca=True, namespace=True)),
        (secret(token="dA==", ca_crt=CA, namespace="Y2k="), Lacks()),
        (secret(token="", ca_crt=CA, namespace=""), Lacks(token=True, namespace=True)),
        (secret(token="dA==", ca_crt="b2xk", namespace="Y2k="), Lacks(ca=True)),
    ],
    ids=["everything", "nothing", "what is empty", "an old CA"],
)
def test_what_a_secret_lacks(held: Secret, expected: Lacks) -> None:
    assert lacks(held, CA_PEM) == expected
    assert lacks(held, CA_PEM).is_nothing == (expected == Lacks())


def test_without_a_ca_none_is_lacking() -> None:
    assert not lacks(secret(), b"").ca


def test_values_are_base64() -> None:
    assert encoded(b"ca") == "Y2E="


class Signed:
    """The token controller at work; it remembers for whom it signed."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)
        self.signed: list[tuple[str, ...]] = []

    def sign(self, *of: str) -> str:
        self.signed.append(of)
        return f"signed-for-{'-'.join(of)}"

    async def account(self, name: str = "builder") -> ServiceAccount:
        return await self.client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=NAMESPACE)))

    async def secret(self, name: str = "token", type: str = SERVICE_ACCOUNT_TOKEN) -> Secret:
        annotations = {"kubernetes.io/service-account.name": "builder"}
        metadata = ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations)
        return await self.client.create(Secret(metadata=metadata, type=type))

    async def stored(self, name: str = "token") -> Secret | None:
        try:
            return await self.client.get(Secret, Key(NAMESPACE, name))
        except NotFound:
            return None


@pytest.fixture
async def signed(clock: Clock) -> AsyncIterator[Signed]:
    async with api_in_memory(clock) as (client, _):
        made = Signed(client)
        task = asyncio.create_task(run_alone(Tokens, Client(made.network, clock), CA_PEM, made.sign))
        yield made
        task.cancel()
        await asyncio.wait([task])


async def test_a_token_is_signed_for_the_account_and_the_secret(signed: Signed) -> None:
    account = await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    assert signed.signed == [(NAMESPACE, "builder", account.uid, "token")]


async def test_a_secret_of_another_type_is_not_even_read(signed: Signed) -> None:
    await signed.account()
    opaque = await signed.secret(type=OPAQUE)
    await elapse(LONG_S)
    assert signed.signed == []
    assert await signed.stored() == opaque
    assert all(
        ("fieldSelector", f"type={SERVICE_ACCOUNT_TOKEN}") in call.query
        for call in signed.network.calls
        if "secrets" in call.path
    )


@pytest.mark.parametrize("fault", [Refused(), Lost(), Says(500), Says(409)], ids=repr)
async def test_an_outage_leaves_one_token_and_deletes_none(signed: Signed, fault: Fault) -> None:
    await elapse(10)
    signed.network.plan = always(fault)
    signed.network.sever()
    await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    signed.network.heal()
    await elapse(LONG_S)
    secret = await signed.stored()
    assert secret is not None
    assert set(secret.data) == {"token", "ca.crt", "namespace"}


async def test_a_write_whose_answer_is_lost_is_not_made_twice(signed: Signed) -> None:
    lost = iter([Lost()])

    def lose_first_write(request: Request) -> Fault | None:
        return next(lost, None) if request.method == "PATCH" else None

    signed.network.plan = lose_first_write
    await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    first = await signed.stored()
    assert first is not None
    assert len(signed.signed) == 1
    assert first.data["token"]


async def test_a_secret_is_not_deleted_because_its_account_is_not_in_the_cache_yet(signed: Signed) -> None:
    """A Secret and its account come through different watches; the Secret's may be the faster one."""

    def accounts_are_slow(request: Request) -> Fault | None:
        is_collection = request.path.endswith("/serviceaccounts")
        return Refused() if is_collection and request.method == "GET" else None

    await elapse(10)
    signed.network.plan = accounts_are_slow
    signed.network.sever()
    await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    secret = await signed.stored()
    assert secret is not None
    assert "token" in secret.data


async def test_an_account_that_is_back_in_time_gets_a_secret_of_its_own(signed: Signed) -> None:
    account = await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    signed.network.plan = always(Refused())
    signed.network.sever()
    await signed.client.delete(ServiceAccount, account.key)
    again = await signed.account()
    await elapse(10)
    signed.network.heal()
    await elapse(LONG_S)
    assert await signed.stored() is None
    await signed.secret("young")
    await elapse(LONG_S)
    young = await signed.stored("young")
    assert young is not None
    assert young.annotations["kubernetes.io/service-account.uid"] == again.uid


async def test_a_token_that_somebody_removed_is_made_again(signed: Signed) -> None:
    await signed.account()
    await signed.secret()
    await elapse(LONG_S)
    await signed.client.patch(Secret, Key(NAMESPACE, "token"), Merge({"data": {"token": None, "ca.crt": "b2xk"}}))
    await elapse(LONG_S)
    secret = await signed.stored()
    assert secret is not None
    assert secret.data["token"]
    assert secret.data["ca.crt"] != "b2xk"


def test_indexes() -> None:
    annotations = {"kubernetes.io/service-account.name": "builder"}
    secret = Secret(metadata=ObjectMeta(name="t", namespace="ci", annotations=annotations), type=SERVICE_ACCOUNT_TOKEN)
    assert index_by_account(secret) == ["ci/builder"]
    listed = (ObjectReference(name="a"), ObjectReference(name="b"))
    account = ServiceAccount(metadata=ObjectMeta(name="builder", namespace="ci"), secrets=listed)
    assert index_by_secret(account) == ["ci/a", "ci/b"]
