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


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _all(*conditions: str) -> str:
    return " && ".join(conditions)


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more}]}


INT = {"type": "integer"}
TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
LIST = {"type": "array", "items": TEXT}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": {"type": "integer", "maximum": 5}}},
}
_TWO_KEYS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": INT, "protocol": {"type": "string", "default": "TCP"}},
    },
}
_EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
_UNION = {
    **struct(a=TEXT, b=TEXT, c=INT),
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
}
SHORT = {"type": "string", "maxLength": 20}
_SHORT_LIST = {"type": "array", "maxItems": 10, "items": SHORT}

CREATED = (
    Case("type-text", TEXT, 5),
    Case("type-int", INT, "x"),
    Case("type-int-float", INT, 1.5),
    Case("type-int-whole-float", INT, 2.0),
    Case("type-bool", {"type": "boolean"}, "true"),
    Case("type-number", _NUMBER, "1"),
    Case("type-number-int", _NUMBER, 3),
    Case("type-array", LIST, {"a": 1}),
    Case("type-object", struct(a=INT), [1]),
    Case("type-item", LIST, ["a", 1, None]),
    Case("null-dropped", struct(a=INT, b=TEXT), {"a": None, "b": "x"}),
    Case("null-kept", struct(a={**INT, "nullable": True}), {"a": None}),
    Case("null-defaulted", struct(a={**INT, "default": 4}), {"a": None}),
    Case("null-in-map", {"type": "object", "additionalProperties": INT}, {"x": None, "y": 1}),
    Case("enum", {"type": "string", "enum": ["a", "b"]}, "c"),
    Case("enum-int", {"type": "integer", "enum": [1, 2]}, 3),
    Case("enum-null", struct(a={"type": "string", "enum": ["a"], "nullable": True}), {"a": None}),
    Case("required", {**struct(a=INT, b=INT), "required": ["a", "b"]}, {}),
    Case("minimum", {**INT, "minimum": 1}, 0),
    Case("minimum-exclusive", {**INT, "minimum": 1, "exclusiveMinimum": True}, 1),
    Case("maximum", {**INT, "maximum": 10}, 11),
    Case("maximum-exclusive", {**_NUMBER, "maximum": 1.5, "exclusiveMaximum": True}, 1.5),
    Case("minimum-float", {**_NUMBER, "minimum": 0.5}, 0.25),
    Case("multiple", {**INT, "multipleOf": 5}, 7),
    Case("multiple-float", {**_NUMBER, "multipleOf": 0.1}, 0.25),
    Case("int32", {**INT, "format": "int32"}, 2**31),
    Case("int32-limits", {**INT, "format": "int32", "maximum": 100}, 2**40),
    Case("min-length", {**TEXT, "minLength": 3}, "ab"),
    Case("max-length", {**TEXT, "maxLength": 3}, "abcd"),
    Case("max-length-one", {**TEXT, "maxLength": 1}, "ab"),
    Case("length-in-characters", {**TEXT, "maxLength": 3}, "äöü"),
    Case("pattern", {**TEXT, "pattern": "^[a-z]+$"}, "A1"),
    Case("pattern-newline", {**TEXT, "pattern": "^[a-z]+$"}, "abc\n"),
    Case("pattern-re2", {**TEXT, "pattern": r"^\pL+(-[[:digit:]]+)*$"}, "ab-1-x"),
    Case("pattern-unanchored", {**TEXT, "pattern": "b"}, "abc"),
    Case("min-items", {**LIST, "minItems": 1}, []),
    Case("max-items", {**LIST, "maxItems": 1}, ["a", "b"]),
    Case("min-properties", {"type": "object", "additionalProperties": INT, "minProperties": 1}, {}),
    Case("max-properties", {"type": "object", "additionalProperties": INT, "maxProperties": 1}, {"a": 1, "b": 2}),
    Case("map-value", {"type": "object", "additionalProperties": {**INT, "minimum": 0}}, {"a.b": -1}),
    Case("prune", struct(a=INT, inner=struct(b=INT)), {"a": 1, "x": 1, "inner": {"b": 1, "y": {"z": 1}}}),
    Case("prune-items", {"type": "array", "items": struct(a=INT)}, [{"a": 1, "x": 2}]),
    Case("preserve", {**struct(a=struct(b=INT)), **ANY}, {"a": {"b": 1, "x": 1}, "free": {"deep": [1]}}),
    Case("preserve-list", {"type": "array", **ANY, "items": struct(a=INT)}, [{"a": 1, "x": 2}]),
    Case("any-members", {"type": "object", "additionalProperties": True}, {"a": {"b": 1}, "c": 1}),
    Case("default-nested", struct(a={**struct(b={**INT, "default": 3}), "default": {}}), {}),
    Case("default-items", {"type": "array", "items": struct(a={**TEXT, "default": "x"})}, [{}, {"a": "y"}]),
    Case("default-in-map", {"type": "object", "additionalProperties": struct(a={**INT, "default": 1})}, {"k": {}}),
    Case("int-or-string", {"x-kubernetes-int-or-string": True}, 1.5),
    Case("int-or-string-ok", {"x-kubernetes-int-or-string": True}, "10%"),
    Case(
        "int-or-string-pattern",
        {"x-kubernetes-int-or-string": True, "anyOf": [INT, TEXT], "pattern": "^[0-9]+%$"},
        "x",
    ),
    Case("one-of-none", _UNION, {"c": 1}),
    Case("one-of-both", _UNION, {"a": "x", "b": "y"}),
    Case("one-of-fits", _UNION, {"a": "x"}),
    Case("any-of", {**INT, "anyOf": [{"minimum": 10}, {"maximum": 2}]}, 5),
    Case("all-of", {**INT, "allOf": [{"minimum": 10}, {"maximum": 20}]}, 5),
    Case("all-of-none", {**INT, "allOf": [{"minimum": 10}, {"multipleOf": 2}]}, 5),
    Case("not", {**TEXT, "not": {"enum": ["bad"]}}, "bad"),
    Case("set-twice", {**LIST, "x-kubernetes-list-type": "set"}, ["a", "b", "a", "a"]),
    Case("keyed-twice", KEYED, [{"name": "a"}, {"name": "b"}, {"name": "a", "size": 2}]),
    Case("keyed-two-keys", _TWO_KEYS, [{"port": 1}, {"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]),
    Case("keyed-bad-item", KEYED, [{"name": "a", "size": 9}, {"size": 1}]),
    Case("embedded-no-identity", _EMBEDDED, {"spec": {}}),
    Case("embedded-bad-kind", _EMBEDDED, {"apiVersion": "a/b/c", "kind": "a_b", "metadata": {"name": "ok"}}),
    Case("embedded-bad-labels", _EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}),
    Case(
        "embedded-unknown-meta", _EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bogus": 1}, "x": 1}
    ),
    *(
        Case(f"format-{name}-{number}", {**TEXT, "format": name}, value)
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
    Case("format-on-int", {**TEXT, "format": "date-time"}, 5),
    Case("format-on-bool", {**TEXT, "format": "ipv4"}, True),
    Case("rule-text", {**SHORT, **rule("self.startsWith('a')")}, "b"),
    Case("rule-message", {**SHORT, **rule("self == 'a'", message="must be a")}, "b"),
    Case("rule-object", {**struct(a=INT, b=INT), **rule("self.a < self.b", message="a before b")}, {"a": 2, "b": 1}),
    Case("rule-absent-field", {**struct(a=INT), **rule("self.a > 1")}, {}),
    Case("rule-has", {**struct(a=INT), **rule("!has(self.a) || self.a > 1")}, {"a": 1}),
    Case(
        "rule-field-path",
        {**struct(a=INT), **rule("self.a > 1", fieldPath=".a", reason="FieldValueForbidden", message="no")},
        {"a": 1},
    ),
    Case(
        "rule-required",
        {**struct(a=INT), **rule("has(self.a)", fieldPath=".a", reason="FieldValueRequired", message="say a")},
        {},
    ),
    Case("rule-duplicate", {**INT, **rule("self != 3", reason="FieldValueDuplicate")}, 3),
    Case(
        "rule-message-expression",
        {**INT, **rule("self < 3", messageExpression="self > 100 ? 'far too large' : 'too large'", message="no")},
        5,
    ),
    Case("rule-empty-message-expression", {**INT, **rule("self < 3", messageExpression="' '", message="plain")}, 5),
    Case("rule-list", {**_SHORT_LIST, **rule("self.all(x, x.size() > 1)")}, ["ab", "c"]),
    Case("rule-item", {"type": "array", "maxItems": 5, "items": {**SHORT, **rule("self != 'x'")}}, ["a", "x"]),
    Case(
        "rule-map-value",
        {"type": "object", "maxProperties": 5, "additionalProperties": {**INT, **rule("self > 0")}},
        {"k.v": 0},
    ),
    Case(
        "rule-map",
        {"type": "object", "maxProperties": 5, "additionalProperties": INT, **rule("self.all(k, self[k] > 0)")},
        {"k": 0},
    ),
    Case(
        "rule-escaped",
        {
            **struct(**{"namespace": SHORT, "a-b": INT, "x__y": INT}),
            **rule(_all("self.__namespace__ == 'a'", "self.a__dash__b == 1", "self.x__underscores__y == 2")),
        },
        {"namespace": "a", "a-b": 1, "x__y": 3},
    ),
    Case("rule-divide", {**INT, **rule("10 / self == 1")}, 0),
    Case("rule-overflow", {**INT, **rule("self + 9223372036854775807 > 0")}, 5),
    Case("rule-index", {**_SHORT_LIST, **rule("self[3] == 'a'")}, ["a"]),
    Case("rule-number", {**_NUMBER, **rule("self / 2.0 < 1.0")}, 3),
    Case("rule-int-or-string", {"x-kubernetes-int-or-string": True, **rule("type(self) == int ? self > 0 : self == 'x'")}, 0),
    Case(
        "rule-date",
        {**TEXT, "format": "date-time", **rule("self > timestamp('2020-01-01T00:00:00Z')")},
        "2019-01-01T00:00:00Z",
    ),
    Case("rule-duration", {**TEXT, "format": "duration", **rule("self < duration('1h')")}, "2h"),
    Case("rule-bytes", {**TEXT, "format": "byte", "maxLength": 20, **rule("self == b'hello'")}, "aGVsbG8="),
    Case("rule-matches", {**SHORT, **rule("self.matches('^[a-z]+$')")}, "A"),
    Case("rule-optional", {**struct(a=INT), **rule("self.?a.orValue(3) < 3")}, {}),
    Case(
        "rule-strings",
        {
            **SHORT,
            **rule(
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
            "items": INT,
            **rule(
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
            **rule(
                _all("sets.contains(self, ['a'])", "sets.intersects(self, ['b'])", "sets.equivalent(self, ['b', 'a', 'a'])")
            ),
        },
        ["a", "b"],
    ),
    Case(
        "rule-regex",
        {
            **SHORT,
            **rule(
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
            **SHORT,
            **rule(
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
    Case("rule-quantity-bad", {**SHORT, **rule("isQuantity(self)")}, "2Q"),
    Case(
        "rule-url",
        {
            **SHORT,
            **rule(
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
            **SHORT,
            **rule(
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
            **SHORT,
            **rule(
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
        {**SHORT, **rule(_all("isSemver(self)", "semver(self).isLessThan(semver('1.2.3'))", "semver(self).major() == 1"))},
        "1.2.3-rc.1",
    ),
    Case("rule-format-text", {**SHORT, **rule("'%s-%d'.format([self, 3]) == 'a-3'")}, "a"),
    Case("rule-transition-on-create", {**INT, **rule("self >= oldSelf")}, 1),
    Case(
        "rule-optional-old-on-create",
        {**INT, **rule("oldSelf.hasValue() || self == 0", optionalOldSelf=True, message="start at 0")},
        1,
    ),
    Case("rule-and-limit", {**INT, "minimum": 5, **rule("self > 6")}, 1),
    Case(
        "rule-embedded",
        {**_EMBEDDED, **rule("self.metadata.name == 'a' && self.kind == 'Pod'")},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}},
    ),
)
