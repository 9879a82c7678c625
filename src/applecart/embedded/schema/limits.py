"""Limits of numbers: range of the format, multiples, minimum and maximum, in the real validator's words.

A limit is stored as a float. Held against a whole number it is cut to one first, as the real server does.
"""

import math

from applecart.embedded.field_errors import FieldError
from applecart.embedded.schema.node import Node

_INT_RANGES = {"int32": 2**31, "int64": 2**63, "": 2**63}
LARGEST_FLOAT32 = 3.4028234663852886e38


def number_problems(node: Node, value: float, path: str, field: str) -> list[FieldError]:
    """`value` is an int or a float, never a bool."""
    found: list[FieldError] = []

    def is_in_range(number: float, what: str) -> bool:
        if _fits_format(node, number):
            return True
        named = f"with format {node.format}" if node.format else "(default format)"
        text = f"{what} value must be of type {node.type} {named} in {path}"
        found.append(FieldError("Invalid", "<nil>", text, ""))
        return False

    def add(text: str) -> None:
        found.append(FieldError("Invalid", field, f"{path} in body should be {text}", value))

    is_in_range(value, "Checked")
    if (factor := node.multiple_of) is not None:
        fits = is_in_range(factor, "MultipleOf")
        if factor > 0 and not _is_multiple(value, factor, fits):
            add(f"a multiple of {_bound(value, factor, fits)}")
    if (low := node.minimum) is not None:
        fits = is_in_range(low, "Minimum boundary")
        limit = int(low) if type(value) is int and fits else low
        if value < limit or (node.excludes_minimum and value == limit):
            add(f"greater than {'' if node.excludes_minimum else 'or equal to '}{_bound(value, low, fits)}")
    if (high := node.maximum) is not None:
        fits = is_in_range(high, "Maximum boundary")
        limit = int(high) if type(value) is int and fits else high
        if value > limit or (node.excludes_maximum and value == limit):
            add(f"less than {'' if node.excludes_maximum else 'or equal to '}{_bound(value, high, fits)}")
    return found


def go_float(number: float) -> str:
    """A float as Go prints it: no point for whole numbers, an exponent from 1e21 on."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent}" if e else text


def _bound(value: float, limit: float, fits: bool) -> str:
    return str(int(limit)) if type(value) is int and fits else go_float(limit)


def _fits_format(node: Node, number: float) -> bool:
    if node.type == "integer":
        reach = _INT_RANGES[node.format]
        return math.isfinite(number) and number == int(number) and -reach <= number < reach
    return node.format != "float" or abs(number) <= LARGEST_FLOAT32


def _is_multiple(value: float, factor: float, fits: bool) -> bool:
    if type(value) is int and fits:
        return int(factor) <= 0 or value % int(factor) == 0
    if not math.isfinite(value) or abs(value) > 1e300:
        return True
    times = value / factor if factor >= 1 else 1 / factor * value
    return math.isfinite(times) and abs(times - round(times)) < 1e-9
