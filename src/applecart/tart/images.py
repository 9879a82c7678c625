"""Image references: what a Pod's `image` means to Tart.

Tart has no default registry and takes a tag or a digest, never both; of a reference with both the digest counts. Everything is
checked here, so that a text which can never be pulled fails its Pod with a sentence instead of a registry's answer, and so that
every part of a reference can be a path inside Tart's store without leaving it. Nothing here looks anything up.
"""

import re
from typing import Final

import msgspec

from applecart.tart.failures import BadImage

DEFAULT_TAG: Final = "latest"  # what registries, Tart and Kubernetes take when none is given
LONGEST_REPOSITORY: Final = 255  # the distribution specification's limit
LONGEST_SHOWN: Final = 200  # of a hostile text in our sentence

_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[0-9]{1,5})?")
_COMPONENT = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
LOCALHOST: Final = "localhost"  # the one registry host without a dot or a port
HIGHEST_PORT: Final = 65535


class ImageRef(msgspec.Struct, frozen=True):
    """A reference with at most a tag and at most a digest; neither means the tag `latest`."""

    host: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """As it was written."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository_name}{tag}{digest}"

    @property
    def repository_name(self) -> str:
        return f"{self.host}/{self.repository}"

    @property
    def digest_name(self) -> str | None:
        """`repository@sha256:...`, when the reference says which content it means."""
        return f"{self.repository_name}@{self.digest}" if self.digest else None

    @property
    def pull_name(self) -> str:
        """What Tart is asked for."""
        return self.digest_name or f"{self.repository_name}:{self.tag or DEFAULT_TAG}"


def parse(text: str) -> ImageRef:
    """Raises `BadImage` with a sentence that says what is wrong and how it should look."""
    if not text:
        raise BadImage("the image is empty: write it as host/repository:tag, such as ghcr.io/acme/macos:15")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise _bad(text, "it holds spaces or characters that no image reference has")
    rest, at, digest = text.partition("@")
    if at and not is_digest(digest):
        raise _bad(text, "what follows the '@' is not sha256: and 64 lower-case hexadecimal digits")
    host, slash, path = rest.partition("/")
    if not slash or not _is_host(host):
        raise _bad(text, "it does not begin with a registry host, and Tart has no default registry; write host/repository:tag")
    repository, colon, tag = path.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise _bad(text, "what follows the last ':' is not a tag: 1 to 128 letters, digits, '_', '.' and '-'")
    if not _HOST.fullmatch(host) or int(host.partition(":")[2] or 1) not in range(1, HIGHEST_PORT + 1):
        raise _bad(text, f"{host} is not a registry host in lower case, with or without a port")
    if not repository or len(repository) > LONGEST_REPOSITORY:
        raise _bad(text, f"its repository must have 1 to {LONGEST_REPOSITORY} characters")
    if repository != repository.lower():
        raise _bad(text, "its repository must be in lower case")
    if not all(_COMPONENT.fullmatch(component) for component in repository.split("/")):
        raise _bad(
            text, "every part of its repository must be lower-case letters and digits, with single '.', '_' or '-' between"
        )
    return ImageRef(host, repository, tag, digest)


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def repository_of(digest_name: str) -> str:
    """Of `repository@sha256:...`."""
    return digest_name.partition("@")[0]


def _is_host(text: str) -> bool:
    return "." in text or ":" in text or text.lower() == LOCALHOST


def _bad(text: str, why: str) -> BadImage:
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    return BadImage(f"{shown!r} is not an image reference: {why}")
