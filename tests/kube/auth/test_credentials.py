"""A credential stays the same object until it changed, and is read again when the server refuses it."""

import pytest

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.auth.credentials import NO_CREDENTIAL, REREAD_AFTER_S, Credential, FileCredentials, FixedCredentials
from applecart.secrets import Secret
from tests.virtual_time import elapse


class TokenOnDisk:
    """A file that is replaced, and sometimes gone while it is."""

    def __init__(self) -> None:
        self.content: str | None = "token-number-one"
        self.reads = 0

    def read(self) -> Credential:
        self.reads += 1
        if self.content is None:
            raise BadInput("the token file is gone")
        return Credential("a token file", Secret(self.content))


async def test_a_fixed_credential_never_changes_even_when_refused() -> None:
    source = FixedCredentials(NO_CREDENTIAL)
    assert await source.get(rejected=await source.get()) is NO_CREDENTIAL


async def test_within_a_minute_the_file_is_read_once(clock: Clock) -> None:
    disk = TokenOnDisk()
    source = FileCredentials(disk.read, clock)
    first = await source.get()
    await elapse(REREAD_AFTER_S - 0.1)
    assert await source.get() is first
    assert disk.reads == 1


async def test_a_file_that_did_not_change_leaves_the_credential_the_same_object(clock: Clock) -> None:
    disk = TokenOnDisk()
    source = FileCredentials(disk.read, clock)
    first = await source.get()
    await elapse(REREAD_AFTER_S)
    assert await source.get() is first
    assert disk.reads == 2


async def test_a_refused_credential_is_read_again_at_once(clock: Clock) -> None:
    disk = TokenOnDisk()
    source = FileCredentials(disk.read, clock)
    refused = await source.get()
    disk.content = "token-number-two"
    fresh = await source.get(rejected=refused)
    assert fresh.authorization() == "Bearer token-number-two"


async def test_a_refusal_of_an_older_credential_does_not_cause_another_read(clock: Clock) -> None:
    """A hundred calls that were refused together: the first refresh serves them all."""
    disk = TokenOnDisk()
    source = FileCredentials(disk.read, clock)
    refused = await source.get()
    disk.content = "token-number-two"
    answers = [await source.get(rejected=refused) for _ in range(100)]
    assert disk.reads == 2
    assert len({id(answer) for answer in answers}) == 1


async def test_a_file_that_is_gone_for_a_while_leaves_the_last_token_in_use(clock: Clock) -> None:
    disk = TokenOnDisk()
    source = FileCredentials(disk.read, clock)
    first = await source.get()
    disk.content = None
    await elapse(REREAD_AFTER_S)
    assert await source.get() is first
    disk.content = "token-number-two"
    await elapse(REREAD_AFTER_S)
    assert (await source.get()).authorization() == "Bearer token-number-two"


async def test_a_file_that_was_never_there_is_an_error(clock: Clock) -> None:
    disk = TokenOnDisk()
    disk.content = None
    with pytest.raises(BadInput, match="the token file is gone"):
        await FileCredentials(disk.read, clock).get()


def test_a_credential_shows_no_secret() -> None:
    shown = repr(Credential("a test", Secret("super-secret-token"), ("robot", Secret("super-secret-password"))))
    assert "super-secret" not in shown
