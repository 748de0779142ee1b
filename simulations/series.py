"""What a run did second by second, rule by rule: what pictures are drawn from. Read from the event log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apportion.simulations.in_force import InForce
from apportion.simulations.measures import RuleFigures, overshoots
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Anchored, Issued, Returned, Row, Sliced
from apportion.simulations.rule_log import RuleLog, Series, logs_of
from apportion.simulations.run import STARTED_S, Outcome
from apportion.simulations.scenario import Fault
from apportion.simulations.world import SECOND


@dataclass(frozen=True, slots=True)
class Over:
    """A label that was over what the limit entitles to (design 4.1), at the second of the run that had its number."""

    at_s: float
    units: int


@dataclass(frozen=True, slots=True)
class RuleSeries:
    """One rule, units of cost: `offered`, `admitted`, `limit` of shape (seconds,); `issued` (slices and what was lent
    ahead, less what came back) and `admitted_by_edge` of shape (seconds, edges). `limit`: of the one key; of several
    `keys`, or on plans, the sum of each one's min(offered, limit). Of a quota of a period there is none by second.
    """

    figures: RuleFigures
    keys: int
    offered: Series
    admitted: Series
    limit: Series
    issued: Series
    admitted_by_edge: Series
    over: tuple[Over, ...]


@dataclass(frozen=True, slots=True)
class RunSeries:
    """One run. `name`: what tells it from the others of a picture; runs of one `world` are drawn on the same axes."""

    name: str
    world: str
    seconds: int
    faults: tuple[Fault, ...]
    rules: tuple[RuleSeries, ...]


def series_of(outcome: Outcome) -> RunSeries:
    """The series of a run that kept its whole log."""
    scenario, log = outcome.scenario, outcome.recording.log
    begun_ns = STARTED_S * SECOND
    rules = parsed(scenario.rules)
    edges = [f"edge-{at}" for at in range(scenario.edges)]
    logs = logs_of(log, rules, InForce(rules, log.rows), edges, scenario.seconds, begun_ns)
    first = epoch_of_start(log.rows, begun_ns)
    issued = _issued(log.rows, logs, first)
    found = []
    for figures in outcome.rules:
        of = logs[figures.rule]
        over = [Over(epoch - first + 0.5, units) for epoch, units in overshoots(of)]
        found.append(rule_series(figures, of, len(of.labels), issued[figures.rule], over))
    name = f"{scenario.name}, seed {outcome.seed}"
    return RunSeries(name, scenario.name, scenario.seconds, scenario.faults, tuple(found))


def rule_series(figures: RuleFigures, log: RuleLog, keys: int, issued: Series, over: Sequence[Over]) -> RuleSeries:
    """Put together what is known of one rule."""
    log.settle()
    offered, admitted = log.offered.sum(axis=1), log.admitted.sum(axis=1)
    limit = log.may if keys > 1 or log.rule.by_key else log.limits
    if figures.period is not None:
        limit = np.full_like(offered, np.inf)
    return RuleSeries(figures, keys, offered, admitted, limit, issued, log.admitted, tuple(over))


def epoch_of_start(rows: Iterable[Row], begun_ns: int) -> int:
    """The number of the epoch that began when traffic did, or nearest to that, by the first region's clock."""
    region = next(row for row in rows if isinstance(row, Anchored))
    return region.epoch + round((begun_ns - region.start_ns) / region.length_ns)


def _issued(rows: Iterable[Row], logs: Mapping[str, RuleLog], first: int) -> dict[str, Series]:
    """What each edge had of each rule by second."""
    found = {name: np.zeros(log.offered.shape) for name, log in logs.items()}
    places: dict[int, int] = {}
    for row in rows:
        if isinstance(row, Sliced):
            places[row.incarnation] = int(row.edge.removeprefix("edge-"))
        elif isinstance(row, Issued | Returned) and row.incarnation in places:
            add_issued(found[row.rule], row, first, places[row.incarnation])
    return found


def add_issued(series: Series, row: Issued | Returned, first: int, place: int) -> None:
    """Count what an edge was given of an epoch, or gave back, with the second that has the epoch."""
    if 0 <= row.epoch - first < len(series):
        series[row.epoch - first, place] += row.units if isinstance(row, Issued) else -row.units
