"""`apportion allocator`: re-divides every quota each second; the leader, or a standby for it."""

from __future__ import annotations

import secrets
import socket
from typing import Annotated

import structlog
import typer

from apportion.allocator.leader import Leader
from apportion.allocator.process import Allocator
from apportion.commands.config_file import ConfigFile
from apportion.core.rules_file import parse_rules
from apportion.listening import check_addresses
from apportion.process import run_service, stop_signals, told_plainly

log = structlog.get_logger("apportion.allocator")


@told_plainly
def allocator(
    region: Annotated[
        str, typer.Option(envvar="APPORTION_REGION", metavar="ADDR[,ADDR...]", help="The region's replicas.")
    ] = "127.0.0.1:7000",
    config: ConfigFile = None,
) -> None:
    """Divide quotas over edges by demand, each second. Start two: one leads, the other takes over within 2 seconds.

    Keeps nothing on disk, so it can be killed at any time: at most the epochs in flight go undivided. Stops on SIGTERM
    (exit code 0) and SIGINT (130).

    Examples:
        apportion allocator --region 127.0.0.1:7000
    """
    addresses = check_addresses(region)
    run_service(lambda: serve(addresses))


async def serve(addresses: tuple[str, ...]) -> None:
    """Run an allocator until SIGTERM or SIGINT."""
    incarnation = secrets.randbits(53)
    name = f"{socket.gethostname()}-{incarnation:x}"
    process = Allocator(Leader(name, incarnation, parse_rules), addresses)
    async with stop_signals() as stop:
        await process.start()
        log.info("allocator_started", allocator=name, region=list(addresses))
        await stop.wait()
        log.info("allocator_stopping", allocator=name)
        await process.stop()
