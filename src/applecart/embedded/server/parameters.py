"""Query parameters by the rules of the real server's decoder."""

from collections.abc import Mapping, Sequence

from applecart.api.meta import Resource
from applecart.embedded.field_errors import FieldError, not_supported, quoted
from applecart.embedded.refusals import Refusal, bad_request, invalid

_OPTIONS_GROUP = "meta.k8s.io"


def is_true(text: str | None) -> bool:
    """A parameter that is there is true, unless it says otherwise; also when it is empty."""
    return text is not None and text.lower() not in ("0", "false")


def integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        number = int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else None
    except ValueError:
        number = None
    if number is None or not -(1 << 63) <= number < 1 << 63:
        why = "invalid syntax" if number is None else "value out of range"
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}")
    return number


def revision(text: str) -> int:
    """A resourceVersion as a number. Raises ValueError with the words of the server's own parser."""
    if text.isascii() and text.isdigit():
        if int(text) < 1 << 64:
            return int(text)
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Refusal:
    """The refusal of an options object, which has no name."""
    return invalid(Resource(_OPTIONS_GROUP, "v1", kind, kind.lower()), "", errors)


def dry_run_problems(stages: Sequence[object]) -> list[FieldError]:
    """`All` is the only stage there is."""
    return [] if all(stage == "All" for stage in stages) else [not_supported("dryRun", list(stages), ("All",))]


def is_dry_run(query: Mapping[str, str], kind: str) -> bool:
    """Whether nothing may be stored; `kind` is that of the options, for the refusal."""
    stages = [query["dryRun"]] if "dryRun" in query else []
    if errors := dry_run_problems(stages):
        raise invalid_options(kind, errors)
    return bool(stages)
