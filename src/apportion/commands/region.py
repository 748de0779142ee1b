"""`apportion region`: one replica of the regional authority."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import grpc.aio
import structlog
import typer
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from apportion.commands.config_file import ConfigFile
from apportion.core.errors import InputError
from apportion.core.last_good import Merged
from apportion.core.rules_file import parse_rules
from apportion.guarding import Guarded
from apportion.health import Checks
from apportion.listening import check_address, listen
from apportion.process import run_service, stop_signals, told_plainly
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.region.keeping import parse_kept
from apportion.region.metrics import collect
from apportion.region.region import Region
from apportion.region.service import RegionService
from apportion.region.store_url import open_store
from apportion.rules_path import read_rule_texts
from apportion.rules_watch import RulesWatch
from apportion.status_door import StatusDoor, status_door

log = structlog.get_logger("apportion.region")

SERVICE = region_pb2.DESCRIPTOR.services_by_name["Region"].full_name

STOP_S = 5.0
"""What calls under way get to end by themselves when the process is asked to stop."""


@told_plainly
def region(
    rules: Annotated[str, typer.Option(envvar="APPORTION_RULES", metavar="PATH", help="Rules file, or a folder.")],
    listen: Annotated[
        str, typer.Option(envvar="APPORTION_LISTEN", metavar="ADDR", help="HOST:PORT or unix:PATH.")
    ] = "127.0.0.1:7000",
    store: Annotated[
        str, typer.Option(envvar="APPORTION_STORE", metavar="URL", help="memory: or sqlite:///PATH.")
    ] = "memory:",
    http: Annotated[
        str | None,
        typer.Option(envvar="APPORTION_HTTP", metavar="ADDR", help="Serve /healthz, /readyz, /metrics here."),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Decide exactly: keep the region's counters, and forward the allocator's plans to the edges.

    Rules that change on disk take effect on every edge within 2 seconds, without a restart and without losing what was
    used; SIGHUP has them read at once. A file that is wrong keeps its last good text, and the log and `apportion top`
    say so.

    Stops cleanly on SIGTERM (exit code 0) and SIGINT (130): health says not serving, calls under way are answered, the
    store is closed.

    \b
    Examples:
        apportion region --rules rules.yaml --listen 127.0.0.1:7000 --store sqlite:///region.db
    """  # noqa: D301  (the mark has the lines stay as they are)
    check_address(listen)
    if http is not None:
        check_address(http)
    texts = read_rule_texts(rules)
    ruleset = parse_rules(texts)
    run_service(lambda: serve(Region(open_store(store), ruleset, texts), listen, rules, http))


async def serve(region: Region, address: str, path: str, http: str | None = None) -> None:
    """Run a replica on `address`, by the rules at `path`, until SIGTERM or SIGINT."""
    async with stop_signals() as stop:
        await region.start()
        watch = watch_rules(region, path)
        watching = asyncio.create_task(watch.run())
        checks = Checks()
        server, bound = await _listen_or_stop(region, address, checks)
        async with _open_http(region, http, server, stop) as door:
            for name in ("", SERVICE):
                await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
            where = {"listen": bound} | ({"http": door.address} if door else {})
            log.info("region_ready", **where, rules_version=region.authority.rules.version)
            await stop.wait()
        log.info("region_stopping")
        watching.cancel()
        await checks.end()
        stopped = asyncio.create_task(server.stop(STOP_S))
        await region.stop()
        await stopped


@asynccontextmanager
async def _open_http(
    region: Region, http: str | None, server: grpc.aio.Server, stop: asyncio.Event
) -> AsyncIterator[StatusDoor | None]:
    """The HTTP door, if one is wanted; a region whose door cannot be had stops again."""
    try:
        async with status_door(http, lambda: not stop.is_set(), partial(collect, region)) as door:
            yield door
    except InputError:
        await region.stop()
        await server.stop(None)
        raise


def watch_rules(region: Region, path: str) -> RulesWatch:
    """A watch over the files that `region` began with, which also SIGHUP sets to work."""

    async def adopt(merged: Merged) -> None:
        await region.change_rules(merged.texts, merged.ruleset)

    watch = RulesWatch(path, region.operator.files, adopt, partial(parse_kept, store=region.store))
    region.rules_status = watch.status
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, watch.reload)
    return watch


async def _listen_or_stop(region: Region, address: str, checks: Checks) -> tuple[grpc.aio.Server, str]:
    def register(server: grpc.aio.Server) -> None:
        guarded: Any = Guarded(server)
        region_pb2_grpc.add_RegionServicer_to_server(RegionService(region), guarded)
        health_pb2_grpc.add_HealthServicer_to_server(checks, guarded)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)

    try:
        return await listen(address, register)
    except BaseException:
        await region.stop()
        raise
