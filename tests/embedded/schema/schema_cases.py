"""Schemas and documents on which the embedded server must agree with a real one.

Each case is one property of a definition's spec, so that one definition serves them all. `old` is what the property was
before; where it is invalid for `schema`, `loose` is the schema under which it could be stored.
"""

from dataclasses import dataclass
from typing import Any

ABSENT: Any = object()
ANY = {"x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True)
class Case:
    name: str
    schema: dict[str, Any]
    value: Any
    old: Any = ABSENT


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _all(*conditions: str) -> str:
    return " && ".join(conditions)


def _rule(text: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more}]}


_INT = {"type": "integer"}
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_LIST = {"type": "array", "items": _TEXT}
_KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "size": {"type": "integer", "maximum": 5}}},
}
_TWO_KEYS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": _INT, "protocol": {"type": "string", "default": "TCP"}},
    },
}
_EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
_UNION = {
    **_object(a=_TEXT, b=_TEXT, c=_INT),
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
}
_SHORT = {"type": "string", "maxLength": 20}
_SHORT_LIST = {"type": "array", "maxItems": 10, "items": _SHORT}

CREATED = (
    Case("type-text", _TEXT, 5),
    Case("type-int", _INT, "x"),
    Case("type-int-float", _INT, 1.5),
    Case("type-int-whole-float", _INT, 2.0),
    Case("type-bool", {"type": "boolean"}, "true"),
    Case("type-number", _NUMBER, "1"),
    Case("type-number-int", _NUMBER, 3),
    Case("type-array", _LIST, {"a": 1}),
    Case("type-object", _object(a=_INT), [1]),
    Case("type-item", _LIST, ["a", 1, None]),
    Case("null-dropped", _object(a=_INT, b=_TEXT), {"a": None, "b": "x"}),
    Case("null-kept", _object(a={**_INT, "nullable": True}), {"a": None}),
    Case("null-defaulted", _object(a={**_INT, "default": 4}), {"a": None}),
    Case("null-in-map", {"type": "object", "additionalProperties": _INT}, {"x": None, "y": 1}),
    Case("enum", {"type": "string", "enum": ["a", "b"]}, "c"),
    Case("enum-int", {"type": "integer", "enum": [1, 2]}, 3),
    Case("enum-null", _object(a={"type": "string", "enum": ["a"], "nullable": True}), {"a": None}),
    Case("required", {**_object(a=_INT, b=_INT), "required": ["a", "b"]}, {}),
    Case("minimum", {**_INT, "minimum": 1}, 0),
    Case("minimum-exclusive", {**_INT, "minimum": 1, "exclusiveMinimum": True}, 1),
    Case("maximum", {**_INT, "maximum": 10}, 11),
    Case("maximum-exclusive", {**_NUMBER, "maximum": 1.5, "exclusiveMaximum": True}, 1.5),
    Case("minimum-float", {**_NUMBER, "minimum": 0.5}, 0.25),
    Case("multiple", {**_INT, "multipleOf": 5}, 7),
    Case("multiple-float", {**_NUMBER, "multipleOf": 0.1}, 0.25),
    Case("int32", {**_INT, "format": "int32"}, 2**31),
    Case("int32-limits", {**_INT, "format": "int32", "maximum": 100}, 2**40),
    Case("min-length", {**_TEXT, "minLength": 3}, "ab"),
    Case("max-length", {**_TEXT, "maxLength": 3}, "abcd"),
    Case("max-length-one", {**_TEXT, "maxLength": 1}, "ab"),
    Case("length-in-characters", {**_TEXT, "maxLength": 3}, "äöü"),
    Case("pattern", {**_TEXT, "pattern": "^[a-z]+$"}, "A1"),
    Case("pattern-newline", {**_TEXT, "pattern": "^[a-z]+$"}, "abc\n"),
    Case("pattern-re2", {**_TEXT, "pattern": r"^\pL+(-[[:digit:]]+)*$"}, "ab-1-x"),
    Case("pattern-unanchored", {**_TEXT, "pattern": "b"}, "abc"),
    Case("min-items", {**_LIST, "minItems": 1}, []),
    Case("max-items", {**_LIST, "maxItems": 1}, ["a", "b"]),
    Case("min-properties", {"type": "object", "additionalProperties": _INT, "minProperties": 1}, {}),
    Case("max-properties", {"type": "object", "additionalProperties": _INT, "maxProperties": 1}, {"a": 1, "b": 2}),
    Case("map-value", {"type": "object", "additionalProperties": {**_INT, "minimum": 0}}, {"a.b": -1}),
    Case("prune", _object(a=_INT, inner=_object(b=_INT)), {"a": 1, "x": 1, "inner": {"b": 1, "y": {"z": 1}}}),
    Case("prune-items", {"type": "array", "items": _object(a=_INT)}, [{"a": 1, "x": 2}]),
    Case("preserve", {**_object(a=_object(b=_INT)), **ANY}, {"a": {"b": 1, "x": 1}, "free": {"deep": [1]}}),
    Case("preserve-list", {"type": "array", **ANY, "items": _object(a=_INT)}, [{"a": 1, "x": 2}]),
    Case("any-members", {"type": "object", "additionalProperties": True}, {"a": {"b": 1}, "c": 1}),
    Case("default-nested", _object(a={**_object(b={**_INT, "default": 3}), "default": {}}), {}),
    Case("default-items", {"type": "array", "items": _object(a={**_TEXT, "default": "x"})}, [{}, {"a": "y"}]),
    Case("default-in-map", {"type": "object", "additionalProperties": _object(a={**_INT, "default": 1})}, {"k": {}}),
    Case("int-or-string", {"x-kubernetes-int-or-string": True}, 1.5),
    Case("int-or-string-ok", {"x-kubernetes-int-or-string": True}, "10%"),
    Case(
        "int-or-string-pattern",
        {"x-kubernetes-int-or-string": True, "anyOf": [_INT, _TEXT], "pattern": "^[0-9]+%$"},
        "x",
    ),
    Case("one-of-none", _UNION, {"c": 1}),
    Case("one-of-both", _UNION, {"a": "x", "b": "y"}),
    Case("one-of-fits", _UNION, {"a": "x"}),
    Case("any-of", {**_INT, "anyOf": [{"minimum": 10}, {"maximum": 2}]}, 5),
    Case("all-of", {**_INT, "allOf": [{"minimum": 10}, {"maximum": 20}]}, 5),
    Case("all-of-none", {**_INT, "allOf": [{"minimum": 10}, {"multipleOf": 2}]}, 5),
    Case("not", {**_TEXT, "not": {"enum": ["bad"]}}, "bad"),
    Case("set-twice", {**_LIST, "x-kubernetes-list-type": "set"}, ["a", "b", "a", "a"]),
    Case("keyed-twice", _KEYED, [{"name": "a"}, {"name": "b"}, {"name": "a", "size": 2}]),
    Case("keyed-two-keys", _TWO_KEYS, [{"port": 1}, {"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]),
    Case("keyed-bad-item", _KEYED, [{"name": "a", "size": 9}, {"size": 1}]),
    Case("embedded-no-identity", _EMBEDDED, {"spec": {}}),
    Case("embedded-bad-kind", _EMBEDDED, {"apiVersion": "a/b/c", "kind": "a_b", "metadata": {"name": "ok"}}),
    Case("embedded-bad-labels", _EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}),
    Case(
        "embedded-unknown-meta", _EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bogus": 1}, "x": 1}
    ),
    *(
        Case(f"format-{name}-{number}", {**_TEXT, "format": name}, value)
        for name, values in {
            "date-time": ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123+02:00", "2020-01-01", "2020-13-01T00:00:00Z"),
            "date": ("2020-02-29", "2021-02-29"),
            "duration": ("1h30m", "22 ns", "1 fortnight", "x"),
            "ipv4": ("10.0.0.1", "10.0.0.256", "::1"),
            "ipv6": ("::1", "10.0.0.1"),
            "cidr": ("10.0.0.0/8", "10.0.0.1/33", "fd00::/8"),
            "mac": ("01:23:45:67:89:ab", "01:23:45"),
            "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
            "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
            "hostname": ("a.example.com", "a_b", "-a"),
            "email": ("a@example.com", "example"),
            "uri": ("https://example.com/x", "/path", "not a uri", "x"),
            "byte": ("aGVsbG8=", "%%%", ""),
            "password": ("anything",),
            "k8s-short-name": ("abc", "A", "a.b"),
            "k8s-long-name": ("a.b", "A"),
            "hexcolor": ("#ffffff", "#ggg"),
            "unheard-of": ("x",),
        }.items()
        for number, value in enumerate(values)
    ),
    Case("format-on-int", {**_TEXT, "format": "date-time"}, 5),
    Case("format-on-bool", {**_TEXT, "format": "ipv4"}, True),
    Case("rule-text", {**_SHORT, **_rule("self.startsWith('a')")}, "b"),
    Case("rule-message", {**_SHORT, **_rule("self == 'a'", message="must be a")}, "b"),
    Case("rule-object", {**_object(a=_INT, b=_INT), **_rule("self.a < self.b", message="a before b")}, {"a": 2, "b": 1}),
    Case("rule-absent-field", {**_object(a=_INT), **_rule("self.a > 1")}, {}),
    Case("rule-has", {**_object(a=_INT), **_rule("!has(self.a) || self.a > 1")}, {"a": 1}),
    Case(
        "rule-field-path",
        {**_object(a=_INT), **_rule("self.a > 1", fieldPath=".a", reason="FieldValueForbidden", message="no")},
        {"a": 1},
    ),
    Case(
        "rule-required",
        {**_object(a=_INT), **_rule("has(self.a)", fieldPath=".a", reason="FieldValueRequired", message="say a")},
        {},
    ),
    Case("rule-duplicate", {**_INT, **_rule("self != 3", reason="FieldValueDuplicate")}, 3),
    Case(
        "rule-message-expression",
        {**_INT, **_rule("self < 3", messageExpression="self > 100 ? 'far too large' : 'too large'", message="no")},
        5,
    ),
    Case("rule-empty-message-expression", {**_INT, **_rule("self < 3", messageExpression="' '", message="plain")}, 5),
    Case("rule-list", {**_SHORT_LIST, **_rule("self.all(x, x.size() > 1)")}, ["ab", "c"]),
    Case("rule-item", {"type": "array", "maxItems": 5, "items": {**_SHORT, **_rule("self != 'x'")}}, ["a", "x"]),
    Case(
        "rule-map-value",
        {"type": "object", "maxProperties": 5, "additionalProperties": {**_INT, **_rule("self > 0")}},
        {"k.v": 0},
    ),
    Case(
        "rule-map",
        {"type": "object", "maxProperties": 5, "additionalProperties": _INT, **_rule("self.all(k, self[k] > 0)")},
        {"k": 0},
    ),
    Case(
        "rule-escaped",
        {
            **_object(**{"namespace": _SHORT, "a-b": _INT, "x__y": _INT}),
            **_rule(_all("self.__namespace__ == 'a'", "self.a__dash__b == 1", "self.x__underscores__y == 2")),
        },
        {"namespace": "a", "a-b": 1, "x__y": 3},
    ),
    Case("rule-divide", {**_INT, **_rule("10 / self == 1")}, 0),
    Case("rule-overflow", {**_INT, **_rule("self + 9223372036854775807 > 0")}, 5),
    Case("rule-index", {**_SHORT_LIST, **_rule("self[3] == 'a'")}, ["a"]),
    Case("rule-number", {**_NUMBER, **_rule("self / 2.0 < 1.0")}, 3),
    Case("rule-int-or-string", {"x-kubernetes-int-or-string": True, **_rule("type(self) == int ? self > 0 : self == 'x'")}, 0),
    Case(
        "rule-date",
        {**_TEXT, "format": "date-time", **_rule("self > timestamp('2020-01-01T00:00:00Z')")},
        "2019-01-01T00:00:00Z",
    ),
    Case("rule-duration", {**_TEXT, "format": "duration", **_rule("self < duration('1h')")}, "2h"),
    Case("rule-bytes", {**_TEXT, "format": "byte", "maxLength": 20, **_rule("self == b'hello'")}, "aGVsbG8="),
    Case("rule-matches", {**_SHORT, **_rule("self.matches('^[a-z]+$')")}, "A"),
    Case("rule-optional", {**_object(a=_INT), **_rule("self.?a.orValue(3) < 3")}, {}),
    Case(
        "rule-strings",
        {
            **_SHORT,
            **_rule(
                _all(
                    "self.lowerAscii() == 'a,b'",
                    "self.substring(1, 2) == ','",
                    "self.charAt(2) == 'B'",
                    "self.indexOf('B') == 2",
                    "self.upperAscii() == 'A,B'",
                )
            ),
        },
        "A,B",
    ),
    Case(
        "rule-lists",
        {
            "type": "array",
            "maxItems": 9,
            "items": _INT,
            **_rule(
                _all(
                    "self.sum() == 6",
                    "self.min() == 1",
                    "self.max() == 3",
                    "!self.isSorted()",
                    "self.indexOf(3) == 1",
                    "self.lastIndexOf(2) == 2",
                )
            ),
        },
        [1, 3, 2],
    ),
    Case(
        "rule-sets",
        {
            **_SHORT_LIST,
            **_rule(
                _all("sets.contains(self, ['a'])", "sets.intersects(self, ['b'])", "sets.equivalent(self, ['b', 'a', 'a'])")
            ),
        },
        ["a", "b"],
    ),
    Case(
        "rule-regex",
        {
            **_SHORT,
            **_rule(
                _all(
                    "self.find('[0-9]+') == '12'",
                    "self.findAll('[0-9]+') == ['12', '3']",
                    "self.findAll('[0-9]+', 1) == ['12']",
                )
            ),
        },
        "a12b3",
    ),
    Case(
        "rule-quantity",
        {
            **_SHORT,
            **_rule(
                _all(
                    "isQuantity(self)",
                    "quantity(self).isGreaterThan(quantity('1Gi'))",
                    "quantity(self).add(1).sub(quantity('1')).compareTo(quantity(self)) == 0",
                    "quantity(self).isInteger()",
                    "quantity(self).asInteger() == 2147483648",
                    "quantity('1') == quantity('1000m')",
                )
            ),
        },
        "2Gi",
    ),
    Case("rule-quantity-bad", {**_SHORT, **_rule("isQuantity(self)")}, "2Q"),
    Case(
        "rule-url",
        {
            **_SHORT,
            **_rule(
                _all(
                    "isURL(self)",
                    "url(self).getScheme() == 'https'",
                    "url(self).getHost() == 'a.b:81'",
                    "url(self).getHostname() == 'a.b'",
                    "url(self).getPort() == '81'",
                    "url(self).getEscapedPath() == '/x'",
                    "url(self).getQuery() == {'q': ['1']}",
                )
            ),
        },
        "https://a.b:81/x?q=1",
    ),
    Case(
        "rule-ip",
        {
            **_SHORT,
            **_rule(
                _all(
                    "isIP(self)",
                    "ip(self).family() == 4",
                    "!ip(self).isLoopback()",
                    "ip(self).isGlobalUnicast()",
                    "cidr('10.0.0.0/8').containsIP(self)",
                    "ip.isCanonical(self)",
                    "!isIP('x')",
                )
            ),
        },
        "10.1.2.3",
    ),
    Case(
        "rule-cidr",
        {
            **_SHORT,
            **_rule(
                _all(
                    "isCIDR(self)",
                    "cidr(self).prefixLength() == 16",
                    "cidr(self).containsCIDR('10.1.2.0/24')",
                    "cidr(self).ip() == ip('10.1.0.0')",
                    "cidr(self).masked() == cidr('10.1.0.0/16')",
                )
            ),
        },
        "10.1.0.0/16",
    ),
    Case(
        "rule-semver",
        {**_SHORT, **_rule(_all("isSemver(self)", "semver(self).isLessThan(semver('1.2.3'))", "semver(self).major() == 1"))},
        "1.2.3-rc.1",
    ),
    Case("rule-format-text", {**_SHORT, **_rule("'%s-%d'.format([self, 3]) == 'a-3'")}, "a"),
    Case("rule-transition-on-create", {**_INT, **_rule("self >= oldSelf")}, 1),
    Case(
        "rule-optional-old-on-create",
        {**_INT, **_rule("oldSelf.hasValue() || self == 0", optionalOldSelf=True, message="start at 0")},
        1,
    ),
    Case("rule-and-limit", {**_INT, "minimum": 5, **_rule("self > 6")}, 1),
    Case(
        "rule-embedded",
        {**_EMBEDDED, **_rule("self.metadata.name == 'a' && self.kind == 'Pod'")},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}},
    ),
)

UPDATED = (
    Case("transition", {**_INT, **_rule("self >= oldSelf", message="may not shrink")}, 1, 2),
    Case("transition-fits", {**_INT, **_rule("self >= oldSelf")}, 3, 2),
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
                "properties": {"name": _SHORT, "size": _INT},
                **_rule("self.size >= oldSelf.size"),
            },
        },
        [{"name": "b", "size": 1}, {"name": "a", "size": 1}],
        [{"name": "a", "size": 2}, {"name": "b", "size": 1}],
    ),
    Case(
        "transition-map",
        {"type": "object", "maxProperties": 9, "additionalProperties": {**_INT, **_rule("self == oldSelf")}},
        {"a": 2, "b": 1},
        {"a": 1},
    ),
    Case("optional-old", {**_INT, **_rule("!oldSelf.hasValue() || self >= oldSelf.value()", optionalOldSelf=True)}, 1, 2),
    Case("optional-old-or", {**_INT, **_rule("oldSelf.orValue(0) <= self", optionalOldSelf=True)}, 1, 2),
)

_STRICT_TEXT = {**_SHORT, "pattern": "^[a-z]+$"}

RATCHETED = (
    Case("same-text", _STRICT_TEXT, "A1", "A1"),
    Case("changed-text", _STRICT_TEXT, "A2", "A1"),
    Case("same-sibling", _object(a={**_INT, "maximum": 5}, b=_INT), {"a": 9, "b": 2}, {"a": 9, "b": 1}),
    Case("changed-sibling", _object(a={**_INT, "maximum": 5}, b=_INT), {"a": 8, "b": 1}, {"a": 9, "b": 1}),
    Case("same-keyed-item", _KEYED, [{"name": "b", "size": 1}, {"name": "a", "size": 9}], [{"name": "a", "size": 9}]),
    Case("changed-keyed-item", _KEYED, [{"name": "a", "size": 8}], [{"name": "a", "size": 9}]),
    Case("same-atomic-list", {"type": "array", "items": {**_INT, "maximum": 5}}, [9], [9]),
    Case("changed-atomic-list", {"type": "array", "items": {**_INT, "maximum": 5}}, [9, 1], [9]),
    Case("missing-required", {**_object(a=_INT, b=_INT), "required": ["b"]}, {"a": 1}, {"a": 1}),
    Case("still-missing-required", {**_object(a=_INT, b=_INT), "required": ["b"]}, {"a": 2}, {"a": 1}),
    Case("same-duplicates", {**_LIST, "x-kubernetes-list-type": "set"}, ["a", "a", "b"], ["a", "a"]),
    Case("same-rule", {**_INT, **_rule("self < 5")}, 9, 9),
    Case("changed-rule", {**_INT, **_rule("self < 5")}, 8, 9),
    Case("same-rule-in-atomic-list", {"type": "array", "maxItems": 5, "items": {**_INT, **_rule("self < 5")}}, [9], [9]),
    Case("changed-rule-in-atomic-list", {"type": "array", "maxItems": 5, "items": {**_INT, **_rule("self < 5")}}, [9, 1], [9]),
    Case("same-transition", {**_INT, **_rule("self != oldSelf", message="must change")}, 9, 9),
    Case("same-type", _INT, "text", "text"),
    Case("int-to-bool", {"type": "boolean"}, 1, True),
    Case("alternatives", {**_INT, "anyOf": [{"minimum": 10}, {"maximum": 2}]}, 5, 5),
)
