"""Programs inside a guest, as `tart exec` runs them."""

import asyncio
import io
import tarfile
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from tests.sim.tart.sim_tart import SimTart, in_process
from tests.virtual_time import elapse


@pytest.fixture
async def tart(tmp_path: Path, clock: Clock) -> SimTart:
    tart = in_process(tmp_path, clock)
    tart.rules({"disk_used_percent": 91})
    await tart.out("create", "v")
    await tart.boot("v")
    return tart


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        (["true"], 0, "", ""),
        (["/usr/bin/false"], 1, "", ""),
        (["hostname"], 0, "v.local\n", ""),
        (["uname"], 0, "Darwin\n", ""),
        (["/bin/echo", "a", "b"], 0, "a b\n", ""),
        (["/bin/sh", "-c", "echo a; false && echo b; exit 300"], 44, "a\n", ""),
        (["bash", "-lc", "echo oops >&2 && exit"], 0, "", "oops\n"),
        (["sleep", "2"], 0, "", ""),
        (["sleep", "forever"], 1, "", "usage: sleep seconds\n"),
        (["cat", "/nowhere"], 1, "", "cat: /nowhere: No such file or directory\n"),
        (["cat"], 0, "", ""),
        (["flood", "x"], 1, "", "flood: invalid literal for int() with base 10: 'x'\n"),
        (["nothing"], 127, "", "nothing: command not found\n"),
        (["/bin/ps", "-A", "-o", "pcpu=,rss="], 0, "  0.0   9824\n 12.5 204800\n  1.0  51200\n", ""),
    ],
)
async def test_programs_do_what_their_namesakes_do(tart: SimTart, command: list[str], code: int, out: str, err: str) -> None:
    ended = await tart.run("exec", "v", *command)
    assert (ended.code, ended.out.decode(), ended.err.decode()) == (code, out, err)


async def test_df_has_two_columns_of_percents(tart: SimTart) -> None:
    head, line = (await tart.out("exec", "v", "/bin/df", "-k", "/")).splitlines()
    assert head.split()[4:8] == ["Capacity", "iused", "ifree", "%iused"]
    assert [word for word in line.split() if word.endswith("%")] == ["91%", "3%"]


async def test_a_command_ends_with_its_guest(tart: SimTart) -> None:
    working = asyncio.create_task(tart.run("exec", "v", "sleep", "1000"))
    await elapse(10)
    await tart.out("stop", "v")
    ended = await working
    assert (ended.code, b"connection to the guest was lost" in ended.err) == (1, True)


async def test_only_what_is_typed_with_i_reaches_the_guest_and_a_terminal_mixes_its_streams(tart: SimTart) -> None:
    for options, expected in ((["-i"], b"typed"), ([], b"")):
        session = await tart.session("exec", *options, "v", "cat")
        await session.write(b"typed")
        await session.close_stdin()
        assert await session.read_out() == expected
        assert await session.wait() == 0
    session = await tart.session("exec", "-it", "v", "sh", "-c", "echo a; echo b >&2", tty=True)
    assert await session.wait() == 0
    assert await session.read_out() == b"a\r\nb\r\n"
    assert await session.read_err() == b""


async def test_a_window_tells_its_new_size(tart: SimTart) -> None:
    session = await tart.session("exec", "-it", "v", "window", "1", tty=True)
    session.resize(120, 40)
    assert await session.read_out() == b"120x40\r\n"


async def test_what_is_copied_in_is_there_for_the_next_command(tart: SimTart) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("f")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    session = await tart.session("exec", "-i", "v", "tar", "xf", "-", "-C", "/tmp")
    await session.write(packed.getvalue())
    await session.close_stdin()
    assert await session.wait() == 0
    assert await tart.out("exec", "v", "cat", "/tmp/f") == "abc"


async def test_a_command_that_floods_waits_for_its_reader_and_can_be_killed(tart: SimTart) -> None:
    assert isinstance(tart.mac, SimulatedMac)
    session = await tart.session("exec", "v", "flood", "1000000")
    assert len(await session.read_out()) > 0
    await elapse(5)
    await session.kill()
    assert await session.wait() == 137
    assert [process.argv[1] for process in tart.mac.table.all() if "flood" in process.argv] == []


async def test_a_shell_listens_line_by_line_until_it_is_told_to_go(tart: SimTart) -> None:
    session = await tart.session("exec", "-i", "v", "bash")
    await session.write(b"hostname\necho half")
    assert await session.read_out() == b"v.local\n"
    await session.write(b" a line\nexit 3\necho never\n")
    assert await session.read_out() == b"half a line\n"
    assert await session.wait() == 3


async def test_a_shell_at_a_terminal_prompts_echoes_and_ends_with_its_input(tart: SimTart) -> None:
    session = await tart.session("exec", "-it", "v", "zsh", tty=True)
    seen = await session.read_out()
    await session.write(b"whoamo\x7fi\r")
    while not seen.endswith(b"% ") or seen.count(b"% ") < 2:
        seen += await session.read_out()
    assert seen == b"admin@v ~ % whoamo\b \bi\r\nadmin\r\nadmin@v ~ % "
    await session.write(b"\x04")
    assert await session.wait() == 0


@pytest.mark.parametrize(
    ("command", "typed", "code"), [("sleep 1000", b"\x03", 130), ("cat", b"\x03", 130), ("cat", b"\x04", 0)]
)
async def test_a_program_at_a_terminal_ends_as_people_end_it(tart: SimTart, command: str, typed: bytes, code: int) -> None:
    session = await tart.session("exec", "-it", "v", *command.split(), tty=True)
    await session.write(typed)
    assert await session.wait() == code


async def test_a_sleep_at_a_terminal_whose_input_ended_sleeps_on(tart: SimTart) -> None:
    session = await tart.session("exec", "-it", "v", "sleep", "5", tty=True)
    await session.close_stdin()
    assert await session.wait() == 0
