"""`apportion simulate`: the shipped code under a simulated world; bounds beside the overshoot seen."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from apportion.commands.simulate_call import COMPARED, Call, Ran, Replaying, World
from apportion.commands.simulation import result_table, sentences
from apportion.commands.simulation_files import Written
from apportion.commands.tables import console_for
from apportion.core.errors import InputError
from apportion.process import ExitCode, told_plainly
from apportion.simulations import library
from apportion.simulations.baselines import Baseline, baseline_series
from apportion.simulations.log_reader import LogReader
from apportion.simulations.replay import replay as replay_log
from apportion.simulations.run import Outcome, run
from apportion.simulations.scenario import Scenario

BAR = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())

Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the runs, as .png or .svg.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page: figures, bounds, pictures.")]
Log = Annotated[
    Path | None, typer.Option(metavar="LOG", help="An access log in place of the demand: combined format or CSV.")
]
LocationFrom = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Of the log: where a request came; `location` of a CSV, else a hash of the address."
    ),
]
KeyFrom = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Of the log: what is limited each; `key` of a CSV, else all as one."),
]


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
    plot: Plot = None,
    html: Html = None,
    replay: Log = None,
    location_from: LocationFrom = None,
    key_from: KeyFrom = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all runs.")] = False,
) -> None:
    """Run the shipped code in a simulated world: what each way to enforce costs, and by how much it is exceeded.

    Only clocks, network, store and randomness are simulated; the same seed gives the same run. Says for each rule the
    bound beside the overshoot seen, how much of min(demand, limit) was used, and what crossed to the region.

    Exit codes: 0 every bound and expectation held; 1 one did not (the command that replays it is printed); 2 wrong
    input; 130 interrupted.

    Examples:
        apportion simulate hotspot --seed 7 --plot hotspot.png

        apportion simulate hotspot --edges 40 --latency 80ms --compare enforce --html compared.html

        apportion simulate --replay access.log --limit 1000/s --enforce lease --edges 20 --key-from address
    """
    if list_them:
        _list()
    elif show:
        print("\n".join(library.text_of(name).rstrip() + "\n" for name in scenarios or library.names()), end="")
    else:
        first = seed if seed is not None else 1 if seeds > 1 else secrets.randbelow(1_000_000)
        world = World(edges, limit, latency, enforce)
        log = Replaying.of(replay, location_from, key_from)
        call = Call(tuple(scenarios or ()), tuple(file or ()), first, seeds, compare, world, log, as_json)
        _run(call, Written(plot, html))


def _run(call: Call, written: Written) -> None:
    """Run what was asked for, say what came of it, and draw it."""
    call.check()
    chosen = call.chosen()
    written.check(call.panels(chosen))
    ran = _run_log(call, chosen) if call.log else _compared(call, chosen) if call.compare else _ran(call, chosen)
    console = console_for(call.as_json)
    console.print(result_table(console, ran.rows()))
    for outcome in ran.outcomes:
        for problem in outcome.broken:
            console.print(f"NOT AS PROMISED: {outcome.scenario.name}: {problem}", style="bold red", highlight=False)
        if outcome.broken:
            console.print(f"  replay: {call.again(outcome)}", highlight=False)
    for sentence in (*ran.notes, *sentences(ran.outcomes)):
        console.print(sentence, highlight=False, markup=False)
    if written.asked:
        written.write(ran.outcomes, ran.series(), call.texts(chosen), call.text, ran.others, ran.notes)
    if call.as_json:
        print(json.dumps({"runs": ran.objects(), "notes": ran.notes}, indent=2))
    if any(outcome.broken for outcome in ran.outcomes):
        raise typer.Exit(ExitCode.NO)


def _list() -> None:
    width = max(map(len, library.names()))
    for name in library.names():
        print(f"{name:<{width}}  {library.load(name).about}")


def _run_all(runs: list[tuple[Scenario, int]], as_json: bool) -> list[Outcome]:
    """Run one after the other, with a bar where a person looks on."""
    console = console_for(as_json)
    outcomes = []
    with Progress(*BAR, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(scenario.seconds for scenario, _ in runs))
        for scenario, seed in runs:
            bar.update(task, description=f"{scenario.name}, seed {seed}")
            outcomes.append(run(scenario, seed, progress=lambda _: bar.advance(task)))
    return outcomes


def _ran(call: Call, chosen: list[Scenario]) -> Ran:
    """Each scenario and seed."""
    numbers = range(call.seed, call.seed + call.seeds)
    return Ran(call.seed, _run_all([(each, number) for each in chosen for number in numbers], call.as_json))


def _compared(call: Call, chosen: list[Scenario]) -> Ran:
    """Each scenario under the four modes and the baselines."""
    ran = Ran(
        call.seed, _run_all([(each, call.seed) for scenario in chosen for each in _modes(scenario)], call.as_json)
    )
    for scenario in chosen:
        ran.baselines.extend(baseline_series(scenario, call.seed, each) for each in Baseline)
    others = ", ".join(f"`{each.value}`" for each in Baseline)
    ran.notes.append(f"What others do: {others}. They have no faults and no network here.")
    return ran


def _modes(scenario: Scenario) -> list[Scenario]:
    """The scenario under the four modes, without expectations: they were of one."""
    if scenario.one is None:
        raise InputError(
            f"--compare enforce needs a scenario that writes `limit` and `enforce`; {scenario.name} does not"
        )
    return [replace(scenario.under(scenario.one.under(mode.value)), expectations=()) for mode in COMPARED]


def _run_log(call: Call, chosen: list[Scenario]) -> Ran:
    """The access log in its world, or in that world under the four modes."""
    assert call.log is not None
    (scenario,) = chosen
    ran = Ran(call.seed, [])
    console = console_for(call.as_json)
    with Progress(*BAR, console=console, transient=True, disable=not console.is_terminal) as bar:
        for world in _modes(scenario) if call.compare else [scenario]:
            assert world.one is not None
            task = bar.add_task(f"{call.log.path.name}, {world.one.enforce}", total=1.0)
            reader = LogReader(call.log.path, call.log.location_from, call.log.key_from)
            found = replay_log(world, reader, call.seed, partial(_progress, bar, task))
            ran.outcomes.append(found.outcome)
            ran.replayed.append(found.series)
            ran.notes[:] = found.notes
    return ran


def _progress(bar: Progress, task: TaskID, share: float) -> None:
    bar.update(task, completed=share)
