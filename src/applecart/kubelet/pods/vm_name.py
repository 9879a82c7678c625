"""Whose the name of a VM is, when two Pods of a host have the same one.

A VM is named after its Pod's namespace and name, joined by a dash, so `ci/a-b` and `ci-a/b` are both `ci-a-b`; the names are a
contract and cannot change. One Pod has the name, with the VM and the files that go by it, until nothing of it is left; the
others wait and touch neither (I3). Pure: it reads the journal's entries and changes nothing.
"""

from collections.abc import Iterable

from applecart.errors import Transient
from applecart.kubelet.entry import JournalEntry, Stage


class NameTaken(Transient):
    """Another Pod's VM has the name."""


def holder(entry: JournalEntry, journal: Iterable[JournalEntry]) -> JournalEntry | None:
    """The other Pod that has the name of this one's VM; None when it is this one's.

    A Pod that has begun to clone comes before those that have not; among these the one that the journal met first, whatever
    the clock said then. An earlier Pod of the same namespace and name does not count: it goes before this one is begun.
    """
    sharing = [each for each in journal if each.vm == entry.vm and each.stage is not Stage.REMOVED]
    rivals = [each for each in sharing if each.uid == entry.uid or each.key != entry.key]
    first = min((*rivals, entry), key=lambda each: not _has_cloned(each))  # the first of equals
    return None if first.uid == entry.uid else first


def _has_cloned(entry: JournalEntry) -> bool:
    return bool(entry.golden) or entry.is_marked
