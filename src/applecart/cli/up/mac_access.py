"""Who the agents of the simulated Macs are to the API: a ServiceAccount each, with the rights of a real host and no more.

Only for an API that `up` started itself. Written by server-side apply, so that a newer applecart mends what an older one wrote.
"""

from collections.abc import Iterable

from applecart.api import names, node_access
from applecart.api.meta import Object, document
from applecart.api.node_access import ACCOUNT_NAMESPACE, POD_NAMESPACE
from applecart.embedded.auth.user import AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS, User
from applecart.kube.client import Client
from applecart.kube.patch import Apply


def agent_user(machine: str) -> User:
    """As the API knows whoever shows a token of that ServiceAccount."""
    account = names.node_identity(machine)
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{ACCOUNT_NAMESPACE}", AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT_PREFIX}{ACCOUNT_NAMESPACE}:{account}", groups)


def needed(machines: Iterable[str]) -> list[Object]:
    """Accounts, roles and bindings, in the order in which they are made."""
    found: list[Object] = [*node_access.roles([POD_NAMESPACE])]
    for machine in machines:
        account = node_access.account(machine, ACCOUNT_NAMESPACE)
        found += [account, *node_access.bindings(machine, ACCOUNT_NAMESPACE, [POD_NAMESPACE])]
    return found


async def grant(client: Client, machines: Iterable[str]) -> None:
    for each in needed(machines):
        await client.patch(type(each), each.key, Apply(document(each), force=True))
