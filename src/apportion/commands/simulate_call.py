"""What one call of `apportion simulate` asks for: which scenarios, in which world, and the command that says so."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from apportion.commands.simulation import as_object, rule_object
from apportion.core.errors import InputError
from apportion.core.quantities import parse_duration, parse_rate
from apportion.core.rule import Enforce
from apportion.simulations import library
from apportion.simulations.baselines import baselines_of
from apportion.simulations.comparing import modes_of
from apportion.simulations.log_reader import LogReader
from apportion.simulations.measures import RuleFigures
from apportion.simulations.nodes import parsed
from apportion.simulations.run import Outcome
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import EDGES_MAX
from apportion.simulations.series import RunSeries, series_of

SEEDS_MAX = 10_000
"""Seeds of one call."""

JOBS_MAX = 256
"""Processes of one call."""

REPLAYED_IN = "uniform"
"""The scenario whose edges, network and allocators a log is replayed in when none is named."""

Flags = tuple[tuple[str, object], ...]
"""Flags as they were given, None those that were not."""


@dataclass(frozen=True, slots=True)
class World:
    """What the flags change of every scenario; None leaves it as it is written."""

    edges: int | None
    limit: str | None
    latency: str | None
    enforce: str | None

    def check(self) -> None:
        """InputError names a flag that is wrong."""
        if self.edges is not None and not 1 <= self.edges <= EDGES_MAX:
            raise InputError(f"--edges is from 1 to {EDGES_MAX}, got {self.edges}")
        modes = [mode.value for mode in Enforce]
        if self.enforce is not None and self.enforce not in modes:
            raise InputError(f"--enforce is one of {', '.join(modes)}, got {self.enforce!r}")
        for flag, text, parse in (("--limit", self.limit, parse_rate), ("--latency", self.latency, parse_duration)):
            try:
                if text is not None:
                    parse(text)
            except ValueError as error:
                raise InputError(f"{flag}: {error}") from None

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario in this world. InputError where it writes its own rules."""
        if self.latency is not None:
            network = replace(scenario.network, latency_ns=parse_duration(self.latency))
            scenario = replace(scenario, network=network)
        if self.edges is None and self.limit is None and self.enforce is None:
            return scenario
        if scenario.one is None:
            raise InputError(
                f"--edges, --limit and --enforce change a scenario that writes `limit` and `enforce`; {scenario.name} "
                "writes `rules`: change them there"
            )
        one = scenario.one
        if self.limit is not None:
            one = replace(one, rate=self.limit, burst=None)
        if self.enforce is not None:
            one = one.under(self.enforce)
        return scenario.under(one, self.edges)

    def flags(self) -> Flags:
        """As they are written."""
        return (
            ("--edges", self.edges),
            ("--limit", self.limit),
            ("--latency", self.latency),
            ("--enforce", self.enforce),
        )


@dataclass(frozen=True, slots=True)
class Replaying:
    """An access log in place of demand, and which of its columns say where a request came and which key it has."""

    path: Path
    location_from: str | None
    key_from: str | None

    @staticmethod
    def of(path: Path | None, location_from: str | None, key_from: str | None) -> Replaying | None:
        """None without a log. InputError: a column of none."""
        if path is not None:
            return Replaying(path, location_from, key_from)
        for flag, value in (("--location-from", location_from), ("--key-from", key_from)):
            if value is not None:
                raise InputError(f"{flag} says how a log is read: name one with --replay LOG")
        return None

    def reader(self) -> LogReader:
        """One reading of the log."""
        return LogReader(self.path, self.location_from, self.key_from)

    def flags(self) -> Flags:
        """As they are written."""
        return (("--replay", self.path), ("--location-from", self.location_from), ("--key-from", self.key_from))


@dataclass(frozen=True, slots=True)
class Spread:
    """`seeds` seeds from `seed` on, each with every scenario, or `in_turn` each with the next one; `jobs` at a time."""

    seed: int
    seeds: int = 1
    in_turn: bool = False
    jobs: int = 1

    def check(self) -> None:
        """InputError names a flag that is wrong."""
        if not 1 <= self.seeds <= SEEDS_MAX:
            raise InputError(f"--seeds is from 1 to {SEEDS_MAX}, got {self.seeds}")
        if not 1 <= self.jobs <= JOBS_MAX:
            raise InputError(f"--jobs is from 1 to {JOBS_MAX}, got {self.jobs}")

    def runs(self, chosen: list[Scenario]) -> list[tuple[Scenario, int]]:
        """Scenarios with seeds. In turn, the n-th seed has the n-th scenario, whichever seed is the first."""
        numbers = range(self.seed, self.seed + self.seeds)
        if self.in_turn:
            return [(chosen[at % len(chosen)], number) for at, number in enumerate(numbers)]
        return [(each, number) for each in chosen for number in numbers]

    def flags(self) -> Flags:
        """As they are written."""
        return (("--seeds", self.seeds if self.seeds > 1 else None), ("--jobs", self.jobs if self.jobs > 1 else None))


@dataclass(frozen=True, slots=True)
class Call:
    """One call."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]
    spread: Spread
    compare: str | None
    world: World
    log: Replaying | None
    as_json: bool

    def check(self) -> None:
        """InputError names a flag that is wrong, or wrong beside the others."""
        self.world.check()
        if self.compare not in (None, "enforce"):
            raise InputError(f"--compare compares `enforce`, got {self.compare!r}; write --compare enforce")
        self.spread.check()
        if self.compare and (self.spread.seeds > 1 or self.spread.in_turn):
            raise InputError("--compare runs one seed in all modes: give --seed, and no --seeds or --in-turn")
        if self.log is None:
            return
        if self.spread != Spread(self.spread.seed) or len(self.names) + len(self.paths) > 1:
            raise InputError("--replay runs one log in one world: name at most one scenario, and no --seeds or --jobs")
        if not self.names and not self.paths:
            if self.world.limit is None:
                raise InputError("--replay needs the limit that is tried on the log: add --limit 1000/s, or a scenario")
            if self.world.enforce is None and self.compare is None:
                raise InputError("--replay needs a way to enforce: add --enforce lease, or --compare enforce")

    def chosen(self) -> list[Scenario]:
        """The scenarios, in the world of the flags. InputError: there is no such scenario, or it cannot be so."""
        names = self.names
        if not names and not self.paths:
            names = (REPLAYED_IN,) if self.log else library.names()
        found = [*(library.load(name) for name in names), *(library.load_file(path) for path in self.paths)]
        if self.log is not None:
            found = [replace(each, expectations=()) for each in found]  # they were of its own demand
            for each in found:
                if each.one is not None and each.one.quota is not None:
                    raise InputError(f"--replay needs a world with a rate, and {each.name} has a quota: name another")
        return [self.world.apply(each) for each in found]

    def panels(self, chosen: list[Scenario]) -> int:
        """Runs and rules that are drawn."""
        if self.compare:
            return sum(len(modes_of(each)) + len(baselines_of(each)) for each in chosen)
        return self.spread.seeds * sum(len(parsed(each.rules).rules) for each in chosen)

    def texts(self, chosen: list[Scenario]) -> dict[str, str]:
        """The text of each scenario, by name; of a log the rules of its world."""
        if self.log is not None:
            return {f"{each.name}: its rules": text for each in chosen for _, text in each.rules.texts}
        found = {name: library.text_of(name) for name in self.names or (() if self.paths else library.names())}
        return found | {path.name.removesuffix(library.SUFFIX): path.read_text("utf-8") for path in self.paths}

    @property
    def text(self) -> str:
        """The command that makes the same runs again."""
        what = [*self.names, *(f"--scenario {shlex.quote(str(path))}" for path in self.paths)]
        if self.spread.in_turn:
            what.append("--in-turn")
        return self._command(" ".join(what), self.spread.seed, self.spread.flags())

    def again(self, outcome: Outcome) -> str:
        """The command that makes one of the runs again."""
        name = outcome.scenario.name
        path = next((each for each in self.paths if each.name.removesuffix(library.SUFFIX) == name), None)
        if self.log is not None:
            return self.text
        return self._command(name if path is None else f"--scenario {shlex.quote(str(path))}", outcome.seed)

    def _command(self, what: str, seed: int, more: Flags = ()) -> str:
        logged = self.log.flags() if self.log else ()
        given = [("--seed", seed), *more, *self.world.flags(), ("--compare", self.compare), *logged]
        words = [f"{flag} {shlex.quote(str(value))}" for flag, value in given if value is not None]
        return " ".join(["apportion simulate", *([what] if what else []), *words])


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it. `baselines`: runs beside the outcomes, of whom only the series is known."""

    seed: int
    outcomes: list[Outcome]
    baselines: list[RunSeries] = field(default_factory=list)
    replayed: list[RunSeries] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def others(self) -> list[tuple[str, int, RuleFigures]]:
        """Figures of the baselines, with scenario and seed."""
        return [(each.world, self.seed, rule.figures) for each in self.baselines for rule in each.rules]

    def rows(self) -> list[tuple[str, int, RuleFigures]]:
        """Lines of the table: each scenario's runs, then its baselines."""
        rows = [(each.scenario.name, each.seed, row) for each in self.outcomes for row in each.rules] + self.others
        order = list(dict.fromkeys(name for name, _, _ in rows))
        return sorted(rows, key=lambda row: order.index(row[0]))

    def series(self) -> list[RunSeries]:
        """What is drawn, in the same order."""
        runs = [*(self.replayed or map(series_of, self.outcomes)), *self.baselines]
        order = list(dict.fromkeys(run.world for run in runs))
        return sorted(runs, key=lambda run: order.index(run.world))

    def objects(self) -> list[dict[str, Any]]:
        """The runs as `--json` prints them."""
        others = [
            {"scenario": name, "seed": seed, "rules": [rule_object(row)], "broken": []}
            for name, seed, row in self.others
        ]
        return [*(as_object(each) for each in self.outcomes), *others]
