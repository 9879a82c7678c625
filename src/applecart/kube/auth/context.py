"""What one context of a kubeconfig means: the `Endpoint` to reach and the `Credentials` to present there.

Only the chosen context, its cluster and its user are looked into: a broken entry that nobody uses hurts nobody. Whatever is
wrong is told as one sentence with file, entry and field (I14). The user's side is `applecart.kube.auth.user`'s work.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.auth.credentials import NO_CREDENTIAL, Credentials, FixedCredentials
from applecart.kube.auth.exec_protocol import cluster_info
from applecart.kube.auth.kubeconfig import Kubeconfig
from applecart.kube.auth.kubeconfig_entry import KubeconfigEntry, quoted
from applecart.kube.auth.user import credentials_of
from applecart.kube.endpoint import Endpoint, checked_url

EXEC_EXTENSION = "client.authentication.k8s.io/exec"  # the cluster extension that an exec plugin gets to see
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_.:*-]+")


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
