"""Tart's command line, pure: what is an option, what is a name, and that nothing anybody types is a traceback."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.clock import VirtualClock, run_virtual
from applecart.sim.tart.arguments import VERBS, Arguments, parse
from applecart.sim.tart.refusals import Refused
from tests.sim.tart.sim_tart import in_process

OPTIONS = sorted({option for verb in VERBS.values() for option in verb.flags | verb.values})
WORDS = st.sampled_from(
    [*VERBS, *OPTIONS, "--", "-", "", "golden", "v", "a/b", "..", "ghcr.io/a/b:1", "0", "99999999999999999"]
)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["stop", "v", "-t", "5"], Arguments("stop", ("v",), values={"-t": ["5"]})),
        (["stop", "--timeout=5", "v"], Arguments("stop", ("v",), values={"--timeout": ["5"]})),
        (["run", "v", "--dir", "a:/x", "--dir", "b:/y"], Arguments("run", ("v",), values={"--dir": ["a:/x", "b:/y"]})),
        (["exec", "-it", "v", "ls", "-l"], Arguments("exec", ("v", "ls", "-l"), frozenset({"-i", "-t"}))),
        (["exec", "v", "sh", "-c", "x", "--help"], Arguments("exec", ("v", "sh", "-c", "x", "--help"))),
        (["delete", "--", "-odd"], Arguments("delete", ("-odd",))),
        (["get", "--help"], Arguments("get", wants_help=True)),
        ([], Arguments("help", wants_help=True)),
    ],
)
def test_options_and_names_are_told_apart(argv: list[str], expected: Arguments) -> None:
    assert parse(argv) == expected


@given(st.lists(WORDS | st.text(max_size=5), max_size=6))
def test_whatever_is_typed_is_understood_or_refused_with_64(argv: list[str]) -> None:
    code, text = 0, "Error: "
    try:
        asked = parse(argv)
        assert asked.wants_help or asked.verb in VERBS
    except Refused as refused:
        code, text = refused.code, refused.text
    assert code in (0, 64)
    assert text.startswith("Error: ")


@settings(max_examples=60, deadline=None)
@given(argv=st.lists(WORDS | st.text(max_size=5), min_size=1, max_size=5))
def test_whatever_is_typed_ends_with_an_exit_code(argv: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    async def main() -> None:
        tart = in_process(folder, VirtualClock(asyncio.get_running_loop()))
        tart.rules({"runs_s": 1})
        await tart.out("create", "golden")
        ended = await tart.run(*argv, deadline_s=10**16)
        assert ended.code in (0, 1, 2, 64, 127) or argv[0] == "exec"
        assert ended.code == 0 or ended.err

    run_virtual(main())
