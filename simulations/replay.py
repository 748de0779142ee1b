"""An access log as the traffic of a world: its lines in the order of time, divided over the edges, from instant 0.

Bounded in memory whatever the log's length: lines are put in order by a buffer, what happened is folded as it happens.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random
from zlib import crc32

from apportion.core.errors import InputError
from apportion.core.request import Application
from apportion.core.rule import Rule
from apportion.simulations.access_log import SECOND, Entry
from apportion.simulations.baselines import Baseline, named, rows_of
from apportion.simulations.fold import Fold
from apportion.simulations.log import Log
from apportion.simulations.log_reader import LogReader
from apportion.simulations.nodes import parsed
from apportion.simulations.recording import Recording
from apportion.simulations.rows import Answered, Crossed, Offered, Row
from apportion.simulations.run import DRAINED_S, STARTED_S, Outcome, broken_by, changes_of, world_of
from apportion.simulations.scenario import RULE, Scenario
from apportion.simulations.series import RunSeries, epoch_of_start
from apportion.simulations.traffic import rule_named
from apportion.simulations.windows import Windows
from apportion.simulations.world import Arrival, Options

ORDERED_LINES_MAX = 10_000
"""A line may be so many lines out of its place: servers write a request when it ends, from many processes."""

IDLE_NS_MAX = 60 * SECOND
"""A longer gap is cut to this: by then every bucket is full, every label closed and every slice forgotten."""

APPLICATIONS_MAX = 50_000
"""Applications that are kept made, by key and cost."""

LOCATIONS_SHOWN_MAX = 12


@dataclass(slots=True)
class Cleared:
    """What was done to a log's times, to be said."""

    late: int = 0
    gaps: int = 0
    cut_ns: int = 0
    locations: dict[str, int] = field(default_factory=dict)
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run of a log: its outcome (without a log of its own), its series, and what a reader must know, in sentences."""

    outcome: Outcome
    series: RunSeries
    notes: tuple[str, ...]


def replay(scenario: Scenario, reader: LogReader, seed: int, progress: Callable[[float], None]) -> Replayed:
    """Run the log in the scenario's world, in place of its demand. InputError: the log cannot be read, or the scenario
    does not write `limit` and `enforce`. `progress` is told the part of the file that has been read.
    """
    if scenario.one is None:
        raise InputError(
            f"--replay needs a world with one rule; {scenario.name} writes `rules`: give --limit and --enforce"
        )
    rules = parsed(scenario.rules)
    cleared, recording = Cleared(), Recording()
    traffic = _Ending(arrivals_of(reader, rule_named(rules, RULE), scenario.edges, seed, cleared))
    world = world_of(scenario, seed, recording, Options(), traffic)
    begun_ns = STARTED_S * SECOND
    first = epoch_of_start(recording.log.rows, begun_ns)
    fold, windows = Fold(rules, scenario.edges, begun_ns, first), Windows(rules, first)
    rollup = world.region.disk.rollup
    second, left = 0, DRAINED_S + 1
    while left:
        world.run(1)
        log = recording.take(first + second)
        fold.take(log, second)
        windows.take(log, second, rollup)
        second += 1
        left -= traffic.ended
        progress(reader.share)
    seconds = second - DRAINED_S
    warm_up = min(scenario.warm_up, seconds // 3)
    scenario = replace(scenario, name=reader.path.name, about="", flows=(), seconds=seconds, warm_up=warm_up)
    figures, series = fold.finish(seconds, scenario.warm_up, changes_of(scenario))
    recording.ended(world.now_ns, (), world.open_requests())
    wrong = windows.finish(second, recording.take(first + second), rollup)
    broken = (*broken_by(scenario, figures), *map(str, wrong))
    outcome = Outcome(scenario, seed, figures, broken, Recording(), fold.requests)
    name = f"{reader.path.name}, seed {seed}"
    notes = tuple(_notes(reader, cleared, scenario.edges))
    return Replayed(outcome, RunSeries(name, reader.path.name, seconds, scenario.faults, series), notes)


def replay_baseline(
    scenario: Scenario, reader: LogReader, seed: int, baseline: Baseline, progress: Callable[[float], None]
) -> RunSeries:
    """The same requests, at the same edges, under a baseline; otherwise as `baseline_series`."""
    rules = parsed(scenario.rules)
    fold = Fold(rules, scenario.edges, 0, 0)
    traffic = arrivals_of(reader, rule_named(rules, RULE), scenario.edges, seed, Cleared())
    names = [f"edge-{at}" for at in range(scenario.edges)]
    seconds = 0
    for second, rows in groupby(rows_of(traffic, names, baseline), _second):
        for idle in range(seconds, second):
            fold.take(Log(), idle)
        fold.take(Log.of(rows), second)
        seconds = second + 1
        progress(reader.share)
    figures, series = fold.finish(seconds, min(scenario.warm_up, seconds // 3), ())
    named_series = replace(series[0], figures=named(figures[0], baseline))
    return RunSeries(f"{reader.path.name}, seed {seed}", reader.path.name, seconds, (), (named_series,))


def _second(row: Row) -> int:
    assert isinstance(row, Offered | Crossed | Answered)
    return row.at_ns // SECOND


class _Ending(Iterator[Arrival]):
    """Arrivals, and whether they have ended."""

    def __init__(self, arrivals: Iterator[Arrival]) -> None:
        self._arrivals = arrivals
        self.ended = False

    def __next__(self) -> Arrival:
        try:
            return next(self._arrivals)
        except StopIteration:
            self.ended = True
            raise


def arrivals_of(reader: LogReader, rule: Rule, edges: int, seed: int, cleared: Cleared) -> Iterator[Arrival]:
    """The log's requests for `rule`, in order, from instant 0; a line's key stands for each dimension of the rule's.

    Times of whole seconds are spread over their second by the seed. Gaps are cut to IDLE_NS_MAX.
    """
    random = Random(seed)
    made: dict[tuple[str, int], tuple[Application, ...]] = {}
    begun_ns: int | None = None
    before_ns = 0
    for at_ns, entry in in_order(reader.entries(), random, cleared):
        if begun_ns is None:
            begun_ns = before_ns = at_ns - at_ns % SECOND
        if at_ns - before_ns > IDLE_NS_MAX:
            cleared.gaps += 1
            cleared.cut_ns += at_ns - before_ns - IDLE_NS_MAX
        before_ns = at_ns
        applications = made.get((entry.key, entry.cost))
        if applications is None:
            if len(made) >= APPLICATIONS_MAX:
                made.clear()
            key = (entry.key,) * len(rule.key)
            applications = made[entry.key, entry.cost] = (Application(rule.for_key(key), key, entry.cost),)
        yield at_ns - begun_ns - cleared.cut_ns, _edge(entry, reader.by_column, edges, random, cleared), applications


def in_order(entries: Iterator[Entry], random: Random, cleared: Cleared) -> Iterator[tuple[int, Entry]]:
    """Entries by time. One that is further from its place than the buffer is long comes late, and is counted."""
    waiting: list[tuple[int, int, Entry]] = []
    last_ns = 0

    def earliest() -> tuple[int, Entry]:
        nonlocal last_ns
        at_ns, _, entry = heapq.heappop(waiting)
        cleared.late += at_ns < last_ns
        last_ns = max(at_ns, last_ns)
        return last_ns, entry

    for number, entry in enumerate(entries):
        at_ns = entry.at_ns + (random.randrange(SECOND) if entry.whole else 0)
        heapq.heappush(waiting, (at_ns, number, entry))
        if len(waiting) > ORDERED_LINES_MAX:
            yield earliest()
    while waiting:
        yield earliest()


def _edge(entry: Entry, by_column: bool, edges: int, random: Random, cleared: Cleared) -> int:
    """Where a request came: each location of a column is an edge while there are some left; else by a hash."""
    place = entry.location
    if place is None:
        return random.randrange(edges)
    if by_column:
        known = cleared.locations.get(place)
        if known is not None:
            return known
        if len(cleared.locations) < edges:
            cleared.locations[place] = len(cleared.locations)
            return cleared.locations[place]
        cleared.crowded = True
    return crc32(place.encode("utf-8", "surrogatepass")) % edges


def _notes(reader: LogReader, cleared: Cleared, edges: int) -> Iterator[str]:
    yield f"{reader.path.name}: {reader.good:,} lines replayed, {reader.bad:,} skipped."
    yield from (f"line {problem}" for problem in reader.problems)
    if reader.bad > len(reader.problems):
        yield f"and {reader.bad - len(reader.problems):,} more lines"
    if cleared.late:
        yield (
            f"{cleared.late:,} lines were more than {ORDERED_LINES_MAX:,} lines from their place and came late: sort "
            "the log by time first"
        )
    if cleared.gaps:
        cut = _hours(cleared.cut_ns)
        many = "1 gap" if cleared.gaps == 1 else f"{cleared.gaps:,} gaps"
        yield f"{many} without a request cut to {IDLE_NS_MAX // SECOND} s: {cut} are left out"
    if cleared.crowded:
        yield f"there are more locations than the {edges} edges: the others share edges by a hash; give --edges"
    if cleared.locations:
        shown = [f"edge-{at} {name}" for name, at in list(cleared.locations.items())[:LOCATIONS_SHOWN_MAX]]
        more = len(cleared.locations) - len(shown)
        yield f"locations: {', '.join(shown)}{f' and {more} more' if more else ''}"


def _hours(span_ns: int) -> str:
    seconds = span_ns // SECOND
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds} s"
