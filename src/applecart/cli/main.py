"""The command `applecart`: which commands exist, and how every one of them ends.

A command's module is imported when it is used, so that `applecart --help` is fast. This is the one place where an error
becomes text for a person: a sentence on stderr and an exit code, 1 for the environment and 2 for input, never a traceback
unless --debug asks for it. Texts pass `redact` on their way out (I9).
"""

import errno
import gc
import os
import sys
import traceback
from typing import Any, NoReturn

import click

from applecart import __version__
from applecart.cli.garbage_collection import collect_rarely
from applecart.cli.lazy_group import LazyGroup
from applecart.errors import ApplecartError, only_one
from applecart.observe.standard_streams import replace_closed_streams
from applecart.secrets import redact

FULL = (errno.ENOSPC, errno.EDQUOT)
INTERRUPTED = 130  # as shells report a command that Ctrl-C ended
COMMANDS = {  # name -> what it does; the module of the same name holds it as `command`
    "api": "run the embedded Kubernetes API, hand out access to it, save it and move it",
    "connection": "say which Kubernetes API is reached, as whom and until when",
    "pods": "take care of Pods that nobody else takes care of",
    "up": "run applecart on this machine until Ctrl-C",
}


@click.group(
    cls=LazyGroup, package="applecart.cli", meanings=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="applecart")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_obj
def cli(settings: dict[str, bool], debug: bool) -> None:
    """A Kubernetes-native fleet manager for macOS CI on Apple silicon."""
    settings["debug"] = debug


def main() -> NoReturn:
    replace_closed_streams()
    collect_rarely()
    code = run(sys.argv[1:])
    gc.freeze()  # what is left goes with the process; looking through it first was a fifth of a short command
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command to its exit code."""
    settings = {"debug": False}
    try:
        result: Any = cli.main(args=arguments, prog_name="applecart", obj=settings, standalone_mode=False)
        sys.stdout.flush()  # a closed pipe must show here, not while the interpreter ends
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as ended:  # click ends so on a closed pipe
        return ended.code if isinstance(ended.code, int) else 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return 1
    except BaseException as error:  # also what is no Exception: a sentence and a code are told whatever ended it
        if settings["debug"]:
            print(redact(traceback.format_exc()), file=sys.stderr, end="")
        return _tell(only_one(error), settings["debug"])
    return result if isinstance(result, int) else 0


def _drop_output() -> None:
    """What is still buffered goes nowhere, quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: BaseException, debug: bool) -> int:
    """Print the sentence and choose the exit code."""
    text = " ".join(redact(str(error)).split())
    if isinstance(error, ApplecartError):
        print(f"applecart: {text}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, OSError) and error.errno in FULL:
        what = error.filename or "what was printed"
        if not error.filename:
            _drop_output()
        print(f"applecart: {what} is not whole ({error.strerror}); free some space", file=sys.stderr)
        return 1
    advice = "" if debug else "; run with --debug for the traceback"
    print(f"applecart: unexpected {type(error).__name__}: {text}{advice}", file=sys.stderr)
    return 1
