"""`apportion allocator`: re-divides every quota each second; the leader, or a standby for it."""

from __future__ import annotations

import secrets
import socket
from functools import partial
from typing import Annotated

import structlog
import typer

from apportion.allocator.leader import Leader
from apportion.allocator.process import Allocator
from apportion.commands.allocator_metrics import collect
from apportion.commands.config_file import ConfigFile
from apportion.core.rules_file import parse_rules
from apportion.listening import check_address, check_addresses
from apportion.process import run_service, stop_signals, told_plainly
from apportion.status_door import status_door

log = structlog.get_logger("apportion.allocator")


@told_plainly
def allocator(
    region: Annotated[
        str, typer.Option(envvar="APPORTION_REGION", metavar="ADDR[,ADDR...]", help="The region's replicas.")
    ] = "127.0.0.1:7000",
    http: Annotated[
        str | None,
        typer.Option(envvar="APPORTION_HTTP", metavar="ADDR", help="Serve /healthz, /readyz, /metrics here."),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Divide quotas over edges by demand, each second. Start two: one leads, the other takes over within 2 seconds.

    Keeps nothing on disk, so it can be killed at any time: at most the epochs in flight go undivided. Stops on SIGTERM
    (exit code 0) and SIGINT (130).

    \b
    Examples:
        apportion allocator --region 127.0.0.1:7000
    """  # noqa: D301  (the mark has the lines stay as they are)
    addresses = check_addresses(region)
    if http is not None:
        check_address(http)
    run_service(lambda: serve(addresses, http))


async def serve(addresses: tuple[str, ...], http: str | None = None) -> None:
    """Run an allocator until SIGTERM or SIGINT."""
    incarnation = secrets.randbits(53)
    name = f"{socket.gethostname()}-{incarnation:x}"
    process = Allocator(Leader(name, incarnation, parse_rules), addresses)
    async with stop_signals() as stop, status_door(http, lambda: process.ready, partial(collect, process)) as door:
        await process.start()
        log.info("allocator_started", allocator=name, region=list(addresses), http=door.address if door else None)
        await stop.wait()
        log.info("allocator_stopping", allocator=name)
        await process.stop()
