"""The outcome of simulated runs as a table, in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apportion.commands.tables import Cell, Column, table_of
from apportion.simulations.measures import PeriodFigures, RuleFigures
from apportion.simulations.measures_period import OF_RATES
from apportion.simulations.run import Outcome

NONE = "-"
"""A figure that limits of that kind do not have."""

COLUMNS = (
    *(Column("scenario", right=False, folds=True), Column("seed", drop=2), Column("rule", drop=1, right=False)),
    *(Column("enforce", right=False), Column("bound"), Column("over by label"), Column("over in a second", drop=7)),
    *(Column("utilisation"), Column("5th percentile", drop=5), Column("ticks to 95%", drop=4), Column("Jain", drop=3)),
    *(Column("crossings/s"), Column("crossing share", drop=6), Column("degraded", drop=1)),
)


OF_PERIODS = (
    *(Column("over by period"), Column("resets", drop=8), Column("stranded", drop=8)),
    *(Column("created in a second", drop=1), Column("reclaimed in a second", drop=1)),
)
"""Where there are quotas of a period."""


def result_table(console: Console, rows: Sequence[tuple[str, int, RuleFigures]]) -> Table:
    """One line for each rule of each run."""
    if all(row.period is None for _, _, row in rows):
        return table_of(console, "", COLUMNS, [_cells(*row) for row in rows])
    cells = [[*_cells(*row), *_period_cells(row[2].period)] for row in rows]
    return table_of(console, "", (*COLUMNS, *OF_PERIODS), cells)


def _cells(scenario: str, seed: int, row: RuleFigures) -> list[Cell]:
    held = row.bound is None or row.overshoot_label <= row.bound
    if row.period is not None:
        return [
            *(Text(scenario), str(seed), Text(row.rule), Text(row.enforce)),
            *(
                "none" if row.bound is None else f"{row.bound:,}",
                NONE,
                NONE,
                f"{row.utilisation:.1%}",
                NONE,
                NONE,
                NONE,
            ),
            *(f"{row.crossings_per_second:,.0f}", f"{row.crossing_share:.1%}", f"{row.degraded:,}"),
        ]
    return [
        *(Text(scenario), str(seed), Text(row.rule), Text(row.enforce)),
        "none" if row.bound is None else f"{row.bound:,}",
        Text(f"{row.overshoot_label:,}", style="green" if held else "bold red"),
        *(f"{row.overshoot_true_second:,}", f"{row.utilisation:.1%}", f"{row.utilisation_p5:.1%}"),
        *(str(row.ticks_to_95_percent), f"{row.jain:.3f}", f"{row.crossings_per_second:,.0f}"),
        *(f"{row.crossing_share:.1%}", f"{row.degraded:,}"),
    ]


def _period_cells(period: PeriodFigures | None) -> list[Cell]:
    if period is None:
        return [NONE] * len(OF_PERIODS)
    style = "bold red" if period.overshoot_period else "green"
    return [
        *(Text(f"{period.overshoot_period:,}", style=style), f"{period.resets:,}", f"{period.stranded:,}"),
        *(f"{period.created_in_a_second:,}", f"{period.reclaimed_in_a_second:,}"),
    ]


def sentences(outcomes: Sequence[Outcome]) -> list[str]:
    """What a reader must know of the table, and a summary."""
    requests = sum(outcome.requests for outcome in outcomes)
    failed = sum(bool(outcome.broken) for outcome in outcomes)
    words = (
        "`bound` is the most that one label can be over what rate and burst entitle to; utilisation is admitted / "
        "min(offered, limit) after the warm-up."
    )
    if any(row.period is not None for outcome in outcomes for row in outcome.rules):
        words += " Of a quota the bound is what a period can be over its allowance, and there is no warm-up."
    runs = f"{len(outcomes)} run{'' if len(outcomes) == 1 else 's'}"
    held = "every bound and expectation held" if not failed else f"{failed} did not hold"
    return [words, f"{runs}, {requests:,} requests: {held}."]


def as_object(outcome: Outcome) -> dict[str, Any]:
    """One run as `--json` prints it."""
    return {
        "scenario": outcome.scenario.name,
        "seed": outcome.seed,
        "rules": [rule_object(row) for row in outcome.rules],
        "broken": list(outcome.broken),
    }


def rule_object(row: RuleFigures) -> dict[str, Any]:
    """One rule's figures as `--json` prints them: null where a quota of a period has no such figure."""
    found = asdict(row)
    return found | (dict.fromkeys(OF_RATES) if row.period is not None else {})
