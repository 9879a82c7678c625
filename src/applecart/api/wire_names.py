"""Renders docs/reference/wire-names.md from the constants themselves, so that the page cannot say anything else.

What a plain constant means stands in the string under it, in the form `<on>, by <writer>: <meaning>`; that string is read
from the source, because Python keeps no docstring of a constant. Structs carry their own fields, and derived names the same
form in their docstring. Used when files are generated and checked, never by a running component.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Final

from msgspec import Struct

from applecart.api import annotations, conditions, env, finalizers, labels, names, taints, well_known_names
from applecart.api.metric_names import Metric, dispatch, kubelet, provider, runners, upstream
from applecart.api.reasons import ConditionReason, EventReason, StatusReason, provider_events
from applecart.api.reasons import kubelet as kubelet_reasons
from applecart.api.reasons import provider as provider_reasons
from applecart.api.reasons import runners as runners_reasons
from applecart.api.reasons import upstream as upstream_reasons
from applecart.errors import BadInput

PLAIN: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("Labels", labels),
    ("Annotations", annotations),
    ("Finalizers", finalizers),
    ("Condition types", conditions),
    ("Fixed names", well_known_names),
    ("Environment variables", env),
)
REASONS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("provider", provider_reasons),
    ("provider", provider_events),
    ("kubelet", kubelet_reasons),
    ("runners", runners_reasons),
    ("Kubernetes and Cluster API", upstream_reasons),
)
METRICS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("provider", provider),
    ("kubelet", kubelet),
    ("runners", runners),
    ("dispatch", dispatch),
    ("others", upstream),
)
HEADER: Final = ("Name", "On", "Written by", "Meaning")
INTRODUCTION: Final = """\
# Wire names

Every name by which the components, the guests, the manifests and the dashboards know each other. Generated from
`src/applecart/api` by `applecart.api.wire_names.render`: change the constant, not this page.
"""
_DESCRIPTION: Final = re.compile(r"(?P<on>.+?), by (?P<by>[^:]+): (?P<meaning>.+)")
_DERIVED: Final = re.compile(r"(?P<pattern>`.+?)\. (?P<description>.+)")


class Row(Struct, frozen=True):
    name: str
    on: str
    by: str
    meaning: str


def constants(module: ModuleType) -> dict[str, object]:
    """The public constants that `module` itself defines, in the order of the file."""
    assigned = {name for name, _, _ in _assignments(module)}
    return {name: value for name, value in vars(module).items() if name in assigned and not name.startswith("_")}


def described(module: ModuleType) -> Iterator[Row]:
    """A row per plain constant of `module`; one without its description is refused, so none can be forgotten."""
    for name, value, text in _assignments(module):
        if isinstance(value, str) and not name.startswith("_"):
            yield _row(f"`{value}`", text, f"{module.__name__}.{name}")


def derived() -> Iterator[Row]:
    """A row per name that `names.py` builds from others."""
    for name, member in vars(names).items():
        text = " ".join((inspect.getdoc(member) or "").split())
        match = _DERIVED.fullmatch(text)
        if getattr(member, "__module__", None) == names.__name__ and match:
            yield _row(match["pattern"], match["description"], f"{names.__name__}.{name}")


def render() -> str:
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for title, module in PLAIN:
        yield _table(title, HEADER, ((row.name, row.on, row.by, row.meaning) for row in described(module)))
    yield _table("Derived names", HEADER, ((row.name, row.on, row.by, row.meaning) for row in derived()))
    yield _table("Taints", HEADER, _taint_cells())
    yield _table("Condition and status reasons", ("Name", "On", "Written by", "Severity", "Meaning"), _reason_cells())
    yield _table("Event reasons", ("Name", "Type", "Written by", "Meaning"), _event_cells())
    for exporter, module in METRICS:
        yield _table(f"Metrics of {exporter}", ("Name", "Kind", "Labels", "Meaning"), _metric_cells(module))
    yield _table("Scrape jobs", HEADER, ((row.name, row.on, row.by, row.meaning) for row in described(upstream)))


def _taint_cells() -> Iterator[tuple[str, ...]]:
    for taint in constants(taints).values():
        if isinstance(taint, taints.TaintName):
            yield f"`{taint.key}={taint.value}:{taint.effect}`", taint.on, taint.by, taint.meaning


def _reason_cells() -> Iterator[tuple[str, ...]]:
    for writer, module in REASONS:
        for reason in constants(module).values():
            if isinstance(reason, ConditionReason):
                yield f"`{reason.name}`", f"condition `{reason.condition}`", writer, reason.severity, reason.meaning
            elif isinstance(reason, StatusReason):
                yield f"`{reason.name}`", reason.field, writer, "", reason.meaning


def _event_cells() -> Iterator[tuple[str, ...]]:
    for writer, module in REASONS:
        for reason in constants(module).values():
            if isinstance(reason, EventReason):
                yield f"`{reason.name}`", reason.type, writer, reason.meaning


def _metric_cells(module: ModuleType) -> Iterator[tuple[str, ...]]:
    for metric in constants(module).values():
        if isinstance(metric, Metric):
            yield f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help


def _assignments(module: ModuleType) -> Iterator[tuple[str, object, str]]:
    """Name, value and following string of every annotated assignment at the top of `module`."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, getattr(module, name), _text(following)


def _text(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
        case _:
            return ""


def _row(name: str, text: str, where: str) -> Row:
    match = _DESCRIPTION.fullmatch(text)
    if not match:
        raise BadInput(f"{where} has no description: write '<on>, by <writer>: <meaning>' as the string under it")
    return Row(name, match["on"], match["by"], match["meaning"].removesuffix("."))


def _table(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = tuple(header)
    lines = [f"## {title}", "", _line(columns), _line("---" for _ in columns), *map(_line, rows), ""]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
