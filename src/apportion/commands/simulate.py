"""`apportion simulate`: the shipped code under a simulated world; bounds beside the overshoot seen."""

from __future__ import annotations

import json
import secrets
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from apportion.commands.simulate_call import Call, Ran, Replaying, Spread, World
from apportion.commands.simulate_runs import BAR, run_all
from apportion.commands.simulation import result_table, sentences
from apportion.commands.simulation_files import Written
from apportion.commands.tables import console_for
from apportion.core.errors import InputError
from apportion.process import ExitCode, told_plainly
from apportion.simulations import library
from apportion.simulations.baselines import Baseline, baseline_series, baselines_of
from apportion.simulations.comparing import in_each_mode, judged_together
from apportion.simulations.replay import replay as replay_log
from apportion.simulations.replay import replay_baseline
from apportion.simulations.scenario import Scenario

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
    in_turn: Annotated[bool, typer.Option("--in-turn", help="Each seed with the next scenario, not with all.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="So many runs at a time, in processes of their own.")] = 1,
    edges: Annotated[int | None, typer.Option(metavar="N", help="So many edges.")] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="DURATION", help="One way, to the farthest edge, such as 40ms.")
    ] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="RATE", help="Another limit, such as 1000/s, or allowance, such as 50/30s.")
    ] = None,
    enforce: Annotated[str | None, typer.Option(metavar="MODE", help="edge, edge+region, lease or region.")] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="enforce", help="The same world under each mode the limit can have, and baselines."),
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
        spread = Spread(first, seeds, in_turn, jobs)
        call = Call(tuple(scenarios or ()), tuple(file or ()), spread, compare, world, log, as_json)
        _run(call, Written(plot, html))


def _run(call: Call, written: Written) -> None:
    """Run what was asked for, say what came of it, and draw it."""
    call.check()
    chosen = call.chosen()
    written.check(call.panels(chosen))
    if written.asked and call.spread.jobs > 1:
        raise InputError("--plot and --html draw runs of one process: leave --jobs out")
    if call.log:
        ran = _run_log(call, chosen)
    elif call.compare:
        ran = _compared(call, chosen, written.asked)
    else:
        ran = _run_all(call, call.spread.runs(chosen), written.asked)
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


def _run_all(call: Call, runs: list[tuple[Scenario, int]], drawn: bool) -> Ran:
    return Ran(call.spread.seed, run_all(runs, call.spread.jobs, drawn, console_for(call.as_json)))


def _compared(call: Call, chosen: list[Scenario], drawn: bool) -> Ran:
    """Each scenario under the modes that it can have and the baselines."""
    seed = call.spread.seed
    ran = _run_all(call, [(each, seed) for scenario in chosen for each in in_each_mode(scenario)], drawn)
    ran.outcomes[:] = judged_together(ran.outcomes)
    for scenario in chosen:
        ran.baselines.extend(baseline_series(scenario, seed, each) for each in baselines_of(scenario))
    ran.notes.append(_others(ran))
    return ran


def _others(ran: Ran) -> str:
    """What the baselines are."""
    names = dict.fromkeys(figures.enforce for _, _, figures in ran.others)
    return f"What others do: {', '.join(f'`{name}`' for name in names)}. They have no faults and no network here."


def _run_log(call: Call, chosen: list[Scenario]) -> Ran:
    """The access log in its world, or in that world under the four modes."""
    assert call.log is not None
    (scenario,) = chosen
    ran = Ran(call.spread.seed, [])
    console = console_for(call.as_json)
    with Progress(*BAR, console=console, transient=True, disable=not console.is_terminal) as bar:
        for world in in_each_mode(scenario) if call.compare else [scenario]:
            assert world.one is not None
            task = bar.add_task(f"{call.log.path.name}, {world.one.enforce}", total=1.0)
            found = replay_log(world, call.log.reader(), call.spread.seed, partial(_progress, bar, task))
            ran.outcomes.append(found.outcome)
            ran.replayed.append(found.series)
            ran.notes[:] = found.notes
        for baseline in Baseline if call.compare else ():
            task = bar.add_task(f"{call.log.path.name}, {baseline.value}", total=1.0)
            told = partial(_progress, bar, task)
            ran.baselines.append(replay_baseline(scenario, call.log.reader(), call.spread.seed, baseline, told))
    if call.compare:
        ran.notes.append(_others(ran))
    return ran


def _progress(bar: Progress, task: TaskID, share: float) -> None:
    bar.update(task, completed=share)
