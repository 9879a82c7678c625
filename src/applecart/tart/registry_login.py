"""How Tart signs in at a registry: through its environment, never through its arguments (I9).

A login comes from an image pull Secret of type `kubernetes.io/dockerconfigjson`. Such a document holds the logins of many
registries; only the one for the image's host is taken, so no credential travels to a registry it was not made for.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from applecart.errors import BadInput
from applecart.secrets import Secret

HOST_VARIABLE: Final = "TART_REGISTRY_HOSTNAME"
USER_VARIABLE: Final = "TART_REGISTRY_USERNAME"
PASSWORD_VARIABLE: Final = "TART_REGISTRY_PASSWORD"


class RegistryLogin:
    """A user and a password for one registry host."""

    __slots__ = ("host", "password", "username")

    def __init__(self, host: str, username: str, password: Secret) -> None:
        self.host = host
        self.username = username
        self.password = password

    def environment(self) -> dict[str, str]:
        """For one Tart process; keep it no longer than that."""
        return {HOST_VARIABLE: self.host, USER_VARIABLE: self.username, PASSWORD_VARIABLE: self.password.reveal()}

    def __repr__(self) -> str:
        return f"RegistryLogin({self.host!r}, {self.username!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegistryLogin):
            return NotImplemented
        return (self.host, self.username, self.password) == (other.host, other.username, other.password)

    def __hash__(self) -> int:
        return hash((self.host, self.username))


class _Auth(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""
    auth: str = ""  # base64 of user:password; wins over the two, as Docker has it


class _Config(msgspec.Struct, frozen=True):
    auths: Mapping[str, _Auth] = {}


def login_from_docker_config(data: bytes, host: str, what: str) -> RegistryLogin | None:
    """The login for a registry host, or None when the document has none. `what` names the Secret in a refusal."""
    try:
        config = msgspec.json.decode(data, type=_Config)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Its own message may quote the document, and with it a password.
        raise BadInput(f"{what} is not a Docker configuration: it must be JSON with an object `auths`") from None
    found = next((auth for address, auth in config.auths.items() if _host_of(address) == host), None)
    if found is None:
        return None
    username, password = _unpacked(found.auth, what) if found.auth else (found.username, found.password)
    if not username or not password:
        raise BadInput(f"{what} has no user name or no password for {host}; recreate it with both")
    if "\0" in username + password:  # an environment cannot hold it, and the host would be blamed
        raise BadInput(f"{what} has a NUL in its user name or password for {host}; recreate it without")
    return RegistryLogin(host, username, Secret(password))


def _host_of(address: str) -> str:
    """Docker wrote `https://host/v1/` once and `host` now."""
    return address.removeprefix("https://").removeprefix("http://").partition("/")[0].lower()


def _unpacked(auth: str, what: str) -> tuple[str, str]:
    try:
        username, _, password = base64.b64decode(auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise BadInput(f"{what} has an `auth` that is not base64 of user:password; recreate the Secret") from None
    return username, password
