"""Groups of commands: each command lies where its name says, and only the used one is imported."""

import subprocess
import sys

import pytest

from applecart.cli.api import COMMANDS
from applecart.cli.main import run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_api_group_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["api", name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Usage: applecart api {name}" in printed
    assert "Example" in printed


def test_the_groups_help_lists_its_commands_without_importing_one() -> None:
    program = (
        "import sys; from applecart.cli.main import run; run(['api', '--help']); sys.exit('applecart.embedded' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0
    for name, meaning in COMMANDS.items():
        assert f"  {name} " in ended.stdout
        assert meaning in " ".join(ended.stdout.split())


def test_an_unknown_command_of_a_group_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["api", "fly"]) == 2
    assert "No such command 'fly'" in capsys.readouterr().err
