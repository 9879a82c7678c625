"""What the text of a flag means, one small function per sort of value.

Each takes the text as it was written and gives back the value, or raises `ValueError` with the rest of a sentence that begins
with the flag and the text: what is wrong and what to write instead. Reads nothing but its arguments.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from applecart.api import labels as api_labels
from applecart.api import names
from applecart.errors import BadInput

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Bind = tuple[str, int]  # host ("" for all) and port

OFF = ("", "0")  # how a listener is switched off
LARGEST_PORT = 65535
LARGEST_NUMBER = 1 << 31  # the reference reads 32-bit integers; whatever is larger is a slip
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(
    r"((?=.{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_PROVIDER_ID = re.compile(r"[a-z][a-z0-9+.-]*://[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]|")
_IMAGE = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)


def text(written: str) -> str:
    if any(not character.isprintable() for character in written):
        raise ValueError("holds characters that cannot be printed; write plain text")
    return written


def number(at_least: int, at_most: int = LARGEST_NUMBER) -> Callable[[str], int]:
    def check(written: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", written) or not at_least <= int(written) <= at_most:
            raise ValueError(f"is no whole number from {at_least} to {at_most}; write digits only")
        return int(written)

    return check


def one_of(*words: str) -> Callable[[str], str]:
    def check(written: str) -> str:
        if written not in words:
            raise ValueError(f"is not known; use one of {', '.join(word or '(nothing)' for word in words)}")
        return written

    return check


def switch(written: str) -> bool:
    """As Go programs read it: `--flag`, `--flag=true`, `--flag=false`."""
    if written.lower() in ("true", "t", "1"):
        return True
    if written.lower() in ("false", "f", "0"):
        return False
    raise ValueError("is neither true nor false; leave the value away to switch it on")


def node_name_or(hostname: str) -> Callable[[str], str]:
    def check(written: str) -> str:
        name = written or hostname
        if len(name) <= names.LABEL_LIMIT and _NODE_NAME.fullmatch(name):
            return name
        whose = "" if written else f"leaves it to the host's own name, {shown(hostname)}, which "
        raise ValueError(
            f"{whose}is no name for a Node: give one of lower-case letters, digits, '-' and '.', "
            f"beginning and ending with a letter or digit, of at most {names.LABEL_LIMIT} characters (it is also a label)"
        )

    return check


def provider_id(written: str) -> str:
    if not written:
        return ""
    if written.startswith(names.PROVIDER_ID_SCHEME):
        try:
            return str(names.ProviderId.parse(written))
        except BadInput as error:
            raise ValueError(f"cannot be used: {error}") from None
    if not _PROVIDER_ID.fullmatch(written):
        raise ValueError(f"is no provider id; write it like {names.PROVIDER_ID_SCHEME}fr-par-1/<server uuid>")
    return written


def address(written: str) -> str:
    if not written:
        return ""
    try:
        found = ipaddress.ip_address(written)
    except ValueError:
        found = None
    if found is None or getattr(found, "scope_id", None):
        raise ValueError("is no IP address that others can use; write it like 10.0.0.7")
    return str(found)


def networks(written: Sequence[str]) -> tuple[Network, ...]:
    return tuple(_network(each) for each in written)


def _network(written: str) -> Network:
    if "/" in written:
        try:
            return ipaddress.ip_network(written, strict=False)
        except ValueError:
            pass
    raise ValueError(f"holds {shown(written)}, which is no CIDR; write it like 10.0.0.0/8")


def labels(written: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for item in filter(None, map(str.strip, written.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise ValueError(f"holds {shown(item)}, which is no label; write key=value, separated by commas")
        if not is_label(key, value):
            raise ValueError(f"holds {shown(item)}, which Kubernetes does not take as a label; mend its key or value")
        found[key] = value
    return found


def fixed_labels(node_name: str) -> dict[str, str]:
    """Which a Node of ours always has, whatever it was told."""
    return {
        api_labels.NODE_OS: api_labels.DARWIN_VALUE,
        api_labels.NODE_ARCH: api_labels.ARM64_VALUE,
        api_labels.NODE_HOSTNAME: node_name,
        api_labels.RUNTIME: api_labels.TART_RUNTIME_VALUE,
    }


def is_label(key: str, value: str) -> bool:
    """Whether the API takes it: one that it does not take fails the whole write of a Node."""
    return bool(_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value))


def bind(written: str) -> str:
    host_and_port(written)
    return written


def host_and_port(written: str) -> Bind | None:
    """Where to listen; None when nothing is to listen."""
    if written in OFF:
        return None
    host, colon, port = written.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > LARGEST_PORT or not _HOST.fullmatch(host):
        raise ValueError("is no address to listen on; write host:port or :port, with a port up to 65535, or 0 to switch it off")
    return host.strip("[]"), int(port)


def image(written: str) -> str:
    if written and not _IMAGE.fullmatch(written):
        raise ValueError("is no image reference; write it like registry.example.com/team/image:tag or ...@sha256:<64 hex>")
    return written


def folder(home: str) -> Callable[[str], Path]:
    def check(written: str) -> Path:
        if not text(written):
            raise ValueError("is empty; name a folder")
        is_in_home = written == "~" or written.startswith("~/")
        if is_in_home and not home:
            raise ValueError("begins in the home folder, and HOME is not set; write the whole path")
        return Path(home + written[1:] if is_in_home else written).absolute()

    return check


def optional_path(home: str) -> Callable[[str], Path | None]:
    return lambda written: folder(home)(written) if written else None


def shared_folder(home: str) -> Callable[[str], Path]:
    def check(written: str) -> Path:
        found = folder(home)(written)
        if set(":,") & set(str(found)):
            raise ValueError("holds ':' or ',', which Tart would read as an option of a shared folder; name another one")
        return found

    return check


def shown(written: str, most: int = 80) -> str:
    """A text inside a sentence: quoted, and not longer than a person reads."""
    return repr(written if len(written) <= most else f"{written[:most]}...")
