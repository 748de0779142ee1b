"""`apportion simulate`: the shipped code under a simulated world; bounds beside the overshoot seen."""

from __future__ import annotations

import json
import secrets
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from apportion.commands.simulation import as_object, result_table, sentences
from apportion.commands.tables import console_for
from apportion.core.errors import InputError
from apportion.core.quantities import parse_duration, parse_rate
from apportion.core.rule import Enforce
from apportion.process import ExitCode, told_plainly
from apportion.simulations import library
from apportion.simulations.baselines import Baseline, run_baseline
from apportion.simulations.run import Outcome, run
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import EDGES_MAX

SEEDS_MAX = 10_000
"""Seeds of one call."""

COMPARED = (Enforce.EDGE_REGION, Enforce.REGION, Enforce.LEASE, Enforce.EDGE)
"""The modes in the order of the comparison."""


@dataclass(frozen=True, slots=True)
class World:
    """What the flags change of every scenario; None leaves it as it is written."""

    edges: int | None
    limit: str | None
    latency_ns: int | None
    enforce: str | None

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario in this world. InputError where it writes its own rules."""
        if self.latency_ns is not None:
            scenario = replace(scenario, network=replace(scenario.network, latency_ns=self.latency_ns))
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
            one = replace(one, enforce=self.enforce)
        return scenario.under(one, self.edges)


@told_plainly
def simulate(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO...", help="Scenarios by name; all of them unless given.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--scenario", metavar="FILE", help="A scenario's text of your own.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the scenarios, each in a sentence.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the scenarios' texts, to begin one of your own.")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Replay that run; drawn unless given.")] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Run so many seeds, from --seed or 1 on.")] = 1,
    edges: Annotated[int | None, typer.Option(metavar="N", help="So many edges.")] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="DURATION", help="One way, to the farthest edge, such as 40ms.")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="RATE", help="Another limit, such as 1000/s.")] = None,
    enforce: Annotated[str | None, typer.Option(metavar="MODE", help="edge, edge+region, lease or region.")] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="enforce", help="The same world under the four modes and three baselines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all runs.")] = False,
) -> None:
    """Run the shipped code in a simulated world: what each way to enforce costs, and by how much it is exceeded.

    Only clocks, network, store and randomness are simulated; the same seed gives the same run. Says for each rule the
    bound beside the overshoot seen, how much of min(demand, limit) was used, and what crossed to the region.

    Exit codes: 0 every bound and expectation held; 1 one did not (the command that replays it is printed); 2 wrong
    input; 130 interrupted.

    Examples:
        apportion simulate hotspot --seed 7

        apportion simulate hotspot --edges 40 --latency 80ms --compare enforce

        apportion simulate --seeds 20
    """
    if list_them:
        _list()
        return
    chosen = _chosen(scenarios or [], file or [])
    if show:
        print("\n".join(library.text_of(name).rstrip() + "\n" for name in scenarios or library.names()), end="")
        return
    if compare not in (None, "enforce"):
        raise InputError(f"--compare compares `enforce`, got {compare!r}; write --compare enforce")
    if not 1 <= seeds <= SEEDS_MAX:
        raise InputError(f"--seeds is from 1 to {SEEDS_MAX}, got {seeds}")
    world = _world(edges, limit, latency, enforce)
    chosen = [world.apply(each) for each in chosen]
    first = seed if seed is not None else 1 if seeds > 1 else secrets.randbelow(1_000_000)
    if compare:
        _compare(chosen, first, as_json)
        return
    outcomes = _run_all([(each, number) for each in chosen for number in range(first, first + seeds)], as_json)
    flags = _flags(edges, limit, latency, enforce)
    console = console_for(as_json)
    console.print(
        result_table(console, [(each.scenario.name, each.seed, row) for each in outcomes for row in each.rules])
    )
    for outcome in outcomes:
        for problem in outcome.broken:
            console.print(f"NOT AS PROMISED: {outcome.scenario.name}: {problem}", style="bold red", highlight=False)
        if outcome.broken:
            console.print(f"  replay: {_replay(outcome, file or [], flags)}", highlight=False)
    for sentence in sentences(outcomes):
        console.print(sentence, highlight=False)
    if as_json:
        print(json.dumps({"runs": [as_object(each) for each in outcomes]}, indent=2))
    if any(outcome.broken for outcome in outcomes):
        raise typer.Exit(ExitCode.NO)


def _list() -> None:
    width = max(map(len, library.names()))
    for name in library.names():
        print(f"{name:<{width}}  {library.load(name).about}")


def _chosen(names: list[str], paths: list[Path]) -> list[Scenario]:
    if not names and not paths:
        names = list(library.names())
    return [*(library.load(name) for name in names), *(library.load_file(path) for path in paths)]


def _world(edges: int | None, limit: str | None, latency: str | None, enforce: str | None) -> World:
    if edges is not None and not 1 <= edges <= EDGES_MAX:
        raise InputError(f"--edges is from 1 to {EDGES_MAX}, got {edges}")
    modes = [mode.value for mode in Enforce]
    if enforce is not None and enforce not in modes:
        raise InputError(f"--enforce is one of {', '.join(modes)}, got {enforce!r}")
    try:
        if limit is not None:
            parse_rate(limit)
    except ValueError as error:
        raise InputError(f"--limit: {error}") from None
    try:
        latency_ns = parse_duration(latency) if latency is not None else None
    except ValueError as error:
        raise InputError(f"--latency: {error}") from None
    return World(edges, limit, latency_ns, enforce)


def _run_all(runs: list[tuple[Scenario, int]], as_json: bool) -> list[Outcome]:
    """Run one after the other, with a bar where a person looks on."""
    console = console_for(as_json)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    outcomes = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(scenario.seconds for scenario, _ in runs))
        for scenario, seed in runs:
            bar.update(task, description=f"{scenario.name}, seed {seed}")
            outcomes.append(run(scenario, seed, progress=lambda _: bar.advance(task)))
    return outcomes


def _compare(chosen: list[Scenario], seed: int, as_json: bool) -> None:
    """Each scenario under the four modes and the baselines."""
    runs, rows = [], []
    for scenario in chosen:
        if scenario.one is None:
            raise InputError(
                f"--compare enforce needs a scenario that writes `limit` and `enforce`; {scenario.name} does not"
            )
        under = [
            replace(scenario.under(replace(scenario.one, enforce=mode.value)), expectations=()) for mode in COMPARED
        ]
        outcomes = _run_all([(each, seed) for each in under], as_json)
        others = [run_baseline(scenario, seed, baseline) for baseline in Baseline]
        rows += [(scenario.name, seed, row) for each in outcomes for row in each.rules]
        rows += [(scenario.name, seed, row) for row in others]
        runs += [as_object(each) for each in outcomes]
        runs += [as_object(replace(outcomes[0], rules=(row,), broken=())) for row in others]
    console = console_for(as_json)
    console.print(result_table(console, rows))
    console.print("The last three are what others do: they have no faults and no network here.", highlight=False)
    if as_json:
        print(json.dumps({"runs": runs}, indent=2))


def _flags(edges: int | None, limit: str | None, latency: str | None, enforce: str | None) -> str:
    given = {"--edges": edges, "--limit": limit, "--latency": latency, "--enforce": enforce}
    return "".join(f" {flag} {shlex.quote(str(value))}" for flag, value in given.items() if value is not None)


def _replay(outcome: Outcome, paths: list[Path], flags: str) -> str:
    name = outcome.scenario.name
    path = next((each for each in paths if each.name.removesuffix(library.SUFFIX) == name), None)
    what = name if path is None else f"--scenario {shlex.quote(str(path))}"
    return f"apportion simulate {what} --seed {outcome.seed}{flags}"
