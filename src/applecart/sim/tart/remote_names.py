"""How Tart reads the name of an image in a registry. Whatever is not one is taken for the name of a local VM."""

import re

import msgspec

_REMOTE = re.compile(
    r"(?P<host>[A-Za-z0-9.-]+(:\d+)?)/(?P<namespace>[a-z0-9_-][a-z0-9._-]*(/[a-z0-9_-][a-z0-9._-]*)*)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)


class RemoteName(msgspec.Struct, frozen=True):
    host: str
    namespace: str
    reference: str  # a tag, or a digest

    @property
    def repository(self) -> str:
        return f"{self.host}/{self.namespace}"

    @property
    def is_digest(self) -> bool:
        return self.reference.startswith("sha256:")

    def at(self, digest: str) -> "RemoteName":
        return RemoteName(self.host, self.namespace, digest)

    def __str__(self) -> str:
        return f"{self.repository}{'@' if self.is_digest else ':'}{self.reference}"


def remote_name(text: str) -> RemoteName | None:
    match = _REMOTE.fullmatch(text)
    if not match:
        return None
    return RemoteName(match["host"], match["namespace"], match["digest"] or match["tag"] or "latest")
