"""Reach the API server from inside a Pod, with the Pod's service account.

Kubernetes names the server in two variables and mounts a token, the CA and the namespace. The kubelet replaces the token
while we run: `FileCredentials` reads it again. No variable means that we are not in a Pod; a variable without the files is a
Pod whose service account is not mounted, which is told as such.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.auth.context import Resolved
from applecart.kube.auth.credentials import Credential, FileCredentials
from applecart.kube.auth.user import checked_token
from applecart.kube.endpoint import Endpoint, checked_url
from applecart.secrets import Secret

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environ: Mapping[str, str]) -> bool:
    return bool(environ.get(HOST_VARIABLE) and environ.get(PORT_VARIABLE))


def in_cluster(environ: Mapping[str, str], clock: Clock, folder: Path = SERVICE_ACCOUNT) -> Resolved:
    """The server and identity of the Pod we run in."""
    token_file = folder / "token"

    def read() -> Credential:
        token = checked_token(Secret.from_file(token_file, "service account token"), f"the file {token_file}")
        return Credential(f"service account token (file {token_file})", token)

    read()  # a Pod without a mounted token is told so at the start, not at the first call
    ca_file = folder / "ca.crt"
    namespace_file = folder / "namespace"
    named_by = f"variables {HOST_VARIABLE} and {PORT_VARIABLE}"
    endpoint = Endpoint(
        server=checked_url(_server(environ), named_by, "10.96.0.1 and 443"),
        server_from=named_by,
        ca_pem=_text(ca_file),
        ca_from=f"the file {ca_file}",
        tls_server_name_from=f"variable {HOST_VARIABLE}",
        namespace=_text(namespace_file).strip() if namespace_file.exists() else "default",
    )
    return Resolved(endpoint, FileCredentials(read, clock))


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ[HOST_VARIABLE].strip(), environ[PORT_VARIABLE].strip()
    try:
        is_ipv6 = ipaddress.ip_address(host).version == 6
    except ValueError:
        is_ipv6 = False
    return f"https://[{host}]:{port}" if is_ipv6 else f"https://{host}:{port}"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"the file {path} cannot be read; mount the service account (automountServiceAccountToken)") from None
