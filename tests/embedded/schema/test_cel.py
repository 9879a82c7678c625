"""CEL expressions: what they see, what they may do, and that they cannot run for ever."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.schema.budget import OF_AN_OBJECT, OF_THE_LOOP, budget
from applecart.embedded.schema.cel import ABSENT, MAX_LENGTH, DoesNotCompile, EvaluationFailed, Expression, OutOfBudget
from applecart.embedded.schema.patterns import compiled
from applecart.embedded.schema.schema_node import SchemaNode

TEXT = {"type": "string"}
INT = {"type": "integer"}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def expression(
    text: str, schema: dict[str, Any], *, optional: bool = False, is_root: bool = False, answer: Any = "bool"
) -> Expression:
    return Expression(text, SchemaNode(schema), answer, is_root=is_root, has_optional_old=optional)


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize(
    ("text", "schema", "value", "answer"),
    [
        ("self > 1", INT, 2, True),
        ("self / 2.0 == 0.5", {"type": "number"}, 1, True),
        ("self.all(x, x < 1.5)", {"type": "array", "items": {"type": "number"}}, [1], True),
        ("self.a == 1.0", properties(a={"type": "number"}), {"a": 1}, True),
        ("self == b'hi'", {"type": "string", "format": "byte"}, "aGk=", True),
        (
            "self['k'] == b'hi'",
            {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            {"k": "aGk="},
            True,
        ),
        ("self.getFullYear() == 2020", {"type": "string", "format": "date-time"}, "2020-05-01T00:00:00Z", True),
        ("self == duration('90s')", {"type": "string", "format": "duration"}, "1m30s", True),
        ("self.__namespace__ == 'a'", properties(namespace=TEXT), {"namespace": "a"}, True),
        ("self.in__dash__x.__if__ == 1", properties(**{"in-x": properties(**{"if": INT})}), {"in-x": {"if": 1}}, True),
        ("has(self.a)", properties(a=INT), {}, False),
        ("self.?a.orValue(5) == 5", properties(a=INT), {}, True),
        ("cel.bind(x, self.a, x + x == 4)", properties(a=INT), {"a": 2}, True),
        ("self == 1 || self == 'x'", {"x-kubernetes-int-or-string": True}, "x", True),
        (
            "self.t == self.u",
            properties(t={**TEXT, "format": "date-time"}, u={**TEXT, "format": "date-time"}),
            {"t": "x", "u": "x"},
            True,
        ),
    ],
)
def test_an_expression_sees_values_as_their_schema_types_them(
    text: str, schema: dict[str, Any], value: Any, answer: bool
) -> None:
    assert expression(text, schema).evaluate(value) is answer


def test_the_root_shows_identity_but_only_names_of_the_metadata() -> None:
    document = {"kind": "Pool", "metadata": {"name": "a", "labels": {}}}
    assert expression("self.metadata.name == 'a' && self.kind == 'Pool'", properties(), is_root=True).evaluate(document)
    with pytest.raises(DoesNotCompile, match="undefined field 'labels'"):
        expression("size(self.metadata.labels) == 0", properties(), is_root=True)
    with pytest.raises(DoesNotCompile, match="undefined field 'metadata'"):
        expression("self.metadata.name == 'a'", properties())


@pytest.mark.parametrize(
    ("text", "schema", "reason"),
    [
        ("self.b == 1", properties(a=INT), "ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^"),
        ("self.a.b == 1", properties(a=INT), "type 'int' does not support field selection"),
        ("true &&\n  self.b == 1", properties(a=INT), "ERROR: <input>:2:7: undefined field 'b'\n |   self.b == 1\n | ......^"),
        ("self.l.exists(x, x.b == 1)", properties(l={"type": "array", "items": properties(a=INT)}), "undefined field 'b'"),
        (
            "self.m['k'].b == 1",
            properties(m={"type": "object", "additionalProperties": properties(a=INT)}),
            "undefined field 'b'",
        ),
        ("(self.a > 1 ? self.o : self.o).b == 1", properties(a=INT, o=properties(a=INT)), "undefined field 'b'"),
        ("self.f.x == 1", properties(f={"type": "object", **ANYTHING}), "undefined field 'x'"),
        ("self == 'x'", INT, "found no matching overload"),
        ("self", INT, "must evaluate to a bool"),
        ("other == 1", INT, "undeclared reference"),
        (
            "self.t > timestamp('2020-01-01T00:00:00Z')",
            properties(t={**TEXT, "format": "date-time"}),
            "timestamps and durations",
        ),
        (
            "self.t == timestamp('2020-01-01T00:00:00Z')",
            properties(t={**TEXT, "format": "date-time"}),
            "timestamps and durations",
        ),
        ("x" * (MAX_LENGTH + 1), INT, "longer than"),
        ("self.exists(k, v, v == 1)", {"type": "object", "additionalProperties": INT}, "undeclared reference"),
        ("(" * 100 + "true" + ")" * 100, INT, "recursion limit"),
        ("", INT, "Syntax error"),
    ],
)
def test_what_cannot_be_run_exactly_is_refused(text: str, schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotCompile) as refused:
        expression(text, schema)
    assert reason in str(refused.value)


def test_columns_are_right_below_the_head_that_makes_the_old_value_optional() -> None:
    with pytest.raises(DoesNotCompile, match=r"<input>:1:10: undefined field 'b'"):
        expression("1 == self.b || oldSelf.hasValue()", properties(a=INT), optional=True)
    with pytest.raises(DoesNotCompile, match=r"<input>:1:2: undeclared reference to 'nope' .*\n \| !nope\n"):
        expression("!nope", INT, optional=True)


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("self.a == 1", {}, "no such key: a"),
        ("self.l[3] == 1", {"l": [1]}, "index out of bounds: 3"),
        ("1 / self.a == 1", {"a": 0}, "division by zero"),
        ("1 % self.a == 1", {"a": 0}, "modulus by zero"),
        ("self.a + 9223372036854775807 == 1", {"a": 1}, "integer overflow"),
        ("self.a.startsWith('x')", {"a": 1}, "no such overload"),
        ("quantity(self.a).isInteger()", {"a": "x"}, "quantities must match"),
        ("self.a == 1", {"a": 10**30}, "out of range"),
    ],
)
def test_an_expression_without_an_answer_says_why(text: str, value: Any, reason: str) -> None:
    schema = {"type": "object", "properties": {"a": ANYTHING, "l": {"type": "array", "items": INT}}}
    with pytest.raises(EvaluationFailed) as failed:
        expression(text, schema).evaluate(value)
    assert reason in str(failed.value)


def test_the_old_value_is_known_to_be_used() -> None:
    assert expression("self == oldSelf", INT).uses_old
    assert not expression("self == 1", INT).uses_old
    assert expression("oldSelf.hasValue()", INT, optional=True).uses_old
    assert not expression("self == 1", INT, optional=True).uses_old


def test_an_optional_old_value_may_be_absent() -> None:
    rule = expression("oldSelf.orValue(0) < self", INT, optional=True)
    assert rule.evaluate(1) is True
    assert rule.evaluate(1, 1) is False
    instant = {"type": "string", "format": "date-time"}
    assert expression("self < timestamp('2021-01-01T00:00:00Z')", instant, optional=True).evaluate(
        "2020-01-01T00:00:00Z", ABSENT
    )


def test_a_message_is_a_text() -> None:
    assert expression("'no ' + string(self)", INT, answer="string").evaluate(3) == "no 3"
    with pytest.raises(DoesNotCompile, match="must evaluate to a string"):
        expression("self", INT, answer="string")


@pytest.mark.parametrize(
    "text", ["self.all(x, self.exists(y, y == x))", "self.all(x, x in self)", "self.map(x, self.indexOf(x)).size() > 0"]
)
def test_nested_loops_over_much_data_are_not_begun(text: str) -> None:
    rule = expression(text, {"type": "array", "items": INT})
    assert rule.evaluate([1, 2, 3]) is True
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate([1] * 5000)


@pytest.mark.parametrize(
    "text",
    [
        f"self{'.map(x, x + x)' * 24}.size() > 0",
        f"self{'.map(x, [x, x])' * 24} == []",
        "".join(f"cel.bind(v{n + 1}, {f'v{n}' if n else 'self[0]'} + {f'v{n}' if n else 'self[0]'}, " for n in range(24))
        + "v24 != ''"
        + ")" * 24,
        "cel.bind(a, self.map(y, self), cel.bind(b, self.map(y, a), cel.bind(c, self.map(y, b), c == c)))",
        "cel.bind(a, self.map(y, true, self), cel.bind(b, a.map(y, self != [], a), cel.bind(c, b.map(y, true, b), c == c)))",
        "self[0]" + ".replace('a', 'aaaaaaaaaa')" * 8 + " != ''",
        "self[0]" + ".replace('a', self[0])" * 3 + " != ''",
    ],
    ids=["texts", "lists", "bound", "spread", "spread by some", "replaced", "replaced by data"],
)
def test_values_that_would_grow_beyond_measure_are_not_made(text: str) -> None:
    """Ten kilobytes that each of 24 loops doubles froze the server and took 22 GB."""
    rule = expression(text, {"type": "array", "items": TEXT})
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate(["a" * 10_000, *["b"] * 200])


@pytest.mark.parametrize(
    "text",
    [
        f"self.all(x, ('name ' + x{' + x' * 20}).size() > 0)",
        "self[0]" + ".replace('-', '_')" * 20 + " != ''",
        "self.filter(x, x != 'b').map(x, x + '!') != []",
        "self.map(x, self[0] + x) != []",
        "self.filter(x, x in self).filter(x, self.exists(y, y == x)).map(x, x) != []",
    ],
)
def test_values_that_grow_as_usual_cost_little(text: str) -> None:
    with budget(OF_THE_LOOP):
        assert expression(text, {"type": "array", "items": TEXT}).evaluate(["a" * 100] * 10) is True


def test_a_pattern_in_a_rule_is_compiled_once_and_paid_for() -> None:
    """The library compiles it at each use: 2 ms for this one, and a list of 10,000 items has as many uses."""
    rule = expression("self.all(x, x.matches('^(a|b)*a(a|b){900}$') || matches(x, 'ab'))", {"type": "array", "items": TEXT})
    before = compiled.cache_info().misses
    assert rule.evaluate(["ab"] * 50) is True
    assert compiled.cache_info().misses - before <= 2
    with budget(10_000), pytest.raises(OutOfBudget):
        rule.evaluate(["ab" * 100] * 50)
    with pytest.raises(EvaluationFailed, match=r"error parsing regexp: missing closing \): `\(`"):
        expression("self.matches('(')", TEXT).evaluate("a")
    with pytest.raises(DoesNotCompile):
        expression("self.re2find('a')", TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "self.a.contains(self.b)",
        "self.a.indexOf(self.b) < 0",
        "self.a.lastIndexOf(self.b) < 0",
        "self.a.split(self.b) == [self.a]",
    ],
)
def test_a_search_is_paid_for_before_it_begins(text: str) -> None:
    """The library compares each character with each: 1.4 MB took it 5.6 s, which nothing can interrupt."""
    rule = expression(text, properties(a=TEXT, b=TEXT))
    with budget(OF_THE_LOOP):
        assert rule.evaluate({"a": "ab" * 10_000, "b": "ba" * 100 + "a"}) in (True, False)
    for part in ("a" * 500_000 + "b", "b" + "a" * 500_000):
        with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
            rule.evaluate({"a": "a" * 1_000_000, "b": part})


@pytest.mark.parametrize(
    "text", ["cel.bind(n, oldSelf.n, self.x.all(a, n == n))", "self.x.all(a, size(self.n + self.n) > 0 || true)"]
)
def test_a_value_of_an_older_schema_is_paid_for_as_what_it_is(text: str) -> None:
    """What the schema calls a number now may be a stored list, and a write of a status asks rules about all that is stored."""
    rule = expression(text, properties(x={"type": "array", "items": INT}, n=INT))
    with budget(OF_THE_LOOP):
        assert rule.evaluate({"x": [1] * 100, "n": 1}, {"x": [], "n": 2}) is True
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate({"x": [1] * 5_000, "n": [1] * 5_000}, {"x": [], "n": [1] * 5_000})


@pytest.mark.parametrize("function", ["contains", "intersects", "equivalent"])
def test_sets_are_paid_for_before_they_are_compared(function: str) -> None:
    """Each value of one is looked for in the other: of 20,000 values each that is a second on the loop."""
    rule = expression(f"sets.{function}(self.a, self.b) || true", properties(a=ANYTHING, b=ANYTHING))
    with budget(OF_THE_LOOP):
        assert rule.evaluate({"a": list(range(100)), "b": list(range(100))}) is True
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate({"a": list(range(5_000)), "b": [-1] * 5_000})


@pytest.mark.parametrize("call", ["trim()", "reverse()", "charAt(9)", "lowerAscii()", "size()"])
def test_a_long_text_is_not_read_again_and_again(call: str) -> None:
    """10,000 rounds of 5 ms each, in one call."""
    schema = properties(text=TEXT, items={"type": "array", "items": INT})
    rule = expression(f"self.items.all(x, self.text.{call} == self.text.{call})", schema)
    with budget(OF_THE_LOOP):
        assert rule.evaluate({"text": "a" * 50, "items": [1] * 1_000}) is True
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate({"text": "a" * 700_000, "items": [1] * 1_000})
    with budget(OF_AN_OBJECT):
        long = " && ".join([f"self.text.{call} == self.text.{call}"] * 3)
        assert expression(long, schema).evaluate({"text": "a" * 100_000}) is True


LARGE: dict[str, Any] = {
    "x": list(range(5_000)),
    "s": "a" * 100_000,
    "m": {f"k{n}": n for n in range(5_000)},
    "t": ["ab"] * 5_000,
    "o": [{"a": n, "b": {"c": [n]}} for n in range(2_000)],
}
LISTS = properties(
    x={"type": "array", "items": INT},
    s=TEXT,
    m={"type": "object", "additionalProperties": INT},
    t={"type": "array", "items": TEXT},
    o={"type": "array", "items": properties(a=INT, b=properties(c={"type": "array", "items": INT}))},
    d=ANYTHING,
)


@pytest.mark.parametrize(
    "text",
    [
        "self.x.all(a, size(self.x + self.x + self.x) > 0)",
        "self.x.all(a, (self.x + self.x)[0] == 0)",
        "self.x.all(a, size(self.s + self.s) > 0)",
        "self.x.map(a, self.s + 'b').size() > 0",
        "self.x.all(a, self.x == self.x)",
        "self.x.exists(a, self.x != self.x) || true",
        "self.x.all(a, self.x in [[1], self.x])",
        "self.x.all(a, dyn(self.x) == dyn(self.x))",
        "self.x.all(a, self.d == self.x || true)",
        "self.m.all(k, self.m == self.m)",
        "self.x.all(a, {'a': self.x} == {'a': self.x})",
        "self.x.all(a, [[self.x]] == [[self.x]])",
        "self.x.all(a, self == self)",
        "self.o.all(a, self.o.filter(b, b == a).size() == 1)",
        "self.o.map(a, self.o).all(b, b == self.o)",
        "self.x.all(a, self.x.map(b, b) + self.x != [])",
        "cel.bind(y, self.x + self.x, self.x.all(a, y == y))",
        "self.s.split('').all(a, size(self.t + self.t) > 0)",
        f"{list(range(2_000))}.all(a, self.x == self.x)",
        f"{list(range(100))}.all(a, {list(range(99))}.all(b, self.x == self.x))",
        f"self.x.all(a, {[1] * 6_000} != [])",
        "self.x.all(a, self.t.join() != '')",
        "self.x.all(a, math.greatest(self.x) > 0)",
        "self.x.all(a, '%s'.format([self.x]) != '')",
        "self.x.all(a, base64.encode(bytes(self.s)) != '')",
        "self.x.all(a, !isQuantity(self.s))",
        "self.x.all(a, !self.m.isLessThan(self.m))",
        "self.x.all(a, !self.s.matches('b'))",
    ],
)
def test_what_walks_or_copies_a_large_value_in_each_round_is_not_begun(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """28 kB of integers, three times joined in each of 5,000 rounds, held the process for 9 s and took 5 GB."""
    rule = expression(text, LISTS)
    monkeypatch.setattr(rule, "_program", None)
    value = LARGE if "self.s" in text else {**LARGE, "s": ""}
    with budget(OF_AN_OBJECT), pytest.raises(OutOfBudget):
        rule.evaluate(value)


@pytest.mark.parametrize(
    "text",
    [
        "size(self.x + self.x + self.x) > 0 && self.x == self.x && self.m == self.m",
        "(self.s + self.s) != ''",
        "self.x.all(a, a + a >= a && a != -1 && size(self.x) > 0)",
        "self.x.all(a, self.s != '' && has(self.m.k1) && self.m['k1'] == 1 && self.x[0] == 0)",
        "self.o.all(a, a.b.c[0] == a.a && a.a in [1, 2, 3] || true)",
        "self.x.all(a, [self.x].size() > 0 && type(self.x) == list && self.?x.hasValue())",
        "self == oldSelf || self.x == oldSelf.x",
    ],
)
def test_what_looks_at_a_large_value_once_or_at_little_of_it_is_worked_out(text: str) -> None:
    with budget(OF_AN_OBJECT):
        assert expression(text, LISTS).evaluate(LARGE, LARGE) is True


@pytest.mark.parametrize(
    "text",
    [
        "self.o.all(a, self.o.exists_one(b, a.a == b.a && a.b == b.b))",
        "self.x.all(a, self.x == self.x && size(self.x + self.x) == 40)",
        "self.t.all(a, a in self.t && (a + '-' + self.s) != '' && a.matches('^[a-z]+$'))",
        "self.o == oldSelf.o && self.o.all(a, oldSelf.o.exists(b, a == b))",
        "self.m.all(k, self.m[k] == oldSelf.m[k] || k in ['a', 'b', 'c', 'd', 'e', 'f'])",
    ],
)
def test_rules_of_usual_objects_stay_on_the_loop(text: str) -> None:
    usual = {
        "x": list(range(20)),
        "s": "a" * 60,
        "m": {f"k{n}": n for n in range(20)},
        "t": ["ab"] * 10,
        "o": [{"a": n, "b": {"c": [n]}} for n in range(8)],
    }
    with budget(OF_THE_LOOP):
        assert expression(text, LISTS).evaluate(usual, usual) is True


@pytest.mark.parametrize(
    "text",
    [
        "[1].indexOf(optional.of(1)) == 0",
        "[1].indexOf(dyn(self.?a)) == 0",
        "[1].indexOf(true ? self.?a : self.a) == 0",
        "[1].indexOf(optional.none().orValue(self.?a)) == 0",
        "[1].indexOf(optional.none().or(optional.of(self.?a)).value()) == 0",
        "[optional.of(1)].sum() == 0",
        "[1].map(x, self.?a).isSorted()",
        "cel.bind(v, self.?a, {'a': v}.isLessThan({'b': 1}))",
        "oldSelf.isLessThan(self)",
    ],
)
def test_an_optional_value_is_handed_to_no_function_of_ours(text: str) -> None:
    """The library hands over nothing at all in its place, and the process ended there."""
    with pytest.raises(DoesNotCompile):
        expression(text, properties(a=ANYTHING), optional=True)


def test_an_optional_value_may_be_unwrapped_beside_our_functions() -> None:
    text = "[?self.?a, 1].indexOf(self.?a.or(optional.of(2)).orValue(3)) == 0 && {?'a': self.?a}.size() == 1"
    assert expression(f"{text} && self.?a.optMap(v, v + 1).value() == 6", properties(a=ANYTHING)).evaluate({"a": 5}) is True
    assert expression("[self.?a, self.?b].filter(x, x.hasValue()) != []", properties(a=INT, b=INT)).evaluate({"a": 5}) is True


def test_a_field_may_be_called_as_a_function_is() -> None:
    """The name of a field was taken for that of a function that is ours, and never found."""
    rule = expression("[self.split, self.matches].exists(x, x.matches(self.split))", properties(split=TEXT, matches=TEXT))
    assert rule.evaluate({"split": "b", "matches": "abc"}) is True


def test_a_single_loop_may_be_long_but_not_endless() -> None:
    rule = expression("self.all(x, x in [1, 2])", {"type": "array", "items": INT})
    assert rule.evaluate([1] * 9_000) is True
    with pytest.raises(OutOfBudget):
        rule.evaluate([1] * 20_000)


@settings(max_examples=120, deadline=None)
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(
            ["self", ".a", "(", ")", " == ", "1", "'x'", "[", "]", "oldSelf", ".all(x, ", "has(", " && ", "timestamp("]
        ),
        max_size=10,
    ).map("".join),
    st.booleans(),
)
def test_no_text_breaks_the_compiler(text: str, optional: bool) -> None:
    for schema in (INT, properties(a=INT), {"type": "array", "items": TEXT}):
        with suppress(DoesNotCompile, EvaluationFailed):
            compiled = expression(text, schema, optional=optional)
            assert compiled.evaluate({"a": 1}, {"a": 2}) in (True, False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(VALUES, VALUES)
def test_no_value_breaks_an_evaluation(value: Any, old: Any) -> None:
    rules = [
        expression("self == oldSelf", {"type": "object", "properties": {"a-b": {"type": "number"}}}),
        expression("size(self) > 0 && self.all(x, x == x)", {"type": "array", "items": {"type": "number"}}),
        expression("self > timestamp('2020-01-01T00:00:00Z')", {"type": "string", "format": "date-time"}),
        expression("self == b'x'", {"type": "string", "format": "byte"}),
    ]
    for rule in rules:
        with suppress(EvaluationFailed):
            assert rule.evaluate(value, old) in (True, False)
