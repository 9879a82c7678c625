"""What an informer's handlers were told, checked as it comes.

A consistent history of a key alternates: it appears, changes, goes, and may appear again as another object. Nothing is told
that the server never held, and no key goes back in time.
"""

from collections.abc import Iterable

from applecart.api.core import ConfigMap
from applecart.api.meta import Key
from applecart.kube.cache import Change


def state_of(objects: Iterable[ConfigMap]) -> dict[Key, ConfigMap]:
    return {obj.key: obj for obj in objects}


class History:
    def __init__(self) -> None:
        self.live: dict[Key, ConfigMap] = {}  # as the changes told it
        self.problems: list[str] = []
        self.told: set[tuple[Key, str, str]] = set()  # key, uid and revision of everything that was shown as existing
        self._newest: dict[Key, int] = {}

    def take(self, change: Change[ConfigMap]) -> None:
        known = self.live.get(change.key)
        if change.old is None and change.new is None:
            self._complain(change, "nothing happened")
        if change.old is None and known is not None:
            self._complain(change, "appeared although it is there")
        if change.old is not None and known is None:
            self._complain(change, "changed or went although it is not there")
        if change.old is not None and known is not None and change.old.uid != known.uid:
            self._complain(change, "is about another object than the one that is there")
        if change.new is None:
            self.live.pop(change.key, None)
            return
        if change.old is not None and change.new.uid != change.old.uid:
            self._complain(change, "became another object without going first")
        if int(change.new.revision) <= self._newest.get(change.key, 0):
            self._complain(change, "went back in time")
        self._newest[change.key] = int(change.new.revision)
        self.live[change.key] = change.new
        self.told.add((change.key, change.new.uid, change.new.revision))

    def _complain(self, change: Change[ConfigMap], what: str) -> None:
        old, new = (obj and (obj.uid, obj.revision) for obj in (change.old, change.new))
        self.problems.append(f"{change.key} {what}: {old} -> {new}")
