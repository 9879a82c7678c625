"""Which objects of a kind a list, a watch or a deletecollection is about."""

from collections.abc import Mapping

from applecart.embedded.field_selectors import FieldSelector, parse_field_selector, refuse_unknown_fields
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.server.selectors import everything, label_selector
from applecart.embedded.store.record import Record
from applecart.embedded.store.table import NODE_FIELD
from applecart.embedded.store.watcher import Scope

NAME, NAMESPACE = "metadata.name", "metadata.namespace"


class Selection:
    """The selectors of one request, and the namespace of its path."""

    def __init__(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> None:
        self._labels = label_selector(query.get("labelSelector", ""))
        fields = parse_field_selector(query.get("fieldSelector", ""))
        known = {NAME, *([NAMESPACE] if kind.resource.namespaced or not kind.is_custom else []), *kind.rules.field_names()}
        refuse_unknown_fields(fields, lambda name: unsupported(kind, name), known)
        wanted_namespace = fields.wanted(NAMESPACE)
        self.namespace = namespace if namespace is not None else wanted_namespace
        self.name = fields.wanted(NAME)
        self.node = fields.wanted(NODE_FIELD)
        self._fields = fields
        self._asks_metadata = any(name in (NAME, NAMESPACE) for name, _, _ in fields.terms)
        self.takes_all = self._labels is everything and not fields.terms

    @property
    def scope(self) -> Scope:
        """What an index of watchers can tell of it."""
        return Scope(self.namespace, self.name, self.node)

    def matches(self, record: Record) -> bool:
        traits = record.traits
        if not self._labels(traits.labels):
            return False
        fields: FieldSelector = self._fields
        if not fields.terms:
            return True
        if self._asks_metadata:
            return fields({**traits.fields, NAME: record.key.name, NAMESPACE: record.key.namespace})
        return fields(traits.fields)


def unsupported(kind: Kind, name: str) -> Refusal:
    if kind.is_custom:
        return bad_request(f"field label not supported: {name}")
    if kind.rules.field_names():
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "{NAME}", "{NAMESPACE}"')
