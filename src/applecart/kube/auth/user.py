"""What a user entry of a kubeconfig means: the `Credentials` it describes.

The rules are client-go's where it has them: a data field wins over its file, a token written in the entry wins over an exec
plugin, relative paths start at the file that holds them. Whatever is wrong is told as one sentence with file, entry and field
(I14); no value of a credential field is ever part of it (I9).
"""

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
from applecart.kube.auth.exec_plugin import ExecCredentials
from applecart.kube.auth.exec_protocol import ExecFields, exec_plugin
from applecart.kube.auth.kubeconfig_entry import KubeconfigEntry
from applecart.secrets import Secret


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
