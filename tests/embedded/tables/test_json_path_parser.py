"""How a path is read, and what is said about one that cannot be."""

import pytest

from applecart.embedded.tables.json_path_parser import (
    MAX_LENGTH,
    Field,
    Filter,
    Literal,
    Node,
    Recursive,
    Slice,
    Union,
    Wildcard,
    Word,
    parse,
)

LAST = Slice(-1, 0, None, is_index=True)
EVERY = Slice(None, None, None, is_index=False)


@pytest.mark.parametrize(
    ("path", "nodes"),
    [
        ("", ()),
        (".a.b", (Field("a"), Field("b"))),
        ("$.a", (Field("a"),)),
        (".a\\.b", (Field("a.b"),)),
        (".a\\", (Field("a"),)),
        ("['a.b']", (Field("a"), Field("b"))),
        ("['a\\.b']", (Field("a.b"),)),
        (".*", (Wildcard(),)),
        ("..a", (Recursive(), Field("a"))),
        ("..[0]", (Recursive(), Slice(0, 1, None, is_index=True))),
        ("[-1]", (LAST,)),
        ("[*]", (EVERY,)),
        ("[]", (Slice(None, 1, None, is_index=True),)),
        ("[1:]", (Slice(1, None, None, is_index=False),)),
        ("[::2]", (Slice(None, None, 2, is_index=False),)),
        ("[0, -1]", (Union(((Slice(0, 1, None, is_index=True),), (LAST,))),)),
        ("[?(@.a)]", (Filter((Field("a"),), "exists"),)),
        ("[?(@.a==5)]", (Filter((Field("a"),), "==", (Literal(5),)),)),
        ("[?(@.a!='x')]", (Filter((Field("a"),), "!=", (Literal("x", is_text=True),)),)),
        ("[?(@.a=='(]')]", (Filter((Field("a"),), "==", (Literal("(]", is_text=True),)),)),
        ("[?(@.a==-1.5)]", (Filter((Field("a"),), "==", (Literal(-1.5),)),)),
        ("[?(@.a==true)]", (Filter((Field("a"),), "==", (Literal(value=True),)),)),
        (r"'it\'s'", (Literal("it's", is_text=True),)),
        (r'"\t\x41\u00e9\U0001F34E\101"', (Literal("\tA\u00e9\U0001f34eA", is_text=True),)),
        (".a range", (Field("a"), Word("range"))),
        (".a}.b", (Field("a"),)),
        ("+7", (Literal(7),)),
        ("9223372036854775808", (Literal(9223372036854775808.0),)),
    ],
)
def test_a_path_is_read_into_nodes(path: str, nodes: tuple[Node, ...]) -> None:
    assert parse(path) == nodes


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("[", "unterminated array"),
        ("[a]", "invalid array index a"),
        ("[-]", "array index - is not a number"),
        ("[99999999999999999999]", "array index 99999999999999999999 is not a number"),
        (f"[{'9' * 5000}]", "is not a number"),
        ("[?(@.a", "unterminated filter"),
        ("[?(@.a)", "unclosed array expect ]"),
        ("[?(@.a=='x)]", "unterminated filter"),
        ("....a", "invalid multiple recursive descent"),
        ('"x', "unterminated quoted string"),
        (r'"\q"', "error invalid syntax"),
        (r'"\'"', "error invalid syntax"),
        (r'"\ud800"', "error invalid syntax"),
        (r'"\U00110000"', "error invalid syntax"),
        ("1.2.3", "cannot parse number 1.2.3"),
        ("+", "cannot parse number +"),
        ("#", "unrecognized character in action: U+0023 '#'"),
        (".a\n", "unclosed action"),
        ("[?(@.a==1 && @.b==2)]", "unrecognized character in action: U+0026"),
        ("." * (MAX_LENGTH + 1), f"a path may have {MAX_LENGTH} characters"),
        ("[?(" * 60 + ")]" * 60, "unterminated filter"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused_with_a_sentence(path: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(path)
    assert sentence in str(caught.value)
