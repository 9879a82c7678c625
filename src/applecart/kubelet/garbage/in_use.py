"""Which VMs the processes of this host have to do with.

Whoever runs, pushes, exports or clones a VM has its name as a word of its command line. The whole word counts: a search for a
part of it once took `job-2` for `job` and kept an orphan for ever. Too many names here only spare something; one too few would
delete a disk under somebody.
"""

from collections.abc import Iterable

from applecart.tart.mac import Process


def names_in_use(processes: Iterable[Process]) -> frozenset[str]:
    return frozenset(word for process in processes for word in process.command.split())
