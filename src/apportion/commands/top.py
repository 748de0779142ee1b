"""`apportion top`: what every rule does now, live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apportion.commands.reading import ENFORCES, STATES, ask_region, limit_of, warnings
from apportion.core.errors import InputError, UnavailableError
from apportion.core.key import key_text
from apportion.listening import check_address
from apportion.process import told_plainly
from apportion.proto.v1 import region_pb2

EVERY_S = 1.0
"""Reports come once a second."""

KEYS = 20
"""Keys shown with --keys."""

Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""A table: its head and its rows."""

RULE_HEAD = ("rule", "enforce", "limit", "offered/s", "admitted/s", "bound", "over", "state")
KEY_HEAD = ("rule", "key", "limit", "offered/s", "refused/s", "over")
REFUSED_HEAD = ("rule", "key", "refused/s", "at most too high by")


@told_plainly
def top(
    region: Annotated[str, typer.Option(envvar="APPORTION_REGION", metavar="ADDR", help="A region replica.")],
    keys: Annotated[bool, typer.Option("--keys", help=f"The {KEYS} keys asked for most, and refused most.")] = False,
    count: Annotated[int, typer.Option(min=0, help="End after so many looks; 0: when interrupted.")] = 0,
) -> None:
    """Show each rule once a second: offered, admitted, the bound and the worst overshoot seen; or the heaviest keys.

    What is refused most is counted at each edge, in units and in bounded memory (Space-Saving): keys that nobody else
    counts are among it, as those that an override blocks. No key with more than a 256th of what an edge refused in the
    second is missing, if it is among its first 20.

    Exit codes: 0 done; 3 the region could not be reached at the start; 130 interrupted.

    \b
    Examples:
        apportion top --region 127.0.0.1:7000
    """  # noqa: D301  (the mark has the lines stay as they are)
    address = check_address(region)
    request = region_pb2.ExplainRequest(heaviest=KEYS if keys else 1)
    said = ask_region(address, request)
    console = Console()
    if not console.is_terminal:
        _lines(console, address, request, said, keys, count)
        return
    with Live(_screen(said, keys), console=console, auto_refresh=False) as live:
        looks = 1
        while count == 0 or looks < count:
            time.sleep(EVERY_S)
            looks += 1
            try:
                live.update(_screen(ask_region(address, request), keys), refresh=True)
            except (InputError, UnavailableError) as error:
                live.update(Text(f"! {error}"), refresh=True)


def _lines(
    console: Console,
    address: str,
    request: region_pb2.ExplainRequest,
    said: region_pb2.ExplainResponse,
    keys: bool,
    count: int,
) -> None:
    looks = 1
    while True:
        for line in as_lines(said, keys):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        if count and looks >= count:
            return
        time.sleep(EVERY_S)
        looks += 1
        said = ask_region(address, request)


def as_lines(said: region_pb2.ExplainResponse, keys: bool) -> list[str]:
    """One line for the whole and one for each row, for a pipe."""
    lines = [f"! {each}" for each in warnings(said)]
    lines.append(_title(said))
    for head, rows in _tables(said, keys):
        lines += ["  " + "  ".join(f"{name} {value}" for name, value in zip(head, row, strict=True)) for row in rows]
    return lines


def _screen(said: region_pb2.ExplainResponse, keys: bool) -> Group:
    tables = []
    for head, rows in _tables(said, keys):
        table = Table(expand=False)
        for name in head:
            table.add_column(name, justify="left" if name in ("rule", "key", "enforce", "state") else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        tables.append(table)
    return Group(*(Text(f"! {each}") for each in warnings(said)), Text(_title(said)), *tables)


def _title(said: region_pb2.ExplainResponse) -> str:
    leader = f"generation {said.register.generation}" if said.register.generation else "nobody leads"
    return f"epoch {said.epoch}, rules version {said.rules_version}, {leader}, {len(said.edges)} edges"


def _tables(said: region_pb2.ExplainResponse, keys: bool) -> list[Rows]:
    """The tables of one look."""
    if not keys:
        return [(RULE_HEAD, [_rule_row(rule) for rule in said.rules])]
    refused: list[tuple[str, ...]] = [
        (heavy.rule, key_text(heavy.key) or "(no key)", str(heavy.units), str(heavy.error))
        for heavy in said.most_refused
    ]
    return [(KEY_HEAD, [_key_row(quota) for quota in said.quotas]), (REFUSED_HEAD, refused)]


def _rule_row(rule: region_pb2.RuleTotals) -> tuple[str, ...]:
    return (
        rule.rule,
        ENFORCES.get(rule.enforce, "unknown"),
        limit_of(rule.limit_units, rule.limit_period_ns, rule.limit_period),
        str(rule.offered_latest),
        str(rule.admitted_latest),
        str(rule.bound) if rule.HasField("bound") else "none",
        str(rule.worst_overshoot),
        STATES.get(rule.state, "unknown"),
    )


def _key_row(quota: region_pb2.QuotaState) -> tuple[str, ...]:
    return (
        quota.rule,
        quota.key_text or "(no key)",
        limit_of(quota.limit_units, quota.limit_period_ns, quota.period.length),
        str(quota.offered),
        str(quota.refused),
        str(quota.worst_overshoot),
    )
