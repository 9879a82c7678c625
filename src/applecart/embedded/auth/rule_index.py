"""The rules of one role, made to be asked: which of them are about this verb, group and resource.

Made once per change of a role. A set of rules is an int with a bit for each of them, and every word of the role has the set of
the rules that say it: a question is a few look-ups, however many rules there are. Answers what `Rule.is_about` does.
"""

from collections.abc import Iterable

from applecart.embedded.auth.roles import ALL, Rule
from applecart.embedded.schema.budget import spend


class RuleIndex:
    __slots__ = ("_groups", "_on_paths", "_resources", "_verbs", "names", "rules", "unnamed")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.names: dict[str, int] = {}
        self.unnamed = 0  # the rules that hold for every name
        self._verbs: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._on_paths = tuple(rule for rule in rules if rule.paths)  # of cluster-wide roles alone, and few
        for place, rule in enumerate(rules):
            bit = 1 << place
            _add(self._verbs, rule.verbs, bit)
            _add(self._groups, rule.groups, bit)
            _add(self._resources, rule.resources, bit)
            _add(self.names, rule.names, bit)
            if not rule.names:
                self.unnamed |= bit

    def about(self, verb: str, group: str, resource: str, subresource: str) -> int:
        """The rules that allow the verb on the resource: those with names for the objects they name."""
        found = _either(self._verbs, ALL, verb)
        found = found and found & _either(self._groups, ALL, group)
        if not found:
            return 0
        if not subresource:
            return found & _either(self._resources, ALL, resource)
        exact, of_all = f"{resource}/{subresource}", f"{ALL}/{subresource}"
        return found & (_either(self._resources, ALL, exact) | self._resources.get(of_all, 0))

    def covers(self, single: Rule) -> bool:
        """Whether one of the rules has the rights of this one, which has one verb, resource and name, or path."""
        if single.paths:
            spend(len(self._on_paths))
            return any(not rule.names and rule.allows_path(single.verbs[0], single.paths[0]) for rule in self._on_paths)
        [verb], [group], [resource] = single.verbs, single.groups, single.resources
        named = self.unnamed | (self.names.get(single.names[0], 0) if single.names else 0)
        found = named & _either(self._verbs, ALL, verb) & _either(self._groups, ALL, group)
        _, slash, subresource = resource.partition("/")
        of_all = self._resources.get(f"{ALL}/{subresource}", 0) if slash else 0
        return bool(found & (_either(self._resources, ALL, resource) | of_all))

    def allows_path(self, verb: str, path: str) -> bool:
        return any(rule.allows_path(verb, path) for rule in self._on_paths)


def _add(index: dict[str, int], words: Iterable[str], bit: int) -> None:
    for word in words:
        index[word] = index.get(word, 0) | bit


def _either(index: dict[str, int], one: str, other: str) -> int:
    return index.get(one, 0) | index.get(other, 0)
