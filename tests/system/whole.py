"""The whole system as real processes, for tests: region on a file, two allocators, three edges, and a referee's load.

What starts, ends and loads them is the demo's own. Everything waited for is an event, and every wait has a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import pytest

from apportion.commands.demonstration.accounts import STOP, Account, Order, ask_of
from apportion.commands.demonstration.processes import Child, Processes, kept_ports, processes
from apportion.commands.demonstration.questions import Question, questions_for
from apportion.commands.demonstration.region_view import EPOCHS_ALL, QuotaView, RegionView
from apportion.commands.demonstration.running import edge_arguments, serving
from apportion.commands.demonstration.traffic import hotspot
from apportion.core.rules_file import parse_rules
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from tests.checkout import ROOT
from tests.system import warm

EDGES = ("frankfurt", "dublin", "singapore")

RATE = 60
"""Units a second of each rule. Two cores answer 2.5 times this to both rules, with most of them busy elsewhere."""


DEADLINE_MS = 500

RULES = f"""
version: 1
domain: demo
edges_max: 8
defaults: {{deadline: {DEADLINE_MS}ms}}

rules:
  - name: search
    match: {{api: search}}
    key: [api]
    limit: {{rate: {RATE}/s}}
    enforce: lease
    when_unavailable: [deny]

  - name: payments
    match: {{api: payments}}
    key: [api]
    limit: {{rate: {RATE}/s}}
    enforce: region
    when_unavailable: [deny]
"""

SECONDS_MAX = 90.0
"""Traffic ends when a test says so; this is for a test that does not come to it."""

ANSWER_S = 30.0
"""A request without an answer after so long was not answered, however busy the machine is."""

EVENT_S = 30.0
"""What an awaited event gets to happen; on an idle machine each happens within two seconds or so."""

POLL_S = 0.05

SEED = 7


Found = TypeVar("Found")


class Whole:
    """A running system; a process that was ended can be started again, on its port and file."""

    def __init__(self, started: Processes, ports: list[int], rules: str) -> None:
        self._started = started
        self._rules = started.folder / "rules.yaml"
        self._rules.write_text(rules)
        self._numbers: dict[str, int] = {}
        region, *doors = (f"127.0.0.1:{port}" for port in ports)
        self.address = region
        self.doors = dict(zip(EDGES, doors, strict=True))
        self.questions: tuple[Question, ...] = questions_for(parse_rules([("rules.yaml", rules)]))
        self.edges: dict[str, Child] = {}
        self.allocators: list[Child] = []
        self.region: Child
        self.traffic: Traffic

    async def start(self) -> None:
        """Start everything, and wait until all of it is up and somebody leads."""
        await self.start_region()
        for _ in range(2):
            await self.start_allocator()
        for name in EDGES:
            await self.start_edge(name)
        load = await self._start("load", "apportion.commands.demonstration.load", spoken_to=True)
        self.traffic = Traffic(load)
        await asyncio.gather(self.region_serves(), *(self.edge_serves(name) for name in EDGES))
        await self.leader()

    async def start_region(self) -> None:
        """Start the region on its file and port; returns at once."""
        self.region = await self._start("region", "apportion", *self._region_arguments)

    async def warm_region(self) -> Child:
        """Another region for the same file and port that waits to be begun; returns once it could begin."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
            child = await self._start("region", "tests.system.warm", *self._region_arguments, spoken_to=True)
        assert child.process.stdout is not None
        async with asyncio.timeout(EVENT_S):
            assert await child.process.stdout.readline() == warm.READY, child.last_lines()
        return child

    def begin_region(self, warmed: Child) -> None:
        """Let a region begin that was warmed up."""
        assert warmed.process.stdin is not None
        warmed.process.stdin.write(b"\n")
        self.region = warmed

    @property
    def _region_arguments(self) -> tuple[str, ...]:
        store = f"sqlite:///{self._started.folder / 'region.db'}"
        return ("region", "--rules", str(self._rules), "--listen", self.address, "--store", store)

    async def start_allocator(self) -> Child:
        """Start one more allocator; returns at once."""
        child = await self._start("allocator", "apportion", "allocator", "--region", self.address)
        self.allocators.append(child)
        return child

    async def start_edge(self, name: str) -> None:
        """Start the edge with this id on its port; returns at once."""
        arguments = edge_arguments(name, self.address, self.doors[name])
        self.edges[name] = await self._start(f"edge {name}", *arguments)

    async def _start(self, name: str, module: str, *arguments: str, spoken_to: bool = False) -> Child:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return await self._started.start(f"{name} {number}", module, *arguments, spoken_to=spoken_to)

    def noise(self) -> dict[str, str]:
        """What is in logs and is no event, by process: what libraries say, which nobody should have to read."""
        lines = {child.name: _noise(child.log) for child in self._started.children}
        return {name: text for name, text in lines.items() if text}

    # --- what can be seen

    async def region_serves(self) -> None:
        """Wait until the region's health says SERVING."""
        await serving(self.region, self.address)

    async def edge_serves(self, name: str) -> None:
        """Wait until this edge's health says SERVING."""
        await serving(self.edges[name], self.doors[name])

    async def explain(self, epochs: int = 0) -> region_pb2.ExplainResponse:
        """What the region says of itself."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            stub: Any = region_pb2_grpc.RegionStub(channel)
            answer: region_pb2.ExplainResponse = await stub.Explain(
                region_pb2.ExplainRequest(epochs=epochs), timeout=ANSWER_S
            )
            return answer

    async def sums(self) -> list[QuotaView]:
        """The region's own sums, in the order of the questions."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            view = RegionView(channel, self.questions)
            await view.read(EPOCHS_ALL)
            return view.quotas

    async def epoch(self) -> int:
        """The region's epoch."""
        return (await self.explain()).epoch

    async def leader(self, above: int = 0) -> tuple[Child, int]:
        """Wait until an allocator leads under a generation above `above`; gives it, and its generation."""

        async def leading() -> tuple[Child, int] | None:
            generation = (await self.explain()).register.generation
            for child in self.allocators:
                taken = [event["generation"] for event in events(child, "lead_taken")]
                if generation > above and generation in taken:
                    return child, generation
            return None

        return await happens(leading, "an allocator leads")


class Traffic:
    """The load process, and its accounts as they come."""

    def __init__(self, load: Child) -> None:
        self.accounts: list[Account] = []
        self._load = load
        self._news = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None

    async def begin(self, whole: Whole) -> None:
        """Offer 2.5 times each limit from now on."""
        asks = tuple(ask_of(question) for question in whole.questions)
        self._say(Order(tuple(whole.doors.values()), asks, SECONDS_MAX, SEED, ANSWER_S).line())
        self._reader = asyncio.create_task(self._read())

    async def end(self) -> Account:
        """Offer no more; the last account, once all that was asked is answered."""
        self._say(STOP)
        return await self.until(lambda account: account.done)

    async def until(self, fits: Callable[[Account], bool]) -> Account:
        """Wait for an account that fits, from the newest one on."""
        async with asyncio.timeout(EVENT_S), self._news:
            while not (self.accounts and fits(self.accounts[-1])):
                assert self._reader is not None and not self._reader.done(), self._load.last_lines()
                await self._news.wait()
        return self.accounts[-1]

    async def labels(self, count: int) -> int:
        """Wait until the answers of `count` more labels are in; the last of them."""
        now = await self.until(lambda account: account.rules[0].last_label is not None)
        last = now.rules[0].last_label
        assert last is not None
        await self.through(last + count)
        return last + count

    async def through(self, label: int) -> None:
        """Wait until the answers of this label are in."""
        await self.until(lambda account: (account.rules[0].last_label or 0) >= label)

    def late_ms(self, label: int) -> int:
        """How far behind its timetable the load process was, at most, while this label lasted."""
        told = next(i for i, account in enumerate(self.accounts) if (account.rules[0].last_label or 0) >= label)
        return max(account.late_ms for account in self.accounts[max(0, told - 2) : told + 1])

    def hot(self) -> str:
        """The edge that has the hotspot now."""
        return EDGES[hotspot(len(EDGES), SEED, int(self.accounts[-1].seconds * 1e9))]

    def _say(self, line: bytes) -> None:
        pipe = self._load.process.stdin
        assert pipe is not None
        pipe.write(line)

    async def _read(self) -> None:
        pipe = self._load.process.stdout
        assert pipe is not None
        while line := await pipe.readline():
            async with self._news:
                self.accounts.append(Account.read(line))
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()


@asynccontextmanager
async def whole_system(rules: str = RULES) -> AsyncIterator[Whole]:
    """Everything up and somebody leading; everything is stopped with the block."""
    with kept_ports(1 + len(EDGES)) as ports:
        async with processes() as started:
            whole = Whole(started, ports, rules)
            await whole.start()
            yield whole


def events(child: Child, name: str) -> list[dict[str, Any]]:
    """The events of this name in a process's log, in order."""
    return [event for event in _log(child.log) if event.get("event") == name]


async def logged(child: Child, name: str) -> dict[str, Any]:
    """Wait until a process has logged an event of this name; the first such."""

    async def found() -> dict[str, Any] | None:
        return next(iter(events(child, name)), None)

    return await happens(found, f"{child.name} logs {name}")


async def happens(look: Callable[[], Awaitable[Found | None]], what: str) -> Found:
    """Look again and again until there is something; AssertionError names what did not happen."""
    try:
        async with asyncio.timeout(EVENT_S):
            while True:
                with contextlib.suppress(grpc.aio.AioRpcError):  # a region that is down says nothing
                    if found := await look():
                        return found
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"within {EVENT_S:g} s it did not come to it that {what}") from None


async def killed(*children: Child) -> None:
    """End processes at once, by SIGKILL."""
    for child in children:
        child.kill()
    for child in children:
        await child.process.wait()


def signalled(child: Child, number: signal.Signals) -> None:
    """Send a process a signal."""
    assert not child.ended
    os.kill(child.pid, number)


def _noise(path: Path) -> str:
    return "\n".join(line for line in path.read_text(errors="replace").splitlines() if not line.startswith("{"))


def _log(path: Path) -> list[dict[str, Any]]:
    rows = []
    for line in path.read_text(errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows
