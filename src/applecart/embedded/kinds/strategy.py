"""How one kind behaves when it is written: what is filled in, what is kept, what is refused.

The handlers do everything that all kinds share (names, metadata, generation, deletion) and ask the kind's strategy for the
rest. A strategy works on plain JSON documents and changes only the new one, in place; it never reads the store, so it is a
pure decision.
"""

from functools import cached_property
from typing import Any, ClassVar

from applecart.embedded.field_errors import FieldError
from applecart.embedded.kinds.names import NameProblems, subdomain_problems

Document = dict[str, Any]


class Strategy:
    """The behaviour of a plain kind; a kind overrides what differs."""

    is_graceful = False  # deletion waits for somebody to confirm it (Pods)
    creates_on_update = False  # PUT of a missing object creates it
    updates_unconditionally = True  # PUT without a resourceVersion is taken
    has_status = False  # `/status` is served, and the main endpoint does not change the status
    status_takes_metadata = False  # labels, annotations and the like may change through `/status`
    counts_generations = False  # metadata.generation rises with what is wanted
    names_finalizers_freely = False  # without a domain, as in custom kinds and those that came to Kubernetes later
    name_problems: ClassVar[NameProblems] = staticmethod(subdomain_problems)  # of a name or, as a prefix, of a generateName
    validates_updates_alone = False  # `validate_update` judges the whole object; `validate` is then asked about new ones only

    def drop_unknown(self, obj: Document) -> list[str]:
        """Take out what the kind's schema does not know; one sentence each. Built-in kinds are decoded by their types."""
        return []

    def default(self, obj: Document) -> None:
        """Fill in what the caller left out; runs on everything that is decoded."""

    def default_applied(self, obj: Document) -> None:
        """The same for what an apply made, which the real server does not decode."""
        self.default(obj)

    def prepare_create(self, obj: Document) -> None:
        """Drop what a creator may not set, set what the server decides."""
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, obj: Document, old: Document) -> None:
        """Keep what an update of the main endpoint may not change."""
        if self.has_status:
            keep(obj, old, "status")

    def prepare_status(self, obj: Document, old: Document) -> None:
        """Keep what an update of `/status` may not change: everything but the status (and some metadata)."""
        for member in old.keys() | obj.keys():
            if member not in ("status", "metadata", "apiVersion", "kind"):
                keep(obj, old, member)

    def validate_with(self, found: list[FieldError], obj: Document, old: Document | None) -> list[FieldError]:
        """Everything that is wrong with a new object or, given the old one, an update; `found` is what its metadata gave."""
        if old is None:
            return [*found, *self.validate(obj)]
        if not self.validates_updates_alone:
            found = [*found, *self.validate(obj)]
        return [*found, *self.validate_update(obj, old)]

    def validate(self, obj: Document) -> list[FieldError]:
        """What is wrong with the object, beyond its metadata."""
        return []

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        """What may not change so; `validate` is asked as well."""
        return []

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        """What is wrong with a status update."""
        return []

    def prepare_finalize(self, obj: Document, old: Document) -> None:
        """Keep what an update of `/finalize` may not change; only Namespaces have it."""

    def validate_finalize(self, obj: Document, old: Document) -> list[FieldError]:
        """What is wrong with an update of `/finalize`."""
        return []

    def wanted(self, obj: Document) -> Any:
        """What a generation counts: the object without metadata and status."""
        return {name: value for name, value in obj.items() if name not in ("metadata", "status", "apiVersion", "kind")}

    def warnings(self, obj: Document) -> list[str]:
        """Advice sent beside a successful write."""
        return []

    def fields(self, obj: Document) -> dict[str, str]:
        """What field selectors may ask for, beyond metadata.name and metadata.namespace."""
        return {}

    @cached_property
    def field_names(self) -> frozenset[str]:
        """The names of `fields`, which no object lacks; any other selector is refused."""
        return frozenset(self.fields({}))

    def grace_period_s(self, obj: Document, asked: int | None) -> int:
        """How long a graceful deletion waits."""
        return 0


def keep(obj: Document, old: Document, member: str) -> None:
    """The member is as it was, also when it was absent."""
    if member in old:
        obj[member] = old[member]
    else:
        obj.pop(member, None)
