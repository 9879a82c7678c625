"""Documents that replace others: transitions, and what a schema that became stricter forgives."""

from tests.embedded.schema.schema_cases import INT, KEYED, LIST, SHORT, Case, rule, struct

UPDATED = (
    Case("transition", {**INT, **rule("self >= oldSelf", message="may not shrink")}, 1, 2),
    Case("transition-fits", {**INT, **rule("self >= oldSelf")}, 3, 2),
    Case(
        "transition-keyed",
        {
            "type": "array",
            "maxItems": 9,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": SHORT, "size": INT},
                **rule("self.size >= oldSelf.size"),
            },
        },
        [{"name": "b", "size": 1}, {"name": "a", "size": 1}],
        [{"name": "a", "size": 2}, {"name": "b", "size": 1}],
    ),
    Case(
        "transition-map",
        {"type": "object", "maxProperties": 9, "additionalProperties": {**INT, **rule("self == oldSelf")}},
        {"a": 2, "b": 1},
        {"a": 1},
    ),
    Case("optional-old", {**INT, **rule("!oldSelf.hasValue() || self >= oldSelf.value()", optionalOldSelf=True)}, 1, 2),
    Case("optional-old-or", {**INT, **rule("oldSelf.orValue(0) <= self", optionalOldSelf=True)}, 1, 2),
)

_STRICT_TEXT = {**SHORT, "pattern": "^[a-z]+$"}

RATCHETED = (
    Case("same-text", _STRICT_TEXT, "A1", "A1"),
    Case("changed-text", _STRICT_TEXT, "A2", "A1"),
    Case("same-sibling", struct(a={**INT, "maximum": 5}, b=INT), {"a": 9, "b": 2}, {"a": 9, "b": 1}),
    Case("changed-sibling", struct(a={**INT, "maximum": 5}, b=INT), {"a": 8, "b": 1}, {"a": 9, "b": 1}),
    Case("same-keyed-item", KEYED, [{"name": "b", "size": 1}, {"name": "a", "size": 9}], [{"name": "a", "size": 9}]),
    Case("changed-keyed-item", KEYED, [{"name": "a", "size": 8}], [{"name": "a", "size": 9}]),
    Case("same-atomic-list", {"type": "array", "items": {**INT, "maximum": 5}}, [9], [9]),
    Case("changed-atomic-list", {"type": "array", "items": {**INT, "maximum": 5}}, [9, 1], [9]),
    Case("missing-required", {**struct(a=INT, b=INT), "required": ["b"]}, {"a": 1}, {"a": 1}),
    Case("still-missing-required", {**struct(a=INT, b=INT), "required": ["b"]}, {"a": 2}, {"a": 1}),
    Case("same-duplicates", {**LIST, "x-kubernetes-list-type": "set"}, ["a", "a", "b"], ["a", "a"]),
    Case("same-rule", {**INT, **rule("self < 5")}, 9, 9),
    Case("changed-rule", {**INT, **rule("self < 5")}, 8, 9),
    Case("same-rule-in-atomic-list", {"type": "array", "maxItems": 5, "items": {**INT, **rule("self < 5")}}, [9], [9]),
    Case("changed-rule-in-atomic-list", {"type": "array", "maxItems": 5, "items": {**INT, **rule("self < 5")}}, [9, 1], [9]),
    Case("same-transition", {**INT, **rule("self != oldSelf", message="must change")}, 9, 9),
    Case("same-failing-rule", {**struct(a=INT, b=INT), **rule("self.a > 1")}, {"b": 1}, {"b": 1}),
    Case("same-type", INT, "text", "text"),
    Case("int-to-bool", {"type": "boolean"}, 1, True),
    Case("alternatives", {**INT, "anyOf": [{"minimum": 10}, {"maximum": 2}]}, 5, 5),
)
