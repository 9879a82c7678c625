"""What one context of a kubeconfig means: the `Endpoint` to reach and the `Credentials` to present there.

Only the chosen context, its cluster and its user are looked into: a broken entry that nobody uses hurts nobody. Whatever is
wrong is told as one sentence with file, entry and field (I14). The user's side is `applecart.kube.auth.context`'s work.
"""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.auth.credentials import (
    NO_CREDENTIAL,
    ClientCertificate,
    Credential,
    Credentials,
    FileCredentials,
    FixedCredentials,
)
from applecart.kube.auth.exec_plugin import ExecCredentials, ExecFields, cluster_info, exec_plugin
from applecart.kube.auth.kubeconfig import Kubeconfig, KubeconfigEntry, quoted
from applecart.kube.endpoint import Endpoint, checked_url
from applecart.secrets import Secret

EXEC_EXTENSION = "client.authentication.k8s.io/exec"  # the cluster extension that an exec plugin gets to see
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_.:*-]+")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"


class _UserFields(msgspec.Struct, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecFields | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


def credentials_of(
    entry: KubeconfigEntry, cluster_info: dict[str, Any], clock: Clock, environ: Mapping[str, str]
) -> Credentials:
    """`cluster_info` is what an exec plugin that asks for it is told of the cluster."""
    user = entry.decoded(_UserFields)
    if user.token and (user.username or user.password):
        raise BadInput(f"{entry.place} sets both token and username; keep one of them")
    impersonation = _impersonation(entry, user)
    if user.exec is not None and not (user.token or user.token_file or user.username or user.password):
        plugin = exec_plugin(user.exec, entry, cluster_info)
        return ExecCredentials(plugin, clock, environ, impersonation)
    if user.auth_provider is not None:
        raise BadInput(f"{entry.field('auth-provider')} is not supported; use an exec plugin in the field exec instead")

    def read() -> Credential:
        return _credential(entry, user, impersonation)

    uses_files = user.token_file or user.client_certificate or user.client_key
    return FileCredentials(read, clock) if uses_files else FixedCredentials(read())


def _credential(entry: KubeconfigEntry, user: _UserFields, impersonation: tuple[tuple[str, str], ...]) -> Credential:
    certificate = _certificate(entry, user)
    token: Secret | None = None
    basic: tuple[str, Secret] | None = None
    sources = []
    if user.token_file:
        path = entry.path(user.token_file)
        token = _file_token(path, entry)
        sources.append(f"bearer token ({entry.field('tokenFile')}, file {path})")
    elif user.token:
        token = checked_token(Secret(user.token.strip()), entry.field("token"))
        sources.append(f"bearer token ({entry.field('token')})")
    elif user.username or user.password:
        basic = user.username, Secret(user.password)
        if ":" in user.username or not (user.username + user.password).isprintable():
            raise BadInput(f"{entry.field('username')} or password holds a colon or an unprintable character; correct it")
        sources.append(f"user name and password ({entry.field('username')})")
    if certificate is not None:
        sources.append(f"client certificate ({certificate.chain_from})")
    source = " and ".join(sources) or NO_CREDENTIAL.source
    return Credential(source, token, basic, certificate, impersonation)


def checked_token(token: Secret, written_in: str) -> Secret:
    """The token if it can stand in a header."""
    if not token or not token.reveal().isascii() or not token.reveal().isprintable() or " " in token.reveal():
        raise BadInput(f"{written_in} is no bearer token (empty, or it holds a blank or another odd character); replace it")
    return token


def _file_token(path: Path, entry: KubeconfigEntry) -> Secret:
    field = entry.field("tokenFile")
    try:
        return checked_token(Secret.from_file(path), f"the file {path}, which {field} names,")
    except ValueError:
        raise BadInput(f"{field} is no path; name the file that holds the token") from None


def _certificate(entry: KubeconfigEntry, user: _UserFields) -> ClientCertificate | None:
    chain, chain_from = entry.pem("client-certificate", user.client_certificate, user.client_certificate_data)
    key, key_from = entry.pem("client-key", user.client_key, user.client_key_data)
    if not chain and not key:
        return None
    if not chain or not key:
        missing = "client-certificate-data" if not chain else "client-key-data"
        raise BadInput(f"{entry.field(missing)} is missing; a client certificate needs its certificate and its key")
    return ClientCertificate(chain, Secret(key), chain_from, key_from)


def _impersonation(entry: KubeconfigEntry, user: _UserFields) -> tuple[tuple[str, str], ...]:
    if (user.as_groups or user.as_user_extra or user.as_uid) and not user.as_:
        raise BadInput(f"{entry.field('as')} is missing, but as-groups, as-uid or as-user-extra is set; name the user")
    headers = [("Impersonate-User", user.as_)] if user.as_ else []
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for name, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(name, safe='', errors='replace')}", value) for value in values]
    if not all(value.isascii() and value.isprintable() for _, value in headers):
        raise BadInput(f"{entry.field('as')} or its groups hold a character that cannot stand in a header; correct it")
    return tuple(headers)


class _ContextFields(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _ClusterFields(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Any] = []


class Resolved(msgspec.Struct, frozen=True):
    endpoint: Endpoint
    credentials: Credentials


def resolve(
    config: Kubeconfig,
    clock: Clock,
    environ: Mapping[str, str],
    *,
    context: str = "",
    cluster: str = "",
    user: str = "",
) -> Resolved:
    """The chosen context, or the current one; `cluster` and `user` replace what it names."""
    chosen = _choose(config, context)
    fields = chosen.decoded(_ContextFields)
    cluster_name = cluster or fields.cluster
    if not cluster_name:
        raise BadInput(f"{chosen.place} names no cluster; set its field cluster")
    cluster_entry = _named(config.clusters, cluster_name, None if cluster else chosen, "cluster", config)
    cluster_fields = cluster_entry.decoded(_ClusterFields)
    endpoint = _endpoint(cluster_entry, cluster_fields, _namespace(chosen, fields.namespace))
    user_name = user or fields.user
    if not user_name:
        return Resolved(endpoint, FixedCredentials(NO_CREDENTIAL))
    user_entry = _named(config.users, user_name, None if user else chosen, "user", config)
    info = cluster_info(endpoint, _extension(cluster_fields))
    return Resolved(endpoint, credentials_of(user_entry, info, clock, environ))


def _choose(config: Kubeconfig, context: str) -> KubeconfigEntry:
    known = ", ".join(quoted(name) for name in config.contexts) or "none"
    if context:
        if context not in config.contexts:
            raise BadInput(f"there is no context {quoted(context)} in {config.place}; choose one of: {known}")
        return config.contexts[context]
    current = config.current_context
    if not current:
        raise BadInput(f"{config.place} sets no current-context; set it or pass --context (contexts there: {known})")
    if current not in config.contexts:
        raise BadInput(
            f"field current-context in {config.place} names {quoted(current)}, which is not there; choose one of: {known}"
        )
    return config.contexts[current]


def _named(
    entries: dict[str, KubeconfigEntry], name: str, asked_by: KubeconfigEntry | None, kind: str, config: Kubeconfig
) -> KubeconfigEntry:
    if name in entries:
        return entries[name]
    known = ", ".join(quoted(other) for other in entries) or "none"
    if asked_by is None:
        raise BadInput(f"there is no {kind} {quoted(name)} in {config.place}; choose one of: {known}")
    raise BadInput(f"{asked_by.field(kind)} names {quoted(name)}, which is not there; choose one of: {known}")


def _namespace(entry: KubeconfigEntry, namespace: str) -> str:
    if namespace and not _DNS_LABEL.fullmatch(namespace):
        raise BadInput(f"{entry.field('namespace')} is no namespace name; use lower-case letters, digits and dashes")
    return namespace or "default"


def _endpoint(entry: KubeconfigEntry, fields: _ClusterFields, namespace: str) -> Endpoint:
    server_from = entry.field("server")
    if not fields.server:
        raise BadInput(f"{server_from} is missing; set it to the API server's address, like https://10.0.0.1:6443")
    ca_pem, ca_from = entry.pem("certificate-authority", fields.certificate_authority, fields.certificate_authority_data)
    if fields.insecure_skip_tls_verify and ca_pem:
        raise BadInput(f"{entry.field('insecure-skip-tls-verify')} is true although {ca_from} is set; remove one of them")
    name_from = entry.field("tls-server-name")
    if fields.tls_server_name and not _SERVER_NAME.fullmatch(fields.tls_server_name):
        raise BadInput(f"{name_from} is no host name; write the name that the server's certificate holds")
    proxy_from = entry.field("proxy-url")
    return Endpoint(
        server=checked_url(fields.server, server_from, "https://10.0.0.1:6443"),
        server_from=server_from,
        ca_pem=ca_pem,
        ca_from=ca_from,
        tls_server_name=fields.tls_server_name,
        tls_server_name_from=name_from,
        insecure_skip_tls_verify=fields.insecure_skip_tls_verify,
        proxy_url=checked_url(fields.proxy_url, proxy_from, "http://proxy:3128") if fields.proxy_url else "",
        proxy_from=proxy_from,
        disable_compression=fields.disable_compression,
        namespace=namespace,
    )


def _extension(fields: _ClusterFields) -> Any:
    """The part of the cluster entry that is meant for its exec plugin."""
    for extension in fields.extensions:
        if isinstance(extension, dict) and extension.get("name") == EXEC_EXTENSION:
            return extension.get("extension")
    return None


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
