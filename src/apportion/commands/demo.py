"""`apportion demo`: the whole system on this machine, under traffic that moves, with a referee."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from apportion.commands import demonstration
from apportion.commands.demonstration.accounts import Account
from apportion.commands.demonstration.processes import Processes, kept_ports, processes
from apportion.commands.demonstration.questions import OVERLOAD, questions_for
from apportion.commands.demonstration.region_view import QuotaView
from apportion.commands.demonstration.results import Result
from apportion.commands.demonstration.running import Run, Setting
from apportion.commands.demonstration.table import Screen, show_result
from apportion.commands.demonstration.traffic import DWELL_NS, hotspot
from apportion.commands.tables import console_for
from apportion.core.errors import InputError
from apportion.process import ExitCode, told_plainly
from apportion.rules_path import load_rules

PLACES = ("frankfurt", "dublin", "singapore", "virginia", "oregon", "tokyo", "sydney", "sao-paulo")

SECONDS_MIN, SECONDS_MAX = 3, 3_600
"""A shorter run has no whole second to judge; in a longer one, metering all labels anew each second would cost."""

DWELL_S, DWELL_MAX = DWELL_NS // 10**9, 3_600
"""Seconds; the demo's own, and the longest: then the traffic does not move."""

SLICES_AFTER_S = 8
"""A slice is what an edge surely needs again: the least it asked for in the last 8 ticks."""

RULES = Path(next(iter(demonstration.__path__))) / "demo.yaml"


@told_plainly
def demo(
    seconds: Annotated[
        int, typer.Option(metavar="N", help=f"How long traffic is offered, {SECONDS_MIN} to {SECONDS_MAX}.")
    ] = 30,
    edges: Annotated[int, typer.Option(metavar="N", help=f"How many edges, 1 to {len(PLACES)}.")] = 3,
    rules: Annotated[
        str | None, typer.Option(metavar="PATH", help="Your rules, instead of four built-in ones of 100/s.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Offer the very traffic of an earlier run.")] = None,
    dwell: Annotated[
        int, typer.Option(metavar="N", help=f"Seconds that most traffic stays at one edge, 1 to {DWELL_MAX}.")
    ] = DWELL_S,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the processes' logs there; they are removed else.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the result.")] = False,
) -> None:
    """Watch one limit hold in several places at once: real processes, moving traffic, and a referee.

    Starts a region on SQLite in a temporary folder, two allocators, and edges; all on loopback, all stopped at the end.
    A load process offers 2.5 times each limit and adds up what the answers say was admitted, by quota and second.

    Exit codes: 0 every limit held; 1 one was passed; 2 wrong input; 3 a process did not come up; 130 interrupted.

    \b
    Examples:
        apportion demo
        apportion demo --seconds 60 --edges 5 --dwell 9
        apportion demo --rules rules.yaml --json
    """  # noqa: D301  (the mark has the lines stay as they are)
    setting = _setting(seconds, edges, rules, seed, dwell)
    if logs is not None:
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--logs {logs}: {error.strerror}; name a folder that can be written") from error
    try:
        result = asyncio.run(_interruptible(setting, logs, as_json))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if as_json:
        print(json.dumps(result.as_json(), indent=2))
    if result.problems:
        raise typer.Exit(ExitCode.NO)


def _setting(seconds: int, edges: int, rules: str | None, seed: int | None, dwell: int) -> Setting:
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise InputError(f"--seconds is from {SECONDS_MIN} to {SECONDS_MAX}, got {seconds}")
    if not 1 <= edges <= len(PLACES):
        raise InputError(f"--edges is from 1 to {len(PLACES)}, got {edges}")
    if not 1 <= dwell <= DWELL_MAX:
        raise InputError(f"--dwell is from 1 to {DWELL_MAX} seconds, got {dwell}")
    path = RULES if rules is None else Path(rules)
    ruleset = load_rules(path)
    if ruleset.edges_max is not None and edges > ruleset.edges_max:
        raise InputError(
            f"{path} says edges_max: {ruleset.edges_max}, so its region would refuse the last of {edges} edges; give "
            f"--edges {ruleset.edges_max}, or raise edges_max"
        )
    drawn = secrets.randbelow(1_000_000) if seed is None else seed
    questions = questions_for(ruleset)
    return Setting(path, questions, PLACES[:edges], float(seconds), drawn, ruleset.edges_max, dwell * 10**9)


async def _interruptible(setting: Setting, logs: Path | None, as_json: bool) -> Result:
    """Run; a signal stops everything in good order, a second one at once. CancelledError: there was a signal."""
    loop = asyncio.get_running_loop()
    async with processes(logs) as started:
        work = asyncio.create_task(_run(setting, started, as_json))

        def stop() -> None:
            if not work.cancel():
                started.kill()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop)
        return await work


async def _run(setting: Setting, started: Processes, as_json: bool) -> Result:
    console = console_for(as_json)
    places = ", ".join(setting.edges)
    console.print(
        f"Starting a region on SQLite, two allocators, {len(setting.edges)} edges ({places}) and a load process, all "
        "real, all on loopback ..."
    )
    screen = Screen(console, setting.questions, setting.edges, setting.seconds)

    def watch(account: Account, views: Sequence[QuotaView]) -> None:
        at_ns = int(account.seconds * 1e9)
        screen.show(account, views, hotspot(len(setting.edges), setting.seed, at_ns, setting.dwell_ns))

    run = Run(setting, started, watch)
    with kept_ports(1 + len(setting.edges)) as ports:
        await run.start(ports)
    console.print(
        f"All up. For {setting.seconds:.0f} s each rule is offered {OVERLOAD:g} times its limit, most of it at one "
        f"edge, then at the next (seed {setting.seed}). Watch `over`: it never passes `bound`, wherever the traffic is."
    )
    if any(question.rule.divided for question in setting.questions):
        console.print(f"Slices appear after {SLICES_AFTER_S} s: until then the region's pool serves.")
    with screen:
        result = await run.perform()
    show_result(console, result)
    return result
