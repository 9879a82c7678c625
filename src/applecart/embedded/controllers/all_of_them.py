"""Our small controllers on an API that has none: the embedded one, or a bare kube-apiserver.

Imported only where they run, because they are a third of what a start has to read.
"""

from applecart.clock import Clock
from applecart.embedded.auth.token_claims import Bound, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.expiry.sweep import run_expiry
from applecart.embedded.controllers.node_lifecycle.run import run_node_lifecycle
from applecart.embedded.controllers.pod_garbage.run import run_pod_garbage
from applecart.embedded.controllers.service_accounts.tokens import Sign
from applecart.embedded.controllers.small_controllers import Small, SmallControllers
from applecart.kube.client import Client

TOKENS = "service-account tokens"


def small_controllers(
    client: Client,
    clock: Clock,
    ca_pem: bytes,
    keys: TokenKeys | None,
    *,
    ends_events: bool = False,
    with_scheduler: bool = True,
) -> SmallControllers:
    """All of them, ready to run. Without keys no token can be signed, so that one is left out.

    `ends_events`: Events end by our hand; a real server has them ended by its database. `with_scheduler`: no other one is
    at work.
    """
    more = [
        Small("node lifecycle", lambda: run_node_lifecycle(client, clock)),
        Small("pod garbage", lambda: run_pod_garbage(client, clock)),
        Small("expiry", lambda: run_expiry(client, clock, with_events=ends_events)),
    ]
    small = SmallControllers(client, clock, ca_pem, signer(keys), more=more, with_scheduler=with_scheduler)
    if keys is None:
        small.controllers = [one for one in small.controllers if one.name != TOKENS]
    return small


def signer(keys: TokenKeys | None) -> Sign:
    """Tokens for the Secrets that ask for one; they are good as long as their Secret holds them."""

    def sign(namespace: str, account: str, account_uid: str, secret: str, secret_uid: str) -> str:
        assert keys is not None
        return keys.sign(legacy_claims_for(Bound(account, account_uid), namespace, secret))

    return sign
