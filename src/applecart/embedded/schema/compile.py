"""A version's schema, compiled once: pruning, defaulting and validation of the objects written with it.

The order per write is fixed: what is unknown goes, defaults are filled in, then the schema is held against the result. Rules
in CEL are asked only when the schema found nothing that would make them meaningless. Never changes what it validates.
"""

from collections.abc import Sequence
from typing import Any

from applecart.embedded.field_errors import FieldError
from applecart.embedded.refusals import bad_request
from applecart.embedded.schema.checking import UNRELATED, schema_errors
from applecart.embedded.schema.defaulting import fill_defaults
from applecart.embedded.schema.embedded_resources import embedded_errors, unknown_metadata
from applecart.embedded.schema.node import Node, Schema
from applecart.embedded.schema.pruning import unknown_fields
from applecart.embedded.schema.rule_set import rules_of
from applecart.embedded.schema.shapes import shape_of_schema
from applecart.embedded.schema.unique_lists import duplicate_errors
from applecart.embedded.shape import Shape

Document = dict[str, Any]

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)
_BLOCKING = frozenset({"NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"})
TOO_DEEP = "the object is nested too deeply"


class CompiledSchema:
    """All that one `openAPIV3Schema` decides."""

    def __init__(self, schema: Schema) -> None:
        self.root = Node(schema)
        self._rules = rules_of(self.root)

    def unknown_fields(self, document: Document) -> list[str]:
        """Paths the schema does not know, for strict decoding and warnings."""
        return self._unknown(document, removes=False)

    def prune(self, document: Document) -> list[str]:
        """Removes what the schema does not know; returns the paths."""
        return self._unknown(document, removes=True)

    def default(self, document: Document) -> None:
        try:
            fill_defaults(document, self.root)
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def validate(
        self,
        document: Document,
        old: Document | None = None,
        *,
        found: Sequence[FieldError] = (),
        more: Sequence[FieldError] = (),
    ) -> list[FieldError]:
        """What is wrong with a whole object. What was `found` before the schema is asked comes first, `more` after it."""
        before = UNRELATED if old is None else old
        try:
            found = [*found, *schema_errors(self.root, document, before), *more]
            found += embedded_errors(self.root, document)
            return self._completed(found, document, before)
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def validate_status(self, document: Document, old: Document, *, more: Sequence[FieldError] = ()) -> list[FieldError]:
        """What is wrong with an object whose status alone was written."""
        try:
            found: list[FieldError] = []
            status = self.root.properties.get("status")
            if status is not None and "status" in document:
                before = old.get("status", UNRELATED)
                found = schema_errors(status, document["status"], before, base="status")
            return self._completed([*found, *more], document, old)
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def shape(self) -> Shape:
        return shape_of_schema(self.root)

    def _unknown(self, document: Document, *, removes: bool) -> list[str]:
        try:
            found = unknown_fields(self.root, document, removes=removes)
            if self.root.has_embedded:
                found = sorted(found + unknown_metadata(self.root, document, removes=removes))
            return found
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def _completed(self, found: list[FieldError], document: Document, old: Any) -> list[FieldError]:
        duplicates = duplicate_errors(self.root, document)
        if duplicates and (old is UNRELATED or not duplicate_errors(self.root, old)):
            found += duplicates
        if not self.root.has_rules:
            return found
        if any(error.problem in _BLOCKING for error in found):
            return [*found, FieldError("Invalid", "<nil>", NOT_CHECKED)]
        return found + self._rules.errors(document, old)
