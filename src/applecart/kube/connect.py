"""Find the API server to use and get ready to speak to it.

The order: a kubeconfig that the caller names, the files that KUBECONFIG lists, the Pod we run in, ~/.kube/config. A named
context belongs to a kubeconfig, so it rules the Pod's own identity out. Nothing is sent here: the first call connects.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.auth.context import (
    HOST_VARIABLE,
    PORT_VARIABLE,
    SERVICE_ACCOUNT,
    Resolved,
    in_cluster,
    is_in_cluster,
    resolve,
)
from applecart.kube.auth.kubeconfig import default_path, listed_paths, load
from applecart.kube.http import HttpTransport


def connect(
    kubeconfig: str | None,
    context: str | None,
    clock: Clock,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> HttpTransport:
    """A transport for `Client`. Its `endpoint` says which server it is and which namespace is the default."""
    environ = os.environ if environ is None else environ
    found = find(kubeconfig, context, clock, environ, service_account)
    return HttpTransport(found.endpoint, found.credentials, clock, environ)


def find(
    kubeconfig: str | None, context: str | None, clock: Clock, environ: Mapping[str, str], service_account: Path
) -> Resolved:
    """The server and credentials that the first usable source names."""
    home_file = default_path(Path(environ.get("HOME") or os.path.expanduser("~")))  # "~" for a user without any
    listed = listed_paths(environ)
    if kubeconfig:
        paths = [Path(kubeconfig)]
    elif listed:
        paths = listed
    elif is_in_cluster(environ) and not context:
        return in_cluster(environ, clock, service_account)
    elif os.path.exists(home_file):
        paths = [home_file]
    else:
        raise BadInput(
            "no Kubernetes API is configured: no --kubeconfig was given, KUBECONFIG is not set, "
            f"{HOST_VARIABLE} and {PORT_VARIABLE} are not set (so this is no Pod) "
            f"and {home_file} does not exist; give one of them"
        )
    return resolve(load(paths), clock, environ, context=context or "")
