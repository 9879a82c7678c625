"""How tokens of service accounts come and go, as stories that every token controller tells the same."""

import asyncio
import base64

from applecart.api.authentication import TokenReview, TokenReviewSpec
from applecart.api.core import SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import ObjectReference
from tests.embedded.controllers.scene import WITHIN_S, Scenario, Scene

NAME = "kubernetes.io/service-account.name"
UID = "kubernetes.io/service-account.uid"


async def account(scene: Scene, name: str = "builder", *secrets: str) -> ServiceAccount:
    listed = tuple(ObjectReference(name=secret) for secret in secrets)
    return await scene.client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=scene.namespace), secrets=listed))


async def token_secret(scene: Scene, name: str = "token", of: str = "builder", **annotations: str) -> Secret:
    noted = {NAME: of, **({UID: annotations["uid"]} if "uid" in annotations else {})}
    metadata = ObjectMeta(name=name, namespace=scene.namespace, annotations=noted)
    return await scene.client.create(Secret(metadata=metadata, type=SERVICE_ACCOUNT_TOKEN))


async def filled(scene: Scene, secret: Secret) -> Secret:
    def holds(now: Secret | None) -> bool:
        return now is not None and {"token", "ca.crt", "namespace"} <= set(now.data)

    found = await scene.until(Secret, secret.key, holds, "it is filled")
    assert found is not None
    return found


async def a_token_secret_is_filled_with_a_token_that_works(scene: Scene) -> None:
    owner = await account(scene)
    secret = await filled(scene, await token_secret(scene))
    assert secret.annotations[UID] == owner.uid
    assert _value(secret, "namespace") == scene.namespace
    assert _value(secret, "ca.crt") == scene.ca_pem.decode()
    review = await accepted(scene, _value(secret, "token"))
    assert review.status.user is not None
    assert review.status.user.username == f"system:serviceaccount:{scene.namespace}:builder"


async def accepted(scene: Scene, token: str) -> TokenReview:
    """A real server compares a token with its own cache of Secrets, which hears of a new one a moment after everybody else."""
    said: TokenReview | None = None
    try:
        async with asyncio.timeout(WITHIN_S):
            while True:
                said = await scene.client.create(TokenReview(spec=TokenReviewSpec(token=token)))
                if said.status.authenticated:
                    return said
                await asyncio.sleep(0.1)  # there is no event to wait for
    except TimeoutError:
        raise AssertionError(f"the token is never accepted: {said and said.status.error}") from None


async def what_is_in_a_token_secret_is_kept(scene: Scene) -> None:
    await account(scene)
    metadata = ObjectMeta(name="own", namespace=scene.namespace, annotations={NAME: "builder"})
    made = await scene.client.create(Secret(metadata=metadata, type=SERVICE_ACCOUNT_TOKEN, data={"extra": "eA=="}))
    secret = await filled(scene, made)
    assert _value(secret, "extra") == "x"


async def tokens_go_with_their_account(scene: Scene) -> None:
    owner, other = await account(scene), await account(scene, "other")
    secret = await filled(scene, await token_secret(scene))
    others = await filled(scene, await token_secret(scene, "others", other.name))
    opaque = await scene.client.create(Secret(metadata=ObjectMeta(name="opaque", namespace=scene.namespace)))
    await scene.delete(owner)
    await scene.gone(secret)
    await scene.stays(others, opaque)


async def a_token_of_an_account_that_is_not_there_goes(scene: Scene) -> None:
    await scene.gone(await token_secret(scene, of="nobody"))


async def a_token_of_an_accounts_predecessor_goes(scene: Scene) -> None:
    await account(scene)
    old = await token_secret(scene, uid="00000000-0000-4000-8000-000000000009")
    await scene.gone(old)
    await filled(scene, await token_secret(scene, "young"))


async def a_deleted_token_is_no_longer_listed_by_its_account(scene: Scene) -> None:
    await scene.client.create(Secret(metadata=ObjectMeta(name="opaque", namespace=scene.namespace)))
    await account(scene, "builder", "token", "opaque")
    secret = await filled(scene, await token_secret(scene))
    await scene.delete(secret)

    def is_unlisted(now: ServiceAccount | None) -> bool:
        return now is not None and [one.name for one in now.secrets] == ["opaque"]

    await scene.until(ServiceAccount, Key(scene.namespace, "builder"), is_unlisted, "it lists the other Secret only")


def _value(secret: Secret, name: str) -> str:
    """Not through `Secret.value`: a namespace would count as a secret from then on."""
    return base64.b64decode(secret.data[name]).decode()


SCENARIOS: list[Scenario] = [
    a_token_secret_is_filled_with_a_token_that_works,
    what_is_in_a_token_secret_is_kept,
    tokens_go_with_their_account,
    a_token_of_an_account_that_is_not_there_goes,
    a_token_of_an_accounts_predecessor_goes,
    a_deleted_token_is_no_longer_listed_by_its_account,
]
