"""The demo on a terminal: a live table each second, or one plain line where nobody watches live, and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apportion.commands.demonstration.accounts import Account
from apportion.commands.demonstration.questions import Question
from apportion.commands.demonstration.region_view import QuotaView
from apportion.commands.demonstration.results import Result, sentences
from apportion.commands.tables import Cell, Column, table_of
from apportion.core.bounds import StoreKind, bound_of, limit_text

UNMETERED_S = 4.0
"""A run whose rules admit nothing never has a metered second; its figures are shown from here on."""

INDENT = 8

RULE = Column("rule", right=False, folds=True)
ENFORCE = Column("enforce", drop=3, right=False)
BURST = Column("burst", drop=2)
REGION = Column("by the region", drop=4)

LIVE = (
    *(RULE, ENFORCE, Column("limit"), Column("offered/s"), Column("admitted/s"), Column("utilisation")),
    *(Column("crossings/s", drop=1), Column("bound"), Column("over by label"), REGION),
)
SUMMARY = (
    *(RULE, ENFORCE, Column("limit"), BURST, Column("offered"), Column("admitted"), Column("utilisation")),
    *(Column("crossings", drop=1), Column("bound"), Column("over by label"), REGION),
)


class Screen:
    """Shows accounts as they come. Live where the console is a terminal."""

    def __init__(self, console: Console, questions: Sequence[Question], edges: Sequence[str], seconds: float) -> None:
        self._console = console
        self._questions = questions
        self._edges = edges
        self._seconds = seconds
        self._crossings = [0] * len(questions)
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._bounds = [bound_of(each.rule, StoreKind.SQLITE).units for each in questions]

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, account: Account, views: Sequence[QuotaView], hot: int) -> None:
        """One second's figures, from the first whole second on; `hot` is the number of the edge with the hotspot."""
        crossed = [view.crossings - before for view, before in zip(views, self._crossings, strict=True)]
        self._crossings = [view.crossings for view in views]
        if not account.measured_epochs and account.seconds < UNMETERED_S:
            return
        if self._live is not None:
            tables = Group(self._rules(account, views, crossed), "", self._edge_table(views, hot))
            self._live.update(tables, refresh=True)
            return
        for line in self._lines(account, views, crossed, hot):
            self._console.print(Text(line), soft_wrap=True)

    def _lines(self, account: Account, views: Sequence[QuotaView], crossed: Sequence[int], hot: int) -> list[str]:
        """The figures in lines of the console's width, a rule in each."""
        lines: list[str] = []
        width = self._console.width
        rows = zip(self._questions, account.rules, self._bounds, crossed, strict=True)
        for question, rule, bound, crossings in rows:
            parts = [
                *(question.rule.name, f"offered {rule.last_offered}/s", f"admitted {rule.last_admitted}/s"),
                *(f"limit {limit_text(question.rule)}", f"over {rule.overshoot} (bound {_text(bound)})"),
                *(f"utilisation {_percent(rule.utilisation)}", f"crossings {crossings}/s"),
            ]
            lines += fitted(f"{account.seconds:4.0f} s" if not lines else "", parts, width)
        lines += fitted("", [f"hotspot at {self._edges[hot]}"], width)
        for question, view in zip(self._questions, views, strict=True):
            if question.rule.planned:
                slices = [f"{edge} {view.slices.get(edge, 0)}" for edge in self._edges]
                lines += fitted("", [f"slices of {question.rule.name}:", *slices, f"pool {view.pool}"], width)
        return lines

    def _rules(self, account: Account, views: Sequence[QuotaView], crossed: Sequence[int]) -> Table:
        found: list[list[Cell]] = []
        rows = zip(self._questions, account.rules, views, self._bounds, crossed, strict=True)
        for question, rule, view, bound, crossings in rows:
            over = max(rule.overshoot, view.overshoot)
            found.append(
                [
                    *(Text(question.rule.name), question.rule.enforce.value, limit_text(question.rule)),
                    *(str(rule.last_offered), str(rule.last_admitted), _percent(rule.utilisation), str(crossings)),
                    *(_text(bound), Text(str(rule.overshoot), style="green" if over <= (bound or 0) else "bold red")),
                    str(view.overshoot),
                ]
            )
        return table_of(self._console, f"{account.seconds:.0f} of {self._seconds:.0f} s", LIVE, found)

    def _edge_table(self, views: Sequence[QuotaView], hot: int) -> Table:
        table = Table(title="slice of this second / demand of the last", title_justify="left")
        table.box, table.pad_edge, table.show_edge = box.SIMPLE_HEAD, False, False
        table.add_column("edge")
        for question in self._questions:
            table.add_column(question.rule.name, justify="right")
        for index, edge in enumerate(self._edges):
            name = Text(f"{edge}  <- hotspot" if index == hot else edge, style="yellow" if index == hot else "")
            table.add_row(name, *(_holder(q, view, edge) for q, view in zip(self._questions, views, strict=True)))
        pools = [str(view.pool) if q.rule.divided else "" for q, view in zip(self._questions, views, strict=True)]
        table.add_row(Text("region's pool", style="dim"), *pools)
        return table


def fitted(head: str, parts: Sequence[str], width: int) -> list[str]:
    """`parts` after `head`, two spaces between them, broken between parts where a line would exceed `width`."""
    lines = [f"{head:<{INDENT}}{parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + 2 + len(part) > width:
            lines.append(" " * INDENT + "  " + part)
        else:
            lines[-1] += f"  {part}"
    return lines


def show_result(console: Console, result: Result) -> None:
    """The summary: a table, and the same in words."""
    rows: list[list[Cell]] = [
        [
            *(Text(row.rule), row.enforce, row.limit, str(row.burst), f"{row.offered:,}", f"{row.admitted:,}"),
            *(_percent(row.utilisation), f"{row.crossings:,}", _text(row.bound), str(row.overshoot_observed)),
            str(row.overshoot_region),
        ]
        for row in result.rules
    ]
    console.print(table_of(console, "what the answers add up to", SUMMARY, rows))
    console.print()
    for sentence in sentences(result):
        style = "bold red" if sentence.startswith("NOT") else "yellow" if sentence.startswith("Note") else ""
        console.print(Text(sentence, style=style))


def _holder(question: Question, view: QuotaView, edge: str) -> str:
    slice_text = str(view.slices.get(edge, 0)) if question.rule.planned else "-"
    return f"{slice_text} / {_text(view.demands.get(edge))}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _text(value: int | None) -> str:
    return "-" if value is None else str(value)
