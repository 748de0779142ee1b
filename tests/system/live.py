"""A small whole system for tests that change rules or read back: region, allocator, two edges, as real processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from apportion.commands.demonstration.processes import Child, Processes, kept_ports, processes
from apportion.commands.demonstration.running import edge_arguments, serving
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc, region_pb2, region_pb2_grpc

EDGES = ("frankfurt", "dublin")

BOUND_S = 30.0
"""What anything gets to happen; the two seconds are counted in the region's epochs, whatever the machine does."""

HEAD = "version: 1\ndomain: api\nedges_max: 4\ndefaults: {deadline: 1s}\nrules:\n"

Change = Callable[[Path, str], None]


def rule(name: str, limit: str, enforce: str) -> str:
    """One rule by its name, for everybody."""
    return (
        f"  - {{name: {name}, match: {{api: {name}}}, key: [api], limit: {limit}, enforce: {enforce}, "
        "when_unavailable: [deny]}\n"
    )


def rules(search: str = "{rate: 100/s}", pay: str = "{rate: 10/min}", enforce: str = "lease") -> str:
    """A file of two rules."""
    return HEAD + rule("search", search, enforce) + rule("pay", pay, "region")


def in_place(path: Path, text: str) -> None:
    """Write over the file."""
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    """Write another file and rename it over, as editors do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


class System:
    """Region, allocator and two edges that go by the files of `folder`."""

    def __init__(self, started: Processes, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        self.file = folder / "rules.yaml"
        region, self.region_http, self.allocator_http, *doors = (f"127.0.0.1:{port}" for port in ports)
        self.address = region
        self.doors = dict(zip(EDGES, doors, strict=True))
        self.region: Child
        self.children: list[Child] = []
        self._started = started

    async def start(self) -> None:
        """Start everything and wait until both edges have acknowledged the rules."""
        await self.start_region()
        dividing = ("allocator", "--region", self.address, "--http", self.allocator_http)
        allocator = await self._started.start("allocator 1", "apportion", *dividing)
        edges = [await self.start_edge(name) for name in self.doors]
        self.children = [self.region, allocator, *edges]
        for child, address in zip(self.children[2:], self.doors.values(), strict=True):
            await serving(child, address)
        await self.until(lambda said: said.register.generation > 0 and acknowledged(said, 1))

    async def start_region(self) -> None:
        """Start the region, on its file and port; returns at once."""
        store = f"sqlite:///{self._started.folder / 'region.db'}"
        arguments = ("region", "--rules", str(self.folder), "--listen", self.address, "--store", store)
        self.region = await self._started.start("region 1", "apportion", *arguments, "--http", self.region_http)

    async def start_edge(self, name: str) -> Child:
        """Start an edge that keeps its state on disk; returns at once."""
        state = str(self._started.folder / f"state {name}")
        arguments = edge_arguments(name, self.address, self.doors[name])
        return await self._started.start(f"edge {name}", *arguments, "--state", state)

    async def explain(self, request: region_pb2.ExplainRequest | None = None) -> region_pb2.ExplainResponse:
        """What the region says."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            stub: Any = region_pb2_grpc.RegionStub(channel)
            said: region_pb2.ExplainResponse = await stub.Explain(
                request or region_pb2.ExplainRequest(), timeout=BOUND_S
            )
            return said

    async def until(self, fits: Callable[[region_pb2.ExplainResponse], bool]) -> region_pb2.ExplainResponse:
        """Ask again and again until what the region says fits."""
        said = None
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUND_S):
                while True:
                    with suppress(grpc.aio.AioRpcError):
                        said = await self.explain()
                        if fits(said):
                            return said
                    await asyncio.sleep(0.02)
        raise AssertionError(f"it did not come to it; last: {said}\n{self.region.last_lines()}")

    async def decide(self, edge: str, api: str) -> limiter_pb2.DecideResponse:
        """Ask one edge for one request."""
        async with grpc.aio.insecure_channel(self.doors[edge]) as channel:
            stub: Any = limiter_pb2_grpc.LimiterStub(channel)
            descriptor = limiter_pb2.Descriptor(dimensions={"api": api})
            request = limiter_pb2.DecideRequest(domain="api", descriptors=[descriptor])
            answer: limiter_pb2.DecideResponse = await stub.Decide(request, timeout=BOUND_S)
            return answer

    async def admitted(self, edge: str, api: str) -> bool:
        """Ask until it is admitted, waiting as told; False when waiting cannot help."""
        async with asyncio.timeout(BOUND_S):
            while not (answer := await self.decide(edge, api)).allowed:
                (refused,) = answer.verdicts
                if not refused.HasField("retry_after"):
                    return False
                await asyncio.sleep(refused.retry_after.ToNanoseconds() / 1e9)
        return True

    async def logged(self, event: str) -> None:
        """Wait until the region has logged this event."""
        async with asyncio.timeout(BOUND_S):
            while event not in self.region.log.read_text():  # noqa: ASYNC110 (another process's file)
                await asyncio.sleep(0.02)

    async def change(self, text: str, how: Change = in_place) -> int:
        """Change the file; epochs until every edge has acknowledged the next version."""
        before = await self.explain()
        how(self.file, text)
        after = await self.until(lambda said: acknowledged(said, before.rules_version + 1))
        return after.epoch - before.epoch


def acknowledged(said: region_pb2.ExplainResponse, version: int) -> bool:
    """Whether both edges decide by that version."""
    return [edge.rules_version for edge in said.edges] == [version] * len(EDGES)


@asynccontextmanager
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """Everything up; everything is stopped with the block."""
    with kept_ports(3 + len(EDGES)) as ports:
        async with processes() as started:
            whole = System(started, tmp_path, ports)
            whole.file.write_text(rules())
            await whole.start()
            yield whole


@asynccontextmanager
async def system_of_links(folder: Path) -> AsyncIterator[System]:
    """As `system`, with the files that are there."""
    with kept_ports(3 + len(EDGES)) as ports:
        async with processes() as started:
            whole = System(started, folder, ports)
            await whole.start()
            yield whole
