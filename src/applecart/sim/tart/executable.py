"""`applecart-sim-tart`: the simulated Tart as a program, for whatever runs the Tart CLI.

All its state is under $TART_HOME. `tart run` is a real process that lives as long as its guest. Imports stay light: the agent
starts it for every command.
"""

import asyncio
import os
import signal
import sys

from applecart.clock import SystemClock
from applecart.sim.tart.host_facts import IN_A_HURRY
from applecart.sim.tart.interpreter import tart
from applecart.sim.tart.refusals import BROKEN_PIPE, Refused
from applecart.sim.tart.this_kernel import TheseStreams, ThisKernel, home_of

INTERRUPTED = 130


def main() -> None:
    """Ends the process itself: a read of stdin that nobody needs any more must not hold it."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = asyncio.run(_main())
    except Refused as refused:
        sys.stderr.write(refused.text + "\n")
        code = refused.code
    except BrokenPipeError:
        code = BROKEN_PIPE
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.stderr.flush()
    os._exit(code)


async def _main() -> int:
    home = home_of(os.environ)
    return await tart(sys.argv[1:], os.environ, TheseStreams(), ThisKernel(home), SystemClock(), IN_A_HURRY, home)


if __name__ == "__main__":
    main()
