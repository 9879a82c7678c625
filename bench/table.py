"""The table a person reads."""

from collections.abc import Sequence

from bench.rows import Line

COLUMNS = Line.__struct_fields__


def render(lines: Sequence[Line]) -> str:
    cells = [list(COLUMNS)] + [[_cell(getattr(line, column)) for column in COLUMNS] for line in lines]
    widths = [max(len(row[i]) for row in cells) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(_aligned(row[i], widths[i], i) for i in range(len(COLUMNS))).rstrip() for row in cells)


def _aligned(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
    return str(value)
