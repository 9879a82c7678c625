"""How many files the agent may hold open. launchd gives 256, and a process without a free one can start no program."""

import resource

from applecart.observe.logs import logger

WANTED = 4096  # two VMs, their logs and streams, and all connections that a door lets in, many times over

log = logger(__name__)


def raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of open files stays as it is", limit=soft, error=str(error))
