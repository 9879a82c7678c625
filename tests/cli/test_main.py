"""How every command ends: a sentence and an exit code, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from applecart.cli.lazy_group import LazyGroup
from applecart.cli.main import COMMANDS, run
from applecart.errors import BadInput, Unreachable
from applecart.secrets import Secret

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Whatever is put in here, the command `connection` raises."""
    errors: list[BaseException] = []

    @click.command()
    def command() -> None:
        raise errors[0]

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    return errors


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (BadInput("field server is missing"), "applecart: field server is missing\n", 2),
        (Unreachable("two\nlines"), "applecart: two lines\n", 1),
        (ExceptionGroup("tasks", [BadInput("only one failed")]), "applecart: only one failed\n", 2),
        (
            KeyError("spec"),
            "applecart: unexpected KeyError: 'spec'; run with --debug for the traceback\n",
            1,
        ),
        (
            ExceptionGroup("tasks", [Unreachable("what a person reads"), BadInput("what followed")]),
            "applecart: what a person reads\n",
            1,
        ),
        (  # a sibling's end hid the bug
            ExceptionGroup("tasks", [Unreachable("what followed"), TypeError("a bug")]),
            "applecart: unexpected TypeError: a bug; run with --debug for the traceback\n",
            1,
        ),
        (
            ExceptionGroup("tasks", [KeyError("one"), KeyError("two")]),
            "applecart: unexpected ExceptionGroup: tasks (2 sub-exceptions); run with --debug for the traceback\n",
            1,
        ),
        (KeyboardInterrupt(), "\n", 130),
        (click.ClickException("no such thing"), "Error: no such thing\n", 1),
        (BrokenPipeError(32, "Broken pipe"), "", 1),
        (
            OSError(28, "No space left on device"),
            "applecart: what was printed is not whole (No space left on device); free some space\n",
            1,
        ),
    ],
)
def test_an_error_is_told_in_one_line_and_an_exit_code(
    ends_with: list[BaseException], capfd: pytest.CaptureFixture[str], error: BaseException, said: str, code: int
) -> None:
    ends_with.append(error)
    assert run(["connection"]) == code
    assert capfd.readouterr().err == said


def test_debug_shows_the_traceback_before_the_sentence(ends_with: list[BaseException], capsys: Printed) -> None:
    ends_with.append(BadInput("field server is missing"))
    assert run(["--debug", "connection"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith("\napplecart: field server is missing\n")


def test_a_secret_in_an_error_is_masked_on_its_way_out(ends_with: list[BaseException], capsys: Printed) -> None:
    secret = Secret("a-token-that-leaked")
    ends_with.append(ValueError(f"bad header {secret.reveal()}"))
    assert run(["--debug", "connection"]) == 1
    assert "a-token-that-leaked" not in capsys.readouterr().err


def test_help_lists_every_command_without_importing_one(capsys: Printed) -> None:
    program = "import sys; from applecart.cli.main import run; run(['--help']); sys.exit('applecart.kube' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0
    for name, meaning in COMMANDS.items():
        assert name in ended.stdout
        assert meaning in " ".join(ended.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Printed) -> None:
    assert run([name, "--help"]) == 0
    assert f"Usage: applecart {name}" in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error(capsys: Printed) -> None:
    assert run(["fly"]) == 2
    assert "No such command 'fly'" in capsys.readouterr().err


def test_the_package_can_be_run_as_a_module() -> None:
    ended = subprocess.run([sys.executable, "-m", "applecart", "--version"], capture_output=True, text=True)
    assert ended.stdout.startswith("applecart, version ")


def test_a_reader_that_leaves_early_causes_no_words() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.executable, "-m", "applecart", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert ended.stderr == ""
    assert ended.returncode == 1


@pytest.mark.parametrize("arguments", [("--help",), ("api", "status", "--help")])
def test_output_on_a_full_disk_is_a_sentence_and_nothing_else(arguments: tuple[str, ...]) -> None:
    """The interpreter tried again to write what was left, and ended with 120."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "applecart", *arguments]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=env)
    assert ended.stderr == "applecart: what was printed is not whole (No space left on device); free some space\n"
    assert ended.returncode == 1


def test_make_help_fits_a_terminal() -> None:
    shown = subprocess.run(["make", "help"], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True).stdout
    assert "make test " in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []
