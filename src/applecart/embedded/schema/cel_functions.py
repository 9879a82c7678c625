"""Google's CEL library, which ships without type information, and the functions Kubernetes adds to it.

Those are for lists, sets, regular expressions, quantities, URLs, addresses and versions. The library hands only plain values to
Python, so a quantity, URL, address or version is a map with a `kind`. Two of them are equal when they mean the same, because
each map holds a canonical form. A function that has no answer raises ValueError, which becomes the rule's error.
"""

import ctypes
import ipaddress
import re
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice, pairwise
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import (  # type: ignore[import-untyped]
    ext_bindings,
    ext_encoders,
    ext_math,
    ext_optional,
    ext_strings,
)

from applecart.api.quantity import NANOS, BadQuantity, parse_quantity
from applecart.embedded.schema.budget import spend
from applecart.embedded.schema.patterns import compiled, found_in, is_found

STANDARD_EXTENSIONS = (
    ext_strings.ExtStrings(),
    ext_optional.ExtOptional(),
    ext_math.ExtMath(),
    ext_bindings.ExtBindings(),
    ext_encoders.ExtEncoders(),
)

__all__ = ["STANDARD_EXTENSIONS", "cel"]
_Type = cel.Type
_ANY, _TEXT, _INT, _BOOL, _FLOAT = _Type.DYN, _Type.STRING, _Type.INT, _Type.BOOL, _Type.DOUBLE
_LIST, _TAGGED = _Type.List(_Type.DYN), _Type.Map(_Type.STRING, _Type.DYN)
Tagged = dict[str, Any]
LARGEST_INT = 2**63 - 1
# What the library does in ways that can take seconds, and we do instead: patterns are compiled once, and a search is paid for
# before it begins. No rule can say these names, and they are as long (`cel.py`).
OURS = {name: b"@" + name[1:] for name in (b"matches", b"contains", b"indexOf", b"lastIndexOf", b"replace", b"split")}
IN_PYTHON: set[str] = set()  # names of all functions that are here
LEAKING_VERSION = "0.1.3"  # of the library; in another one one reference too many or too few would end the process
_release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))
_retain = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_IncRef", ctypes.pythonapi))
_answered = threading.local()
COMPARED_PER_STEP = 20  # values of lists
CHARACTERS_PER_STEP = 1_000  # of a text, times those that are looked for in it: what the real server's costs come to
_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


def kubernetes_functions() -> list[cel.FunctionDecl]:
    """Declarations with implementations, for the library."""
    overloads: dict[str, list[cel.Overload]] = {}

    def add(
        name: str, answer: cel.Type, parameters: list[cel.Type], implementation: Callable[..., Any], *, is_member: bool = False
    ) -> None:
        known = overloads.setdefault(name, [])
        identity = f"kubernetes_{name.replace('.', '_')}_{len(known)}"
        known.append(cel.Overload(identity, answer, parameters, is_member, _released(implementation, len(parameters))))
        IN_PYTHON.add(name)

    def method(name: str, answer: cel.Type, parameters: list[cel.Type], implementation: Callable[..., Any]) -> None:
        add(name, answer, parameters, implementation, is_member=True)

    _add_lists(add, method)
    _add_searches(method)
    _add_quantities(add, method)
    _add_addresses(add, method)
    method("isGreaterThan", _BOOL, [_TAGGED, _TAGGED], lambda one, other: _compare(one, other) > 0)
    method("isLessThan", _BOOL, [_TAGGED, _TAGGED], lambda one, other: _compare(one, other) < 0)
    method("compareTo", _INT, [_TAGGED, _TAGGED], lambda one, other: _compare(one, other))
    return [cel.FunctionDecl(name, known) for name, known in overloads.items()]


def _released(implementation: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function, without what the library does wrong: it releases neither the tuple of arguments nor the answer, and puts
    None into the tuple without a reference of its own. Only ctypes hands over the tuple itself; what it calls does nothing."""
    if version("cel-expr-python") != LEAKING_VERSION:
        return implementation

    def call(_: int, __: Any, arguments: tuple[Any, ...]) -> Any:
        before = _answered.__dict__.pop("answer", _answered)
        if before is not _answered:  # by now it is a value of the library's own
            _release(id(before))
        for _ in range(_nones(arguments)):
            _retain(id(None))
        _release(id(arguments))
        answer = implementation(*arguments)
        _answered.answer = answer  # and nothing is called before the library has it: whatever is called may raise
        return answer

    library_calls: Any = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.py_object] * count)(("Py_IsInitialized", ctypes.pythonapi))
    library_calls.errcheck = call
    return library_calls  # type: ignore[no-any-return]


def _nones(arguments: tuple[Any, ...]) -> int:
    nones, waiting = 0, list(arguments)
    while waiting:
        one = waiting.pop()
        nones += one is None
        if type(one) is dict or type(one) is list:
            waiting.extend(one.values() if type(one) is dict else one)
    return nones


def _add_lists(add: Callable[..., None], method: Callable[..., None]) -> None:
    method("isSorted", _BOOL, [_LIST], lambda values: all(not later < one for one, later in pairwise(values)))
    method("sum", _ANY, [_LIST], _sum)
    method("min", _ANY, [_LIST], lambda values: _pick(values, min))
    method("max", _ANY, [_LIST], lambda values: _pick(values, max))
    for first, last in (("indexOf", "lastIndexOf"), (_ours("indexOf"), _ours("lastIndexOf"))):
        method(first, _INT, [_LIST, _ANY], lambda values, wanted: _index(values, wanted, range(len(values))))
        method(last, _INT, [_LIST, _ANY], lambda values, wanted: _index(values, wanted, range(len(values) - 1, -1, -1)))
    add("sets.contains", _BOOL, [_LIST, _LIST], lambda one, other: all(_each_found(other, one)))
    add("sets.intersects", _BOOL, [_LIST, _LIST], lambda one, other: any(_each_found(other, one)))
    add(
        "sets.equivalent",
        _BOOL,
        [_LIST, _LIST],
        lambda one, other: all(_each_found(one, other)) and all(_each_found(other, one)),
    )
    for is_member in (True, False):
        add(
            _ours("matches"),
            _BOOL,
            [_TEXT, _TEXT],
            lambda text, pattern: is_found(compiled(pattern), text),
            is_member=is_member,
        )
    method("find", _TEXT, [_TEXT, _TEXT], _find)
    method("findAll", _LIST, [_TEXT, _TEXT], lambda text, pattern: _find_all(text, pattern, -1))
    method("findAll", _LIST, [_TEXT, _TEXT, _INT], _find_all)


def _ours(name: str) -> str:
    return OURS[name.encode()].decode()


def _add_searches(method: Callable[..., None]) -> None:
    texts = _Type.List(_TEXT)
    method(_ours("contains"), _BOOL, [_TEXT, _TEXT], _contains)
    for more in ([], [_INT]):
        method(_ours("indexOf"), _INT, [_TEXT, _TEXT, *more], _first_index)
        method(_ours("lastIndexOf"), _INT, [_TEXT, _TEXT, *more], _last_index)
        method(_ours("replace"), _TEXT, [_TEXT, _TEXT, _TEXT, *more], _replaced)
        method(_ours("split"), texts, [_TEXT, _TEXT, *more], _split)


def _add_quantities(add: Callable[..., None], method: Callable[..., None]) -> None:
    add("isQuantity", _BOOL, [_TEXT], lambda text: _holds(_quantity, text))
    add("quantity", _TAGGED, [_TEXT], _quantity)
    method("sign", _INT, [_TAGGED], lambda one: (_nanos(one) > 0) - (_nanos(one) < 0))
    method("isInteger", _BOOL, [_TAGGED], lambda one: _nanos(one) % NANOS == 0 and abs(_nanos(one)) // NANOS <= LARGEST_INT)
    method("asInteger", _INT, [_TAGGED], _as_integer)
    method("asApproximateFloat", _FLOAT, [_TAGGED], lambda one: _nanos(one) / NANOS)
    for name, sign in (("add", 1), ("sub", -1)):
        method(name, _TAGGED, [_TAGGED, _TAGGED], lambda one, other, sign=sign: _of_nanos(_nanos(one) + sign * _nanos(other)))
        method(name, _TAGGED, [_TAGGED, _INT], lambda one, other, sign=sign: _of_nanos(_nanos(one) + sign * other * NANOS))
    add("isSemver", _BOOL, [_TEXT], lambda text: _holds(_version, text))
    add("semver", _TAGGED, [_TEXT], _version)
    for place, name in enumerate(("major", "minor", "patch")):
        method(name, _INT, [_TAGGED], lambda one, place=place: _part(one, "semver", "numbers")[place])


def _add_addresses(add: Callable[..., None], method: Callable[..., None]) -> None:
    add("isURL", _BOOL, [_TEXT], lambda text: _holds(_url, text))
    add("url", _TAGGED, [_TEXT], _url)
    for name in ("Scheme", "Host", "Hostname", "Port", "EscapedPath"):
        method(f"get{name}", _TEXT, [_TAGGED], lambda one, name=name: _part(one, "url", name))
    method("getQuery", _TAGGED, [_TAGGED], lambda one: _part(one, "url", "Query"))
    add("isIP", _BOOL, [_TEXT], lambda text: _holds(_ip, text))
    add("ip", _TAGGED, [_TEXT], _ip)
    add("ip.isCanonical", _BOOL, [_TEXT], lambda text: _part(_ip(text), "ip", "address") == text)
    for name, fact in _ADDRESS_FACTS.items():
        method(name, _BOOL, [_TAGGED], lambda one, fact=fact: fact(ipaddress.ip_address(_part(one, "ip", "address"))))
    method("family", _INT, [_TAGGED], lambda one: ipaddress.ip_address(_part(one, "ip", "address")).version)
    add("isCIDR", _BOOL, [_TEXT], lambda text: _holds(_cidr, text))
    add("cidr", _TAGGED, [_TEXT], _cidr)
    method("containsIP", _BOOL, [_TAGGED, _TEXT], lambda one, text: _contains_ip(one, _ip(text)))
    method("containsIP", _BOOL, [_TAGGED, _TAGGED], lambda one, other: _contains_ip(one, other))
    method("containsCIDR", _BOOL, [_TAGGED, _TEXT], lambda one, text: _contains_cidr(one, _cidr(text)))
    method("containsCIDR", _BOOL, [_TAGGED, _TAGGED], lambda one, other: _contains_cidr(one, other))
    method("ip", _TAGGED, [_TAGGED], lambda one: _ip(_part(one, "cidr", "cidr").partition("/")[0]))
    method("masked", _TAGGED, [_TAGGED], lambda one: _cidr(str(ipaddress.ip_network(_part(one, "cidr", "cidr"), strict=False))))
    method("prefixLength", _INT, [_TAGGED], lambda one: int(_part(one, "cidr", "cidr").partition("/")[2]))


_ADDRESS_FACTS: dict[str, Callable[[Any], bool]] = {
    "isUnspecified": lambda address: address.is_unspecified,
    "isLoopback": lambda address: address.is_loopback,
    "isLinkLocalUnicast": lambda address: address.is_link_local,
    "isLinkLocalMulticast": lambda one: one in ipaddress.ip_network("224.0.0.0/24" if one.version == 4 else "ff02::/16"),
    "isGlobalUnicast": lambda one: (
        not any((one.is_unspecified, one.is_loopback, one.is_multicast, one.is_link_local, str(one) == "255.255.255.255"))
    ),
}


def _holds(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _part(value: Tagged, kind: str, name: str) -> Any:
    if value.get("kind") != kind:
        raise ValueError("no such overload")
    return value[name]


def _each_found(values: list[Any], within: list[Any]) -> Iterator[bool]:
    spend(len(values) * len(within) // COMPARED_PER_STEP)
    return (value in within for value in values)


def _sum(values: list[Any]) -> Any:
    if values and type(values[0]) is list:  # which Python would join
        raise ValueError("no such overload")
    total = sum(values[1:], start=values[0]) if values else 0
    if type(total) is int and abs(total) > LARGEST_INT:
        raise ValueError("integer overflow")
    return total


def _pick(values: list[Any], choose: Callable[[list[Any]], Any]) -> Any:
    if not values:
        raise ValueError(f"{choose.__name__} called on empty list")
    return choose(values)


def _index(values: list[Any], wanted: Any, places: range) -> int:
    return next((place for place in places if values[place] == wanted), -1)


def _pay_for_search(text: str, part: str) -> None:
    spend(1 + len(text) * (1 + len(part)) // CHARACTERS_PER_STEP)


def _contains(text: str, part: str) -> bool:
    _pay_for_search(text, part)
    return part in text


def _first_index(text: str, part: str, start: int = 0) -> int:
    _pay_for_search(text, part)
    _refuse_outside(text, start)
    return text.find(part, start)


def _last_index(text: str, part: str, start: int | None = None) -> int:
    _pay_for_search(text, part)
    if start is not None:
        _refuse_outside(text, start)
        text = text[: start + len(part)]
    found = text[::-1].find(part[::-1])  # only forwards Python bounds its worst case
    return found if found < 0 else len(text) - found - len(part)


def _refuse_outside(text: str, start: int) -> None:
    if not 0 <= start <= len(text):
        raise ValueError(f"index out of range: {start}")


def _replaced(text: str, old: str, new: str, most: int = -1) -> str:
    _pay_for_search(text, old)
    return text.replace(old, new, max(most, -1))


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    _pay_for_search(text, separator)
    if most == 0:
        return []
    if separator:
        return text.split(separator, max(most - 1, -1))
    return list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]


def _find(text: str, pattern: str) -> str:
    return next(iter(_find_all(text, pattern, 1)), "")


def _find_all(text: str, pattern: str, limit: int) -> list[str]:
    found = found_in(text, pattern)
    return list(found if limit < 0 else islice(found, limit))


def _quantity(text: str) -> Tagged:
    try:
        return _of_nanos(parse_quantity(text).nanos)
    except BadQuantity as error:
        raise ValueError(str(error)) from None


def _of_nanos(nanos: int) -> Tagged:
    return {"kind": "quantity", "nanos": str(nanos)}  # a text, because it may be longer than 63 bits


def _nanos(value: Tagged) -> int:
    return int(_part(value, "quantity", "nanos"))


def _as_integer(value: Tagged) -> int:
    whole, rest = divmod(_nanos(value), NANOS)
    if rest or abs(whole) > LARGEST_INT:
        raise ValueError("cannot convert value to integer")
    return whole


def _compare(one: Tagged, other: Tagged) -> int:
    if one.get("kind") == "quantity":
        left, right = _nanos(one), _nanos(other)
        return (left > right) - (left < right)
    before, after = _precedence(one), _precedence(other)
    return (before > after) - (before < after)


def _version(text: str) -> Tagged:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a valid semantic version")
    return {
        "kind": "semver",
        "numbers": [int(match[1]), int(match[2]), int(match[3])],
        "pre": match[4] or "",
        "build": match[5] or "",
    }


def _precedence(value: Tagged) -> tuple[Any, ...]:
    """Sorts as versions do: a release after its previews, numbers before words."""
    parts = [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in _part(value, "semver", "pre").split(".") if part
    ]
    return (*value["numbers"], not parts, parts)


def _url(text: str) -> Tagged:
    """An absolute URL or an absolute path."""
    if any(ord(character) < 0x20 or character == "\x7f" for character in text):
        raise ValueError("URL parse error during conversion from string: invalid control character in URL")
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    port = "" if parts.port is None else str(parts.port)
    host = parts.netloc.rpartition("@")[2]
    query = {name: list(values) for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return {
        "kind": "url",
        "Scheme": parts.scheme,
        "Host": host,
        "Hostname": unquote(parts.hostname or ""),
        "Port": port,
        "EscapedPath": parts.path,
        "Query": query,
    }


def _ip(text: str) -> Tagged:
    address = ipaddress.ip_address(text)
    if "%" in text or (address.version == 6 and address.ipv4_mapped is not None):
        raise ValueError(f"IP Address {text!r} parse error during conversion from string")
    return {"kind": "ip", "address": str(address)}


def _cidr(text: str) -> Tagged:
    address, slash, length = text.partition("/")
    if not slash or not length.isdigit():
        raise ValueError(f"network address parse error during conversion from string: {text!r}")
    ipaddress.ip_network(text, strict=False)
    return {"kind": "cidr", "cidr": f"{ipaddress.ip_address(address)}/{int(length)}"}


def _contains_ip(value: Tagged, other: Tagged) -> bool:
    network = ipaddress.ip_network(_part(value, "cidr", "cidr"), strict=False)
    return ipaddress.ip_address(_part(other, "ip", "address")) in network


def _contains_cidr(value: Tagged, other: Tagged) -> bool:
    network = ipaddress.ip_network(_part(value, "cidr", "cidr"), strict=False)
    inner = ipaddress.ip_network(_part(other, "cidr", "cidr"), strict=False)
    return inner.version == network.version and inner[0] in network and inner[-1] in network
