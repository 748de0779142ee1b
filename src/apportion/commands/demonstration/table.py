"""The demo on a terminal: a live table each second, or one plain line where nobody watches live, and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apportion.commands.demonstration.accounts import Account
from apportion.commands.demonstration.questions import Question
from apportion.commands.demonstration.region_view import QuotaView
from apportion.commands.demonstration.results import Result, sentences
from apportion.core.bounds import StoreKind, bound_of, limit_text

WIDTH_PIPED = 160


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
        """One second's figures; `hot` is the number of the edge with the hotspot."""
        crossed = [view.crossings - before for view, before in zip(views, self._crossings, strict=True)]
        self._crossings = [view.crossings for view in views]
        if self._live is not None:
            tables = Group(self._rules(account, views, crossed), self._edge_table(views, hot))
            self._live.update(tables, refresh=True)
            return
        parts = [
            f"{question.rule.name}: offered {rule.last_offered}/s admitted {rule.last_admitted}/s "
            f"limit {limit_text(question.rule)} over {rule.overshoot} (bound {_text(bound)}) "
            f"utilisation {_percent(rule.utilisation)} crossings {count}/s"
            for question, rule, bound, count in zip(self._questions, account.rules, self._bounds, crossed, strict=True)
        ]
        slices = " ".join(
            f"{edge}{'*' if index == hot else ''} {self._slices(views, edge)}" for index, edge in enumerate(self._edges)
        )
        self._console.print(f"{account.seconds:4.0f} s  {' | '.join(parts)} | slices {slices}", soft_wrap=True)

    def _slices(self, views: Sequence[QuotaView], edge: str) -> str:
        return "/".join(
            str(view.slices.get(edge, 0))
            for question, view in zip(self._questions, views, strict=True)
            if question.rule.planned
        )

    def _rules(self, account: Account, views: Sequence[QuotaView], crossed: Sequence[int]) -> Table:
        table = Table(title=f"{account.seconds:.0f} of {self._seconds:.0f} s", title_justify="left")
        for name in ("rule", "enforce"):
            table.add_column(name)
        for name in (
            "offered/s",
            "admitted/s",
            "limit",
            "bound",
            "over",
            "over (region)",
            "utilisation",
            "crossings/s",
        ):
            table.add_column(name, justify="right")
        rows = zip(self._questions, account.rules, views, self._bounds, crossed, strict=True)
        for question, rule, view, bound, crossings in rows:
            over = max(rule.overshoot, view.overshoot)
            table.add_row(
                Text(question.rule.name),
                question.rule.enforce.value,
                str(rule.last_offered),
                str(rule.last_admitted),
                limit_text(question.rule),
                _text(bound),
                Text(str(rule.overshoot), style="green" if over <= (bound or 0) else "bold red"),
                str(view.overshoot),
                _percent(rule.utilisation),
                str(crossings),
            )
        return table

    def _edge_table(self, views: Sequence[QuotaView], hot: int) -> Table:
        table = Table(title="slice of the present second / demand of the last one, by edge", title_justify="left")
        table.add_column("edge")
        for question in self._questions:
            table.add_column(question.rule.name, justify="right")
        for index, edge in enumerate(self._edges):
            name = Text(f"{edge}  <- hotspot" if index == hot else edge, style="yellow" if index == hot else "")
            table.add_row(name, *(_holder(q, view, edge) for q, view in zip(self._questions, views, strict=True)))
        pools = [str(view.pool) if q.rule.divided else "" for q, view in zip(self._questions, views, strict=True)]
        table.add_row(Text("region's pool", style="dim"), *pools)
        return table


def console_for(as_json: bool) -> Console:
    """Where people read: standard error when standard output is for a program."""
    console = Console(stderr=as_json, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_PIPED
    return console


def show_result(console: Console, result: Result) -> None:
    """The summary: a table, and the same in words."""
    table = Table(title="what the answers add up to", title_justify="left")
    for name in ("rule", "enforce"):
        table.add_column(name)
    for name in ("limit", "burst", "offered", "admitted", "utilisation", "crossings", "bound", "over by label"):
        table.add_column(name, justify="right")
    table.add_column("by the region", justify="right")
    table.add_column("in a true second*", justify="right")
    for row in result.rules:
        table.add_row(
            *(Text(row.rule), row.enforce, row.limit, str(row.burst), f"{row.offered:,}", f"{row.admitted:,}"),
            *(_percent(row.utilisation), f"{row.crossings:,}", _text(row.bound), str(row.overshoot_observed)),
            *(str(row.overshoot_region), f"{row.overshoot_true_second} ({row.overshoot_true_second_certain})"),
        )
    console.print(table)
    console.print("* by arrival of the answers, whose delays vary; in brackets: sent and answered within that second")
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
