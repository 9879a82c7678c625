"""`tart-kubelet` whose heart beats ten times as fast, so that a minute of its life is measured in six seconds.

    python -m bench.kubelet_hurried FLAGS...

Only what repeats while nothing happens is hurried: renewals, looks at the host, looks at the Node.
"""

from collections.abc import Awaitable, Callable

import msgspec

from applecart.kubelet import main
from applecart.kubelet.node import health, keeper, lease, registration

TIMES = 10


def hurried(look: Callable[[], Awaitable[object]]) -> health.Check:
    check = health.tart_answers(look)
    return msgspec.structs.replace(check, every_s=check.every_s / TIMES, retry_s=check.retry_s / TIMES)


if __name__ == "__main__":
    lease.RENEW_EVERY_S /= TIMES
    health.EVERY_S /= TIMES
    keeper.LOOK_EVERY_S /= TIMES
    keeper.HEARTBEAT_S /= TIMES
    registration.tart_answers = hurried  # type: ignore[attr-defined]
    main.main()
