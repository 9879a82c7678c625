"""How many files a process may hold open. launchd gives 256, and a process without a free one can start no program."""

import resource

from applecart.observe.logs import logger

WANTED = 4096  # two VMs, their logs and streams, and all connections that are let in, many times over

log = logger(__name__)


def raise_limit(wanted: int = WANTED) -> int:
    """As far as allowed, and never lowered; the limit that holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        log.warning("the limit of open files stays as it is", limit=soft, error=str(error))
        return soft
    return wanted
