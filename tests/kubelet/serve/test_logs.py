"""The log of a VM: what Tart printed, then what the guest wrote, followed to its end. On virtual time, on real files."""

import asyncio
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.kubelet.serve.guests import Guest, State
from applecart.kubelet.serve.log_files import MOST_BYTES
from applecart.kubelet.serve.log_options import LogOptions
from applecart.kubelet.serve.logs import LOOK_S, NoLog, open_log
from applecart.secrets import Secret
from tests.kubelet.serve.local_guests import GuestsHere, print_to, say_in
from tests.virtual_time import elapse

PASSWORD = "correct-horse-battery"


@pytest.fixture
def guests(tmp_path: Path) -> GuestsHere:
    return GuestsHere(tmp_path)


@pytest.fixture
def guest(guests: GuestsHere) -> Guest:
    return guests.add()


async def shown(guests: GuestsHere, guest: Guest, clock: Clock, options: LogOptions | None = None) -> bytes:
    log = open_log(guests, guest, options or LogOptions(), clock)
    return b"".join([piece async for piece in log.pieces()])


class Reader:
    """Somebody who follows a log."""

    def __init__(self, guests: GuestsHere, guest: Guest, clock: Clock, options: LogOptions | None = None) -> None:
        self.seen = b""
        self._log = open_log(guests, guest, options or LogOptions(follow=True), clock)
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for piece in self._log.pieces():
            self.seen += piece


def set_time(path: Path, at: datetime) -> None:
    os.utime(path, (at.timestamp(), at.timestamp()))


async def test_the_log_of_the_vm_comes_first_and_that_of_the_guest_after_it(
    guests: GuestsHere, guest: Guest, clock: Clock
) -> None:
    print_to(guest, "tart one\ntart two")
    say_in(guest, "guest one\nguest two\n")
    assert await shown(guests, guest, clock) == b"tart one\ntart two\nguest one\nguest two\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (LogOptions(tail_lines=0), b""),
        (LogOptions(tail_lines=1), b"d\n"),
        (LogOptions(tail_lines=3), b"b\nc\nd\n"),
        (LogOptions(tail_lines=99), b"a\nb\nc\nd\n"),
        (LogOptions(limit_bytes=5), b"a\nb\nc"),
        (LogOptions(limit_bytes=3, tail_lines=2), b"c\nd"),
        (LogOptions(limit_bytes=99), b"a\nb\nc\nd\n"),
    ],
)
async def test_what_is_asked_for_is_shown(
    guests: GuestsHere, guest: Guest, clock: Clock, options: LogOptions, expected: bytes
) -> None:
    print_to(guest, "a\nb\n")
    say_in(guest, "c\nd\n")
    assert await shown(guests, guest, clock, options) == expected


async def test_old_lines_have_the_time_of_their_file(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    now = clock.now()
    print_to(guest, "old\n")
    set_time(guest.vm_log, now - timedelta(hours=2))
    say_in(guest, "new\n")
    set_time(guest.share / "runner.log", now - timedelta(minutes=1))
    assert await shown(guests, guest, clock, LogOptions(since=now - timedelta(hours=1))) == b"new\n"
    assert await shown(guests, guest, clock, LogOptions(timestamps=True)) == (
        b"2025-12-31T22:00:00.000000000Z old\n2025-12-31T23:59:00.000000000Z new\n"
    )


async def test_a_followed_log_shows_new_lines_when_they_are_whole(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    print_to(guest, "first\n")
    reader = Reader(guests, guest, clock)
    await elapse(LOOK_S / 2)
    assert reader.seen == b"first\n"
    say_in(guest, "sec")
    await elapse(LOOK_S)
    assert reader.seen == b"first\n"
    say_in(guest, "ond\n")
    print_to(guest, "third\n")
    await elapse(LOOK_S)
    assert reader.seen == b"first\nthird\nsecond\n"
    reader.task.cancel()


async def test_new_lines_have_the_time_they_were_first_seen(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    reader = Reader(guests, guest, clock, LogOptions(follow=True, timestamps=True))
    await elapse(10.2)
    say_in(guest, "now\n")
    await elapse(LOOK_S)
    assert reader.seen == b"2026-01-01T00:00:10.500000000Z now\n"
    reader.task.cancel()


async def test_a_followed_log_ends_with_its_vm_and_misses_no_last_word(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    reader = Reader(guests, guest, clock)
    await elapse(LOOK_S / 2)
    say_in(guest, "last")
    guests.end(guest)
    await reader.task
    assert reader.seen == b"last\n"


async def test_the_share_may_go_before_the_last_look(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    say_in(guest, "one\n")
    reader = Reader(guests, guest, clock)
    await elapse(LOOK_S * 1.5)
    say_in(guest, "two\n")
    (guest.share / "runner.log").unlink()
    guests.end(guest)
    await reader.task
    assert reader.seen == b"one\ntwo\n"


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_followed_log_ends_when_its_pod_is_gone(
    guests: GuestsHere, guest: Guest, clock: Clock, is_replaced: bool
) -> None:
    reader = Reader(guests, guest, clock)
    await elapse(LOOK_S)
    if is_replaced:
        guests.add(uid="another")
    else:
        guests.remove(guest)
    await reader.task


async def test_the_limit_counts_for_what_is_followed_too(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    print_to(guest, "abc\n")
    reader = Reader(guests, guest, clock, LogOptions(follow=True, limit_bytes=6))
    await elapse(LOOK_S)
    print_to(guest, "defgh\n")
    await reader.task
    assert reader.seen == b"abc\nde"


async def test_a_finished_pod_shows_its_log_as_long_as_it_is_there(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    print_to(guest, "tart\n")
    assert guest.kept_log is not None
    guest.kept_log.write_text("guest\n")
    guests.end(guest)
    ended = guests.find("default", "job")
    assert ended is not None
    assert await shown(guests, ended, clock, LogOptions(follow=True)) == b"tart\nguest\n"
    guest.vm_log.unlink()
    guest.kept_log.unlink()
    with pytest.raises(NoLog, match="no longer on its host"):
        open_log(guests, ended, LogOptions(), clock)


async def test_a_waiting_pod_shows_why_or_what_its_vm_already_printed(guests: GuestsHere, clock: Clock) -> None:
    waiting = guests.add(state=State.WAITING)
    with pytest.raises(NoLog) as refused:
        open_log(guests, waiting, LogOptions(), clock)
    assert str(refused.value) == 'container "vm" in pod "job" is waiting to start: ContainerCreating'
    print_to(waiting, "booting\n")
    assert await shown(guests, waiting, clock) == b"booting\n"


async def test_there_is_no_previous_run_of_a_vm(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    with pytest.raises(NoLog) as refused:
        open_log(guests, guest, LogOptions(previous=True), clock)
    assert str(refused.value) == 'previous terminated container "vm" in pod "job" not found'


async def test_passwords_and_secrets_stay_on_the_host(guests: GuestsHere, guest: Guest, clock: Clock) -> None:
    token = Secret("a-token-that-a-job-printed")
    print_to(guest, "VNC server is running at vnc://:four-random-words-here@127.0.0.1:5901\n")
    say_in(guest, f"curl -H {token.reveal()}\n")
    said = await shown(guests, guest, clock)
    assert said == b"VNC server is running at vnc://:REDACTED@127.0.0.1:5901\ncurl -H ***\n"


@pytest.fixture
def given(tmp_path: Path, guest: Guest) -> Guest:
    """A guest that was given a password and a token."""
    staged = tmp_path / "staged"
    staged.mkdir()
    (staged / "tuist.env").write_text(f"PASSWORD={PASSWORD}\nURL=https://dispatch\n")
    (staged / "sa_token").write_text("a-first-token")
    return msgspec.structs.replace(guest, staged=staged, secret_names=("PASSWORD",))


@pytest.mark.usefixtures("forgotten_secrets")
async def test_what_a_guest_was_given_is_masked_whoever_else_has_forgotten_it(
    guests: GuestsHere, given: Guest, clock: Clock
) -> None:
    """I9: a log that was read after its guest had ended, or after a restart of the agent, showed passwords."""
    say_in(given, f"{PASSWORD} at https://dispatch with a-first-token\n")
    assert await shown(guests, given, clock) == b"*** at https://dispatch with ***\n"


@pytest.mark.usefixtures("forgotten_secrets")
async def test_a_token_that_was_replaced_while_its_log_is_followed_is_masked(
    guests: GuestsHere, given: Guest, clock: Clock
) -> None:
    assert given.staged is not None
    reader = Reader(guests, given, clock)
    await elapse(LOOK_S)
    (given.staged / "sa_token").write_text("a-second-token")
    say_in(given, "a-first-token a-second-token\n")
    await elapse(LOOK_S)
    assert reader.seen == b"*** ***\n"
    reader.task.cancel()


@pytest.mark.usefixtures("forgotten_secrets")
async def test_the_last_words_of_a_guest_are_masked_although_what_it_was_given_is_gone(
    guests: GuestsHere, given: Guest, clock: Clock
) -> None:
    """I9: the last look came half a second after everybody else had let go of the guest's secrets."""
    assert given.staged is not None
    say_in(given, "one\n")
    reader = Reader(guests, given, clock)
    await elapse(LOOK_S * 1.5)
    say_in(given, f"{PASSWORD}\n")
    shutil.rmtree(given.staged)
    guests.end(given)
    await reader.task
    assert reader.seen == b"one\n***\n"


async def test_of_an_ended_guest_the_log_that_was_cleaned_and_kept_is_shown(
    guests: GuestsHere, guest: Guest, clock: Clock
) -> None:
    """Its share may be there for hours, while the API is away, and what the guest was given may be gone."""
    say_in(guest, "as the guest wrote it\n")
    assert guest.kept_log is not None
    guest.kept_log.write_text("as it was kept\n")
    guests.end(guest)
    ended = guests.find("default", "job")
    assert ended is not None
    assert await shown(guests, ended, clock) == b"as it was kept\n"
    guest.kept_log.unlink()  # it could not be kept
    assert await shown(guests, ended, clock) == b"as the guest wrote it\n"


@pytest.mark.parametrize(
    ("state", "never_ran", "why"),
    [
        (State.WAITING, "", 'container "vm" in pod "job" is waiting to start: ContainerCreating'),
        (State.ENDED, "Odd: two containers", 'container "vm" in pod "job" never had a VM: Odd: two containers'),
        (State.ENDED, "", 'the log of container "vm" in pod "job" is no longer on its host'),
    ],
)
async def test_a_log_from_before_a_pod_had_a_vm_is_of_another_pod(
    guests: GuestsHere, clock: Clock, state: State, never_ran: str, why: str
) -> None:
    guest = msgspec.structs.replace(guests.add(state=state), has_begun=False, never_ran=never_ran)
    print_to(guest, "of another\n")
    say_in(guest, "of another\n")
    with pytest.raises(NoLog) as refused:
        open_log(guests, guest, LogOptions(), clock)
    assert str(refused.value) == why


async def test_of_a_log_without_end_whole_lines_of_its_last_part_are_shown(
    guests: GuestsHere, guest: Guest, clock: Clock
) -> None:
    line = b"0123456789" * 100 + b"\n"
    (guest.share / "runner.log").write_bytes(line * (MOST_BYTES // len(line) + 100))
    said = await shown(guests, guest, clock, LogOptions(limit_bytes=len(line) * 2))
    assert said == line * 2
    assert await shown(guests, guest, clock, LogOptions(tail_lines=2)) == line * 2


async def test_a_guest_that_writes_on_and_on_does_not_keep_a_reader_who_wants_what_is_there(
    guests: GuestsHere, guest: Guest, clock: Clock
) -> None:
    say_in(guest, "a\n" * 100)
    log = open_log(guests, guest, LogOptions(), clock)
    count = 0
    async for _ in log.pieces():
        say_in(guest, "more\n")
        count += 1
    assert count == 100
