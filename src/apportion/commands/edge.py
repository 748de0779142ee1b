"""`apportion edge`: one agent at one location, with its front doors."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import structlog
import typer

from apportion.commands.config_file import ConfigFile
from apportion.commands.mapped import unmet
from apportion.core.errors import InputError
from apportion.core.messages import Rules
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.alone import Alone
from apportion.edge.check_request import CheckMapping, parse_mapping
from apportion.edge.counted import Counted
from apportion.edge.decider import Gauged
from apportion.edge.doors import Doors, open_doors
from apportion.edge.edge import Edge, boottime_ns
from apportion.edge.http_door import HttpDoor
from apportion.edge.keeping import Keeping
from apportion.edge.metrics import Metrics
from apportion.edge.state import StateFile
from apportion.listening import check_address, check_addresses
from apportion.process import run_service, stop_signals, told_plainly
from apportion.rules_path import load_rules, read_rule_texts

log = structlog.get_logger("apportion.edge")

NAME_MAX = 64
"""Characters of --id and --location: they are written in every log line."""

TIDY_S = 0.1
"""Seconds between two looks of an edge alone at what may be forgotten."""

STOP_S = 5.0
"""What requests under way get to be answered when the process is asked to stop."""


CheckHeaders = Annotated[
    str | None,
    typer.Option(
        envvar="APPORTION_CHECK_HEADERS",
        metavar="DIMENSION=HEADER,...",
        help="What /check reads: which request header is which dimension. An absent header is an absent dimension.",
    ),
]

CheckDomain = Annotated[
    str | None,
    typer.Option(
        envvar="APPORTION_CHECK_DOMAIN",
        metavar="DOMAIN",
        help="Domain that /check asks of; unless given, the header X-Apportion-Domain, or the only one.",
    ),
]

StateFolder = Annotated[
    str | None,
    typer.Option(
        envvar="APPORTION_STATE",
        metavar="DIR",
        help="Keep the last good rules and shares here, for a start while the region is away. One folder per edge.",
    ),
]


@told_plainly
def edge(
    name: Annotated[str, typer.Option("--id", envvar="APPORTION_ID", metavar="NAME", help="Unique among edges.")],
    location: Annotated[str, typer.Option(envvar="APPORTION_LOCATION", metavar="NAME", help="Where it runs.")],
    region: Annotated[
        str | None, typer.Option(envvar="APPORTION_REGION", metavar="ADDR[,ADDR...]", help="The region's replicas.")
    ] = None,
    rls: Annotated[
        str, typer.Option(envvar="APPORTION_RLS", metavar="ADDR", help="Serve Envoy RLS and apportion.v1.Limiter here.")
    ] = "127.0.0.1:8081",
    http: Annotated[
        str | None,
        typer.Option(
            envvar="APPORTION_HTTP", metavar="ADDR", help="Serve /check, /v1/decide, /healthz, /readyz, /metrics here."
        ),
    ] = None,
    check_headers: CheckHeaders = None,
    check_domain: CheckDomain = None,
    alone: Annotated[bool, typer.Option("--alone", help="No region: one location, every limit decided here.")] = False,
    rules: Annotated[
        str | None,
        typer.Option(
            envvar="APPORTION_RULES",
            metavar="PATH",
            help="Rules file, or a folder: with --alone the rules, else a boot copy for when the region is away.",
        ),
    ] = None,
    state: StateFolder = None,
    config: ConfigFile = None,
) -> None:
    """Answer requests near the user: from slices in hand where possible, by the region where necessary.

    Stops cleanly on SIGTERM (exit code 0) and SIGINT (130): health says not serving, requests under way are answered,
    unspent units go back.

    \b
    Examples:
        apportion edge --id fra-1 --location frankfurt --region 127.0.0.1:7000 --rls 127.0.0.1:8081
        apportion edge --id laptop --location here --alone --rules rules.yaml --rls 127.0.0.1:8081
        apportion edge --id laptop --location here --alone --rules rules.yaml --http 127.0.0.1:8082 \\
            --check-headers tenant=X-Tenant,api=X-Api
    """  # noqa: D301  (the mark has the lines stay as they are)
    checked_name("--id", name)
    checked_name("--location", location)
    check_address(rls)
    if http == rls and not rls.endswith(":0"):
        raise InputError(f"--rls and --http are both {rls}; each door needs an address of its own")
    front = Front(rls, http, check_mapping(http, check_headers, check_domain))
    if alone:
        if state is not None:
            raise InputError("--state goes with --region: an edge alone has its rules from --rules, and no shares")
        if region is not None or rules is None:
            raise InputError("--alone runs without a region, from a file: give --rules PATH, and no --region")
        ruleset = load_rules(rules)
        run_service(lambda: serve_alone(ruleset, front, name))
        return
    if region is None:
        raise InputError("give --region ADDR[,ADDR...], or --alone with --rules PATH for a single location")
    addresses = check_addresses(region)
    load = partial(_load, mapping=front.mapping)
    agent = Agent(name, location, secrets.randbits(53), load)
    copy = Rules(0, read_rule_texts(rules)) if rules is not None else None
    if copy is not None:
        load(copy)
    kept = StateFile(state, name, boottime_ns) if state is not None else None
    keeping = Keeping(agent, load, boottime_ns, kept, copy)
    run_service(lambda: serve(Edge(agent, addresses), front, name, keeping))


def checked_name(flag: str, name: str) -> str:
    """`name` if it can be written on the wire and in a log line."""
    if not name or len(name) > NAME_MAX or not name.isprintable():
        raise InputError(f"{flag} is 1 to {NAME_MAX} printable characters, got {name!r}")
    return name


@dataclass(frozen=True, slots=True)
class Front:
    """Where an edge's doors are: `rls` for gRPC, `http` None for no HTTP, and what `/check` reads there."""

    rls: str
    http: str | None
    mapping: CheckMapping


def check_mapping(http: str | None, headers: str | None, domain: str | None) -> CheckMapping:
    """What `/check` reads. InputError for a mapping that cannot be read, or that no door would use."""
    if http is None:
        if headers is not None or domain is not None:
            raise InputError("--check-headers and --check-domain are of the HTTP door: give --http ADDR too")
        return CheckMapping()
    check_address(http)
    return CheckMapping(parse_mapping(headers) if headers is not None else (), domain)


async def serve(edge: Edge, front: Front, name: str, keeping: Keeping) -> None:
    """Run an attached edge until SIGTERM or SIGINT."""
    counted = Counted(edge)
    keeping.boot()
    async with stop_signals() as stop, open_front(front, counted, edge) as (doors, addresses):
        await edge.start()
        health = asyncio.create_task(_keep_health(edge, doors))
        keeper = asyncio.create_task(keeping.run())
        log.info("edge_started", edge=name, **addresses)
        await stop.wait()
        log.info("edge_stopping", edge=name)
        health.cancel()
    keeper.cancel()
    left = edge.agent.attached
    await edge.stop()
    await keeping.stop(left)


async def serve_alone(ruleset: RuleSet, front: Front, name: str) -> None:
    """Run an edge without a region until SIGTERM or SIGINT."""
    warn_unmet(ruleset, front.mapping)
    alone = Alone(ruleset, boottime_ns)
    async with stop_signals() as stop, open_front(front, Counted(alone), alone) as (doors, addresses):
        await doors.set_serving(True)
        tidying = asyncio.create_task(_keep_tidy(alone))
        log.info("edge_started", edge=name, **addresses, alone=True)
        await stop.wait()
        log.info("edge_stopping", edge=name)
        tidying.cancel()


@asynccontextmanager
async def open_front(front: Front, counted: Counted, gauged: Gauged) -> AsyncIterator[tuple[Doors, dict[str, str]]]:
    """Both doors, open, with the addresses really bound by their flags' names. Both are closed together at the end."""
    doors = await open_doors(front.rls, counted)
    http = HttpDoor(counted, front.mapping, Metrics(counted, counted.counts, gauged))
    try:
        addresses = {"rls": doors.address}
        if front.http is not None:
            await http.open(front.http)
            addresses["http"] = http.address
        yield doors, addresses
    finally:
        await asyncio.gather(doors.close(STOP_S), http.close(STOP_S))


async def _keep_tidy(alone: Alone) -> None:
    while True:
        await asyncio.sleep(TIDY_S)
        alone.tidy()


async def _keep_health(edge: Edge, doors: Doors) -> None:
    while True:
        await doors.set_serving(edge.ready)
        await edge.readiness_changed()


def _load(rules: Rules, mapping: CheckMapping) -> RuleSet:
    ruleset = parse_rules(rules.texts)
    warn_unmet(ruleset, mapping)
    return ruleset


def warn_unmet(ruleset: RuleSet, mapping: CheckMapping) -> None:
    """Log a warning where no rule can match the dimensions that `/check` reads."""
    if (reason := unmet(ruleset, mapping)) is not None:
        log.warning("check_headers_match_no_rule", reason=reason)
