"""Which labels a selector means, for those who hold the labels already: the API does the selecting of everything else."""

import re
from collections.abc import Callable, Mapping
from functools import cache

_split = re.compile(r",(?![^(]*\))").split
_AMONG = re.compile(r"(?P<key>[^\s=!<>]+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)")
_COMPARED = re.compile(r"(?P<key>[^\s=!<>]+)\s*(?P<how>==|=|!=|<|>)\s*(?P<value>\S*)")

Labels = Mapping[str, str]


def selects(selector: str, labels: Labels) -> bool:
    """Whether the API would select an object with these labels. What of a selector it would refuse is not defined."""
    return all(holds(labels) for holds in _requirements(selector))


@cache
def _requirements(selector: str) -> tuple[Callable[[Labels], bool], ...]:
    return tuple(_requirement(part.strip()) for part in _split(selector) if part.strip())


def _requirement(text: str) -> Callable[[Labels], bool]:
    if found := _AMONG.fullmatch(text):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        is_wanted = found["how"] == "in"
        return lambda labels: (labels.get(key) in values) is is_wanted
    if found := _COMPARED.fullmatch(text):
        key, how, value = found["key"], found["how"], found["value"]
        if how in "<>":
            return lambda labels: _is_beyond(labels.get(key, ""), how, value)
        return lambda labels: (labels.get(key) == value) is (how != "!=")
    if text.startswith("!"):
        return lambda labels: text[1:].strip() not in labels
    return lambda labels: text in labels


def _is_beyond(label: str, how: str, bound: str) -> bool:
    try:
        return int(label) > int(bound) if how == ">" else int(label) < int(bound)
    except ValueError:
        return False
