"""A version's schema, compiled once: pruning, defaulting, validation, and the shape that patches and field ownership go by.

The order per write is fixed: what is unknown goes, defaults are filled in, then the schema is held against the result. Rules
in CEL are asked only when the schema found nothing that would make them meaningless; their library is large, so it is imported
when the first rule comes. Never changes what it validates.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from applecart.embedded.field_errors import FieldError
from applecart.embedded.refusals import bad_request
from applecart.embedded.schema.budget import OF_AN_OBJECT, OverBudget, budget, leave_the_loop_for
from applecart.embedded.schema.checking import UNRELATED, schema_errors
from applecart.embedded.schema.extensions import duplicate_errors, embedded_errors, prune_metadata
from applecart.embedded.schema.normalizing import fill_defaults, prune
from applecart.embedded.schema.schema_node import Schema, SchemaNode, fresh
from applecart.embedded.shape import SCALAR, UNTYPED, ListType, Shape
from applecart.embedded.structure.types import OBJECT_META, struct_shape

if TYPE_CHECKING:
    from applecart.embedded.schema.cel_rules import Rules

Document = dict[str, Any]

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)
_BLOCKING = frozenset({"NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"})
TOO_DEEP = "the object is nested too deeply"
TOO_COSTLY = "the object takes too many steps to be held against its schema: make it smaller, or the schema simpler"


class CompiledSchema:
    """All that one `openAPIV3Schema` decides."""

    def __init__(self, schema: Schema) -> None:
        self.root = SchemaNode(schema)
        self._rules = rules_of(self.root)
        self.shape = shape_of_schema(self.root, is_resource=True)

    def prune(self, document: Document) -> list[str]:
        """Removes what the schema does not know; returns the paths."""
        try:
            gone = prune(self.root, document)
            return sorted(gone + prune_metadata(self.root, document)) if self.root.has_embedded else gone
        except RecursionError:
            raise bad_request(TOO_DEEP) from None

    def default(self, document: Document, *, keeps_nulls: bool = False) -> None:
        try:
            fill_defaults(document, self.root, keeps_nulls=keeps_nulls)
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
        with _bounded() as refused:
            found = [*found, *schema_errors(self.root, document, before), *more]
            found += embedded_errors(self.root, document)
            return self._completed(found, document, before)
        return refused

    def validate_status(self, document: Document, old: Document, *, more: Sequence[FieldError] = ()) -> list[FieldError]:
        """What is wrong with an object whose status alone was written."""
        with _bounded() as refused:
            found: list[FieldError] = []
            status = self.root.properties.get("status")
            if status is not None and "status" in document:
                found = schema_errors(status, document["status"], old.get("status", UNRELATED), base="status")
            return self._completed([*found, *more], document, old)
        return refused

    def _completed(self, found: list[FieldError], document: Document, old: Any) -> list[FieldError]:
        duplicates = duplicate_errors(self.root, document)
        if duplicates and (old is UNRELATED or not duplicate_errors(self.root, old)):
            found += duplicates
        if self._rules is None:
            return found
        if any(error.problem in _BLOCKING for error in found):
            return [*found, FieldError("Invalid", "<nil>", NOT_CHECKED)]
        return found + self._rules.errors(document, old)


@contextmanager
def _bounded() -> Iterator[list[FieldError]]:
    """A validation that ends: what it gives is the answer when it did not get to one."""
    refused: list[FieldError] = []
    try:
        with budget(OF_AN_OBJECT):
            yield refused
    except OverBudget:
        refused.append(FieldError("Invalid", "<nil>", TOO_COSTLY))
    except RecursionError:
        raise bad_request(TOO_DEEP) from None


def rules_of(root: SchemaNode) -> "Rules | None":
    if not root.has_rules:
        return None
    leave_the_loop_for("applecart.embedded.schema.cel_rules", "Rules")
    from applecart.embedded.schema.cel_rules import Rules

    return Rules(root)


def shape_of_schema(node: SchemaNode | None, *, is_resource: bool = False) -> Shape:
    if node is None:
        return UNTYPED
    is_resource = is_resource or node.is_embedded
    if node.type == "array":
        return _list_shape(node)
    if node.type == "object":
        is_atomic = node.map_type == "atomic"
        if node.additional is not None:
            return Shape("map", element=shape_of_schema(node.additional), is_atomic=is_atomic)
        if node.properties or is_resource:
            fields = {name: shape_of_schema(child) for name, child in node.properties.items()}
            if is_resource:
                fields |= {"apiVersion": SCALAR, "kind": SCALAR, "metadata": struct_shape(OBJECT_META)}
            return Shape("struct", fields_of=lambda: fields, is_atomic=is_atomic)
        return Shape("map", element=UNTYPED, is_atomic=is_atomic)
    return SCALAR if node.types else UNTYPED


def _list_shape(node: SchemaNode) -> Shape:
    kinds: dict[str, ListType] = {"set": "set", "map": "map"}
    list_type = kinds.get(node.list_type, "atomic")
    keys = node.list_keys if list_type == "map" else ()
    defaults = node.items.defaults if node.items is not None else {}
    key_defaults = {key: fresh(defaults[key]) for key in keys if key in defaults}
    return Shape("list", element=shape_of_schema(node.items), list_type=list_type, list_keys=keys, key_defaults=key_defaults)
