"""Tables of strategies, as text, as HTML and for pandas."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import UsageError

if TYPE_CHECKING:
    import pandas

__all__ = ["Column", "as_frame", "as_html", "as_text"]


@dataclass(frozen=True)
class Column:
    title: str
    #: With a dot between the keys of nested values: `cost.total`.
    key: str
    #: A unit of `_native.format_quantity`, `score`, `flag`, or `text`.
    unit: str = "text"

    def cell(self, row: dict[str, Any]) -> str:
        value: Any = row
        for key in self.key.split("."):
            value = None if value is None else value.get(key)
        if self.unit == "score":
            return "out" if value is None else f"{value:.2f}"
        if value is None or value is False:
            return "-"
        if self.unit == "flag":
            return "yes"
        return str(value) if self.unit == "text" else _native.format_quantity(float(value), self.unit)


def as_text(columns: Sequence[Column], rows: Sequence[dict[str, Any]], marked: str | None) -> str:
    """The row called `marked` has a mark."""
    cells = [[column.title for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    lines = []
    for number, line in enumerate(cells):
        mark = "*" if number > 0 and rows[number - 1]["name"] == marked else " "
        padded = (
            f"{text:<{width}}" if column.unit == "text" else f"{text:>{width}}"
            for column, text, width in zip(columns, line, widths, strict=True)
        )
        lines.append(f"{mark} {'  '.join(padded)}".rstrip())
    return "\n".join(lines)


def as_html(title: str, columns: Sequence[Column], rows: Sequence[dict[str, Any]], marked: str | None) -> str:
    head = "".join(f"<th>{html.escape(column.title)}</th>" for column in columns)
    body = ""
    for row in rows:
        weight = ' style="font-weight: bold"' if row["name"] == marked else ""
        body += f"<tr{weight}>{''.join(f'<td>{html.escape(column.cell(row))}</td>' for column in columns)}</tr>"
    return f"<p>{html.escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def as_frame(rows: Sequence[dict[str, Any]], index: str | list[str]) -> pandas.DataFrame:
    """A data frame of them. Needs pandas."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError(f"pandas cannot be imported: {error}\nhint: pip install pandas") from error
    return pandas.json_normalize(list(rows)).set_index(index)
