"""Runs of scenarios by seeds, one after the other or several at a time in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from apportion.simulations.recording import Recording
from apportion.simulations.run import Outcome, run
from apportion.simulations.scenario import Scenario

BAR = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())

Run = tuple[Scenario, int]


def run_all(runs: Sequence[Run], jobs: int, drawn: bool, console: Console) -> list[Outcome]:
    """Outcomes in the order of `runs`, `jobs` at a time, with a bar where a person looks on. `drawn`: they keep their
    logs, 40 to 64 bytes a request; one job only.
    """
    with Progress(*BAR, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=sum(scenario.seconds for scenario, _ in runs))
        outcomes = []
        for outcome in _pooled(runs, jobs) if jobs > 1 else _one_by_one(runs, drawn):
            bar.update(task, description=f"{outcome.scenario.name}, seed {outcome.seed}")
            bar.advance(task, outcome.scenario.seconds)
            outcomes.append(outcome)
    return outcomes


def _one_by_one(runs: Sequence[Run], drawn: bool) -> Iterator[Outcome]:
    return (run(*each) if drawn else figures(each) for each in runs)


def _pooled(runs: Sequence[Run], jobs: int) -> Iterator[Outcome]:
    # A fresh interpreter each: a fork would copy the bar's thread in whatever state it is.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(figures, runs)


def figures(one: Run) -> Outcome:
    """The outcome of a run without its log, which is large."""
    return replace(run(*one), recording=Recording())
