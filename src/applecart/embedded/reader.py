"""Reading committed objects from inside the server, for the parts that decide (authorization, admission, quota of names).

The store implements it; tests of those parts use a dict. Documents are fresh plain JSON values: a reader may keep or change
them without touching what is stored.
"""

from collections.abc import Iterator
from typing import Any, Protocol


class Reader(Protocol):
    def get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        """One object of a resource (`pods`, `roles.rbac.authorization.k8s.io`); None when there is none."""

    def each(self, label: str, namespace: str | None = None) -> Iterator[dict[str, Any]]:
        """All objects of a resource, of one namespace when it is named."""

    def changed_at(self, label: str) -> int:
        """The revision of the newest change of a resource: what was derived from it is good until this moves."""
