"""Whose cache a Pod's job may read and change. Pure; in doubt nobody's.

Dispatch labels a Pod with its account only once the job is committed to it, and marks jobs that are not proven to come from
the account's own repository. An id that cannot name a folder and a label is no account.
"""

from applecart.api import labels
from applecart.api.pods import Pod
from applecart.kubelet.cache.layout import is_account


def trusted_account(pod: Pod) -> str:
    """Empty when it is nobody's."""
    account = pod.labels.get(labels.RUNNER_ACCOUNT, "")
    is_trusted = pod.labels.get(labels.RUNNER_CACHE_UNTRUSTED, "false") == "false"
    return account if is_trusted and is_account(account) else ""
