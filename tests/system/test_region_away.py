"""The region is killed under load: edges answer by each rule's stages, marked, within the bound; then all is normal.

Real processes on loopback. A region that is killed was heard last at most a second before, so each stage begins within
the second that follows its time after the kill.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from apportion.commands.demonstration.processes import Child, Processes, kept_ports, processes
from apportion.commands.demonstration.running import edge_arguments, serving
from apportion.core.bounds import StoreKind, bound_of
from apportion.core.limit import RateLimit
from apportion.core.meter import Meter
from apportion.core.rules_file import parse_rules
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc, region_pb2, region_pb2_grpc

EDGES = ("frankfurt", "dublin")

RULES = """
version: 1
domain: api
edges_max: 4
defaults: {deadline: 300ms}
rules:
  - {name: kept, match: {api: kept}, key: [api], limit: {rate: 60/s}, enforce: lease,
     when_unavailable: [keep_share for 3s, fair_share for 5s, deny]}
  - {name: fair, match: {api: fair}, key: [api], limit: {rate: 40/s}, enforce: region,
     when_unavailable: [fair_share for 4s, deny]}
  - {name: open, match: {api: open}, key: [api], limit: {rate: 40/s}, enforce: region,
     when_unavailable: [allow for 3s, deny]}
  - {name: shut, match: {api: shut}, key: [api], limit: {rate: 40/s}, enforce: lease, when_unavailable: [deny]}
"""

NAMES = ("kept", "fair", "open", "shut")

AWAY_S = 10.0

ASKED_PER_SECOND = 40
"""Requests for each rule at each edge."""


@dataclass(frozen=True)
class Answer:
    """What one request was told; `at` seconds of the test's clock, when it was asked."""

    at: float
    rule: str
    allowed: bool
    degraded: bool
    epoch: int | None


class System:
    """Region on a file, allocator, two edges with a state folder each."""

    def __init__(self, started: Processes, folder: Path, ports: list[int]) -> None:
        self._started = started
        self.folder = folder
        self.rules = folder / "rules.yaml"
        region, *doors = (f"127.0.0.1:{port}" for port in ports)
        self.address = region
        self.doors = dict(zip(EDGES, doors, strict=True))
        self.answers: list[Answer] = []
        self.region: Child

    async def start_region(self) -> None:
        """Start it, and wait until it serves."""
        store = f"sqlite:///{self.folder / 'region.db'}"
        arguments = ("region", "--rules", str(self.rules), "--listen", self.address, "--store", store)
        self.region = await self._started.start("region 1", "apportion", *arguments)
        await serving(self.region, self.address)

    async def start_allocator(self) -> None:
        """Start it."""
        await self._started.start("allocator 1", "apportion", "allocator", "--region", self.address)

    async def start_edge(self, name: str, *more: str) -> Child:
        """Start it, and wait until it serves."""
        arguments = edge_arguments(name, self.address, self.doors[name])
        child = await self._started.start(f"edge {name}", *arguments, *more)
        await serving(child, self.doors[name])
        return child

    async def ask(self, stub: Any, rule: str) -> Answer:
        """One request."""
        at = time.monotonic()
        return answered(at, rule, await stub.Decide(request(rule), timeout=10))

    async def _ask_all(self, stub: Any) -> None:
        at = time.monotonic()
        many = limiter_pb2.DecideManyRequest(requests=[request(rule) for rule in NAMES])
        said = await stub.DecideMany(many, timeout=10)
        self.answers += [answered(at, rule, each) for rule, each in zip(NAMES, said.responses, strict=True)]

    async def load(self, edge: str, stop: asyncio.Event) -> None:
        """Ask for every rule, evenly, until told to stop."""
        under_way: set[asyncio.Task[None]] = set()
        async with grpc.aio.insecure_channel(self.doors[edge]) as channel:
            stub: Any = limiter_pb2_grpc.LimiterStub(channel)

            due = time.monotonic()
            while not stop.is_set():
                task = asyncio.create_task(self._ask_all(stub))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                due += 1 / ASKED_PER_SECOND
                await asyncio.sleep(max(due - time.monotonic(), 0))
            await asyncio.gather(*under_way)

    async def explained(self) -> region_pb2.ExplainResponse:
        """What the region says, with the epochs kept."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            stub: Any = region_pb2_grpc.RegionStub(channel)
            said: region_pb2.ExplainResponse = await stub.Explain(region_pb2.ExplainRequest(epochs=60), timeout=10)
            return said

    def between(self, rule: str, start: float, end: float) -> list[Answer]:
        """Answers of a rule to what was asked in that time."""
        return [answer for answer in self.answers if answer.rule == rule and start <= answer.at < end]


def request(rule: str) -> limiter_pb2.DecideRequest:
    """One request for that rule."""
    return limiter_pb2.DecideRequest(domain="api", descriptors=[limiter_pb2.Descriptor(dimensions={"api": rule})])


def answered(at: float, rule: str, answer: limiter_pb2.DecideResponse) -> Answer:
    """What was answered."""
    (verdict,) = answer.verdicts
    epoch = verdict.epoch if verdict.charged and verdict.HasField("epoch") else None
    return Answer(at, rule, answer.allowed, verdict.degraded, epoch)


@asynccontextmanager
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """Processes to be started; whoever is up is stopped with the block."""
    with kept_ports(1 + len(EDGES)) as ports:
        async with processes() as started:
            whole = System(started, tmp_path, ports)
            whole.rules.write_text(RULES)
            yield whole


@pytest.mark.asyncio
@pytest.mark.timeout(240)
async def test_the_region_is_killed_under_load(tmp_path: Path) -> None:
    """By each rule's stages to the second, marked, within the printed bound, and normal 3 s after it is back."""
    async with system(tmp_path) as whole:
        await whole.start_region()
        await whole.start_allocator()
        for name in EDGES:
            await whole.start_edge(name)
        stop = asyncio.Event()
        loads = [asyncio.create_task(whole.load(name, stop)) for name in EDGES]
        await asyncio.sleep(14)
        killed = time.monotonic()
        whole.region.kill()
        await asyncio.sleep(AWAY_S)
        back = time.monotonic()
        await whole.start_region()
        ready = time.monotonic()
        await asyncio.sleep(7)
        stop.set()
        await asyncio.gather(*loads)
        await asyncio.sleep(2.5)
        said = await whole.explained()

    _check_stages(whole, killed, back)
    assert not [answer for answer in whole.answers if ready + 3 <= answer.at < ready + 6 and answer.degraded]
    _check_bounds(whole)
    _check_rollup(whole, said)


def _check_stages(whole: System, killed: float, back: float) -> None:
    """Each stage began within the second before its time after the kill, for that is how old the last tick may be."""
    slow = 0.35  # until the edges' streams have ended, and what a loaded machine adds
    opened = whole.between("open", killed + slow, killed + 2)
    assert len(opened) > ASKED_PER_SECOND // 2
    assert all(answer.allowed and answer.degraded for answer in opened)
    for name, ends in (("open", 3), ("fair", 4), ("kept", 8)):
        after = whole.between(name, killed + ends + slow, back)
        assert len(after) > ASKED_PER_SECOND // 2
        assert all(answer.degraded and not answer.allowed for answer in after), name
    for name, start, end in (("fair", slow, 3.0), ("kept", 3.0 + slow, 7.0)):
        during = whole.between(name, killed + start, killed + end)
        assert any(answer.allowed for answer in during), name
        assert all(answer.degraded for answer in during), name
    # Half a second before the kill the slices of the next epoch may have been sent, which lasts one and a half more.
    assert all(answer.degraded for answer in whole.between("kept", killed + 1.6, killed + 2))
    kept = [answer for answer in whole.between("kept", killed + 1, killed + 2) if answer.allowed]
    fair = [answer for answer in whole.between("kept", killed + 4.5, killed + 5.5) if answer.allowed]
    assert len(kept) >= 20, "the last slices of both, about 28 each"
    assert 10 <= len(fair) <= 60, "floor(60 / 4) at each of both, in one or two labels"
    shut = whole.between("shut", killed + 2, back)
    assert all(answer.degraded and not answer.allowed for answer in shut)


def _check_bounds(whole: System) -> None:
    """The sum of all answers, by label, beside what check-config prints."""
    spent: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for answer in whole.answers:
        if answer.epoch is not None:
            spent[answer.rule][answer.epoch] += 1
    for name in NAMES:
        rule = parse_rules([("rules.yaml", RULES)]).rule("api", name)
        assert rule is not None and isinstance(rule.limit, RateLimit)
        bound = bound_of(rule, StoreKind.SQLITE).units
        meter = Meter(rule.limit, rule.divided)
        for epoch in sorted(spent[name]):
            meter.record(epoch, spent[name][epoch])
        if bound is None:
            assert name == "open"
        else:
            assert meter.worst <= bound, f"{name}: over by {meter.worst}, the bound is {bound}"


def _check_rollup(whole: System, said: region_pb2.ExplainResponse) -> None:
    """What was spent while the region was away is in its sum, by label."""
    spent: dict[int, int] = defaultdict(int)
    for answer in whole.answers:
        if answer.rule == "kept" and answer.epoch is not None and answer.degraded:
            spent[answer.epoch] += 1
    (state,) = [state for state in said.quotas if state.rule == "kept"]
    known = {epoch.epoch: epoch.admitted for epoch in state.epochs}
    told = [epoch for epoch in spent if epoch in known]
    assert len(told) >= 6
    assert all(known[epoch] >= spent[epoch] for epoch in told)


@pytest.mark.asyncio
@pytest.mark.timeout(180)
async def test_an_edge_starts_while_the_region_is_away(tmp_path: Path) -> None:
    """With its state it is ready and goes on by its stages; with a damaged one it says so and has the boot copy."""
    state = tmp_path / "state"
    async with system(tmp_path) as whole:
        whole.rules.write_text(RULES.replace("fair_share for 4s, deny", "fair_share for 60s, deny"))
        await whole.start_region()
        await whole.start_allocator()
        edge = await whole.start_edge("frankfurt", "--state", str(state))
        while not (state / "edge.state").exists():  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.2)
        whole.region.kill()
        edge.kill()
        await edge.process.wait()

        edge = await whole.start_edge("frankfurt", "--state", str(state))
        assert '"source": "state"' in edge.log.read_text() or "source=state" in edge.log.read_text()
        async with grpc.aio.insecure_channel(whole.doors["frankfurt"]) as channel:
            stub: Any = limiter_pb2_grpc.LimiterStub(channel)
            await asyncio.sleep(1.2)
            answers = [await whole.ask(stub, "fair") for _ in range(12)]
            shut = await whole.ask(stub, "shut")
        assert all(answer.degraded for answer in answers)
        assert 10 <= sum(answer.allowed for answer in answers) <= 12
        assert shut.degraded and not shut.allowed
        edge.kill()
        await edge.process.wait()

        (state / "edge.state").write_bytes((state / "edge.state").read_bytes()[:-20])
        more = ("--state", str(state), "--rules", str(whole.rules))
        edge = await whole.start_edge("frankfurt", *more)
        log = edge.log.read_text()
        assert "state_refused" in log and "is damaged: its checksum is another" in log
        assert "edge_booted" in log
        await whole.start_region()
        async with grpc.aio.insecure_channel(whole.doors["frankfurt"]) as channel:
            stub = limiter_pb2_grpc.LimiterStub(channel)
            async with asyncio.timeout(20):
                while (await whole.ask(stub, "fair")).degraded:  # noqa: ASYNC110  # another process answers
                    await asyncio.sleep(0.1)
