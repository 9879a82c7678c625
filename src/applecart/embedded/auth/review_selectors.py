"""Selectors inside access reviews: written as text or as requirements.

Only field selectors decide anything (a node may list its own Pods). A selector that cannot be read is ignored and said so: the
question is then broader, which can only make the answer more careful.
"""

from applecart.embedded import field_errors
from applecart.embedded.auth.untyped import Document, mapping, mappings, text, texts
from applecart.embedded.field_errors import FieldError
from applecart.embedded.field_selectors import is_readable, written

_IGNORED = "spec.resourceAttributes.fieldSelector ignored due to parse error"
_PARTLY_IGNORED = "spec.resourceAttributes.fieldSelector partially ignored due to parse error"


def read_field_selector(selector: object) -> tuple[str, str]:
    """The selector as text, and what had to be ignored of it."""
    given = mapping(selector)
    requirements = mappings(given.get("requirements"))
    raw = text(given.get("rawSelector"))
    if not requirements:
        return (raw, "") if is_readable(raw) else ("", _IGNORED)
    terms = [_term(one) for one in requirements]
    readable = [term for term in terms if term]
    if len(readable) == len(terms):
        return ",".join(readable), ""
    return ",".join(readable), _PARTLY_IGNORED if readable else _IGNORED


def selector_problems(asked: Document) -> list[FieldError]:
    """What is wrong with the selectors of resourceAttributes."""
    problems: list[FieldError] = []
    for member in ("fieldSelector", "labelSelector"):
        selector = asked.get(member)
        if isinstance(selector, dict):
            problems += _problems(selector, f"spec.resourceAttributes.{member}")
    return problems


def _problems(selector: Document, field: str) -> list[FieldError]:
    raw, requirements = text(selector.get("rawSelector")), mappings(selector.get("requirements"))
    problems: list[FieldError] = []
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        problems.append(field_errors.invalid(f"{field}.rawSelector", raw, detail))
    if not raw and not requirements:
        detail = f"when {field} is specified, requirements or rawSelector is required"
        problems.append(field_errors.required(f"{field}.requirements", detail))
    for place, requirement in enumerate(requirements):
        here = f"{field}.requirements[{place}]"
        if not text(requirement.get("key")):
            problems.append(field_errors.required(f"{here}.key", "must be specified"))
        operator, values = requirement.get("operator"), texts(requirement.get("values"))
        if operator in ("In", "NotIn") and not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            problems.append(field_errors.required(f"{here}.values", detail))
        if operator in ("Exists", "DoesNotExist") and values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(field_errors.forbidden(f"{here}.values", detail))
    return problems


def _term(requirement: Document) -> str:
    """One requirement as text; "" when field selectors cannot say it."""
    operator, values = requirement.get("operator"), texts(requirement.get("values"))
    if operator not in ("In", "NotIn") or len(values) != 1:
        return ""
    return written(text(requirement.get("key")), values[0], is_equal=operator == "In")
