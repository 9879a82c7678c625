"""The labels that come and go with what the host holds: goldens, caches.

Each source is asked on its own: one that fails takes nothing from the others (one broken probe once cost a host all of its
labels). What it said last stays where that is still the better guess, as for goldens, and goes where a wrong label would do
harm, as for caches. A label that the API would refuse is left out and told: it would fail the whole Node.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from applecart.kubelet.option_values import is_label
from applecart.observe.logs import logger

log = logger(__name__)


class LabelSource(msgspec.Struct, frozen=True):
    """`read` looks at what is already known and must not wait for anything."""

    name: str
    read: Callable[[], Mapping[str, str]]
    keeps_last: bool = False


class Advertised:
    def __init__(self, sources: Iterable[LabelSource] = ()) -> None:
        self._sources = tuple(sources)
        self._last: dict[str, Mapping[str, str]] = {}
        self._failing: set[str] = set()

    def labels(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in self._sources:
            found |= self._of(source)
        return found

    def _of(self, source: LabelSource) -> Mapping[str, str]:
        try:
            said = source.read()
            found = {key: value for key, value in said.items() if is_label(key, value)}
        except Exception as error:  # whatever it is: the Node must keep its other labels
            if source.name not in self._failing:
                log.warning("labels of the Node cannot be told", source=source.name, exc_info=error)
            self._failing.add(source.name)
            return self._last.get(source.name, {}) if source.keeps_last else {}
        self._failing.discard(source.name)
        if len(found) < len(said) and found != self._last.get(source.name):
            refused = sorted(key for key in said if key not in found)
            log.error("labels that the API would refuse are left out", source=source.name, labels=refused)
        self._last[source.name] = found
        return found
