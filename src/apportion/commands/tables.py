"""Tables for people: as many columns as the console is wide for, figures never broken."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_PIPED = 118
"""Where nobody says how wide lines may be; COLUMNS says it."""

Cell = str | Text


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures; `drop`: which goes first where the width is short, 0 never;
    `folds`: whether a cell may be broken over lines.
    """

    heading: str
    drop: int = 0
    right: bool = True
    folds: bool = False


class PipeConsole(Console):
    """A console that says so when nobody reads it any more; rich would end the process with the exit code 1."""

    def on_broken_pipe(self) -> None:
        """Called by rich where it caught the error."""
        raise BrokenPipeError


def console_for(as_json: bool) -> Console:
    """Where people read: standard error when standard output is for a program."""
    console = PipeConsole(stderr=as_json, highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = WIDTH_PIPED
    return console


def table_of(console: Console, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Table:
    """As many of the columns as the console is wide for: first headings are stacked, then columns are left out."""
    wide = console.options.update(max_width=10_000)
    table = _table(title, columns, rows, stacked=False, from_drop=0)
    for from_drop in range(max(column.drop for column in columns) + 1):
        if console.measure(table, options=wide).maximum <= console.width:
            break
        table = _table(title, columns, rows, stacked=True, from_drop=from_drop)
    return table


def _table(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], stacked: bool, from_drop: int
) -> Table:
    """Without the columns whose `drop` is 1 to `from_drop`. Figures are never broken, a rule's name may be."""
    kept = [index for index, column in enumerate(columns) if not 1 <= column.drop <= from_drop]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    table.pad_edge = table.show_edge = False
    for column in (columns[index] for index in kept):
        heading = "\n".join(column.heading.rsplit(" ", 1)) if stacked else column.heading
        table.add_column(
            heading, justify="right" if column.right else "left", no_wrap=not column.folds, overflow="fold"
        )
    for row in rows:
        table.add_row(*(row[index] for index in kept))
    return table
