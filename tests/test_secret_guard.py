"""The guard fails a test that lets a secret out, through each channel, and only such a test."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from applecart.secrets import Secret, redact

PROLOGUE = """
import base64, logging, subprocess, sys, warnings
import pytest
from applecart import observe
from applecart.errors import BadInput, Unreachable
from applecart.observe.logs import logger
from applecart.secrets import Secret, redact

VALUE = "guarded-" + "value"
ENCODED = base64.b64encode(VALUE.encode()).decode()
secret = Secret(VALUE)

class RaisesWhenCollected:
    def __del__(self): raise ValueError(VALUE)
"""

LEAKS = {
    "a log message": "logging.getLogger('x').warning('token is ' + VALUE)",
    "a log argument": "logging.getLogger('x').warning('token is %s', VALUE)",
    "a log argument that is not shown": "logging.getLogger('x').warning('%(a)s', {'a': 1, 'b': VALUE})",
    "a record that no handler shows": "log = logging.getLogger('y'); log.propagate = False; log.error(VALUE)",
    "a base64 form in a log": "logging.getLogger('x').warning(ENCODED)",
    "a structured field": "logger('x').warning('bound', token=VALUE)",
    "a nested structured field": "logger('x').warning('bound', body={'data': [ENCODED]})",
    "a bound field": "logger('x').bind(token=VALUE).warning('bound')",
    "a logged exception": """
    try:
        raise ValueError(VALUE)
    except ValueError:
        logging.getLogger('x').exception('failed')""",
    "the cause of a logged exception": """
    try:
        try:
            raise KeyError(VALUE)
        except KeyError as error:
            raise ValueError('outer') from error
    except ValueError:
        logger('x').exception('failed')""",
    "stdout": "print(VALUE)",
    "stderr": "print(ENCODED, file=sys.stderr)",
    "stdout that the test has read": "print(VALUE); capsys.readouterr()",
    "the argv of a child process": "subprocess.run([sys.executable, '-c', '', VALUE])",
    "a shell command": "subprocess.run('true ' + VALUE, shell=True)",
    "an event": "observe.published('event', 'cannot pull with ' + VALUE)",
    "a condition": "observe.published('condition', ENCODED)",
    "an error the test caught": """
    with pytest.raises(KeyError):
        raise KeyError(VALUE)""",
    "a group of errors the test caught": """
    with pytest.raises(ExceptionGroup):
        raise ExceptionGroup('several', [ValueError(VALUE)])""",
    "an error of ours that was swallowed": """
    try:
        raise Unreachable('no connection to https://x?token=' + VALUE)
    except Unreachable:
        pass""",
    "a note on an error": """
    with pytest.raises(BadInput):
        error = BadInput('wrong')
        error.add_note(VALUE)
        raise error""",
    "a secret that is gone by the end": """
    short_lived = Secret('another-' + 'secret-value')
    print(short_lived.reveal())
    del short_lived""",
    "a text that came before its secret": """
    print('late-' + 'secret-value')
    Secret('late-' + 'secret-value')""",
    "an error that nobody can catch": "RaisesWhenCollected()",
    "a percent-encoded form": """
    Secret('p&ss/' + 'word?1')
    print('https://x/?p=p%26ss%2fword%3f1')""",
}

CLEAN = {
    "a secret that is only held": "assert secret.reveal()",
    "a secret that is logged as itself": "logger('x').warning('have', token=secret); logging.getLogger('x').error(secret)",
    "a redacted text": "print(redact(VALUE)); logging.getLogger('x').warning('%s', redact(VALUE))",
    "a secret in the source line of a traceback": """
    try:
        int(VALUE + 'x' * 0 if False else '?')  # guarded-value
    except ValueError:
        logging.getLogger('x').exception('failed')""",
    "a leak that is shown on purpose": """
    with secret_guard.looking_away():
        print(VALUE); sys.stdout.flush(); capsys.readouterr()""",
    "the environment of a child process": "subprocess.run([sys.executable, '-c', ''], env={'TOKEN': VALUE})",
}


ROOT = Path(__file__).parents[1]
CASES = {**LEAKS, **CLEAN}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every case as a test of its own, run once by another pytest that has the guard; its outcome and what it said."""
    folder = tmp_path_factory.mktemp("guarded")
    tests = [f"def test_{at}(capsys, secret_guard):\n    {body}\n" for at, body in enumerate(CASES.values())]
    (folder / "test_cases.py").write_text("\n".join([PROLOGUE, *tests]))
    plugins = ["-p", "tests.secret_guard", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    quiet = ["-rA", "--show-capture=no", "--disable-warnings"]
    command = [sys.executable, "-m", "pytest", *plugins, *quiet, f"--rootdir={folder}", "-c", "/dev/null", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = {int(at): word for word, at in re.findall(r"^(PASSED|FAILED|ERROR) \S*::test_(\d+)", ran.stdout, re.MULTILINE)}
    assert len(said) == len(CASES), ran.stdout + ran.stderr
    assert "guarded-value" not in ran.stdout + ran.stderr
    return {name: said[at] for at, name in enumerate(CASES)}


@pytest.mark.real_time
@pytest.mark.parametrize("channel", LEAKS)
def test_the_guard_fails_a_test_that_leaks_through(channel: str, outcomes: dict[str, str]) -> None:
    assert outcomes[channel] in ("FAILED", "ERROR")


@pytest.mark.real_time
@pytest.mark.parametrize("behaviour", CLEAN)
def test_the_guard_lets_pass(behaviour: str, outcomes: dict[str, str]) -> None:
    assert outcomes[behaviour] == "PASSED"


@pytest.mark.usefixtures("forgotten_secrets")
def test_a_test_may_see_what_redact_knows_in_production() -> None:
    value = "nobody-holds-" + "this"
    held = Secret(value)
    assert redact(value) == "***"
    del held
    assert redact(value) == value
