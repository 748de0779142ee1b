"""One run of the demo: processes up, traffic on, figures each second, sums compared, result. Decides nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from apportion.commands.demonstration.accounts import Account, Order, ask_of
from apportion.commands.demonstration.processes import Child, Processes, failure
from apportion.commands.demonstration.questions import Question
from apportion.commands.demonstration.referee import compare
from apportion.commands.demonstration.region_view import EPOCHS_ALL, QuotaView, RegionView
from apportion.commands.demonstration.results import Result, cpu_shares, is_too_busy, problems_of, rule_result
from apportion.commands.demonstration.traffic import DWELL_NS

UP_S = 60.0
"""What a process gets to come up; seven interpreters start at once, on a machine that may be busy."""

POLL_S = 0.1

AGREE_S = 5.0
"""What the last reports get to reach the region's sum: edges send them within 0.3 s of their epoch's end."""

SILENT_S = 10.0
"""The load process tells something each second; one that is silent for so long is stuck."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run needs. `rules` is the path of the rules file or folder, `edges` the names of the places."""

    rules: Path
    questions: tuple[Question, ...]
    edges: tuple[str, ...]
    seconds: float
    seed: int
    edges_max: int | None
    dwell_ns: int = DWELL_NS


class Run:
    """A run on processes that it starts; `watch` gets each second's account with the region's view."""

    def __init__(
        self, setting: Setting, started: Processes, watch: Callable[[Account, Sequence[QuotaView]], None]
    ) -> None:
        self.setting = setting
        self._processes = started
        self._watch = watch
        self._notes: list[str] = []

    async def start(self, ports: Sequence[int]) -> None:
        """Start everything on `ports`, one for the region and one for each edge, and wait until all of it is up.

        Raises UnavailableError: one did not come up, with the end of its log.
        """
        start, folder = self._processes.start, self._processes.folder
        region, *doors = [f"127.0.0.1:{port}" for port in ports]
        self._region_address, self._doors = region, doors
        store = f"sqlite:///{folder / 'region.db'}"
        self._region = await start(
            "region", "apportion", "region", "--rules", str(self.setting.rules), "--listen", region, "--store", store
        )
        self._allocators = [
            await start(f"allocator {number}", "apportion", "allocator", "--region", region) for number in (1, 2)
        ]
        self._edges = [
            await start(f"edge {name}", *edge_arguments(name, region, door))
            for name, door in zip(self.setting.edges, doors, strict=True)
        ]
        self._load = await start("load", "apportion.commands.demonstration.load", spoken_to=True)
        await asyncio.gather(
            serving(self._region, region),
            *(serving(child, door) for child, door in zip(self._edges, doors, strict=True)),
        )
        async with grpc.aio.insecure_channel(region) as channel:
            await self._has_leader(RegionView(channel, ()))

    async def perform(self) -> Result:
        """Offer the traffic and judge what came of it. Raises UnavailableError when region or load process end."""
        async with grpc.aio.insecure_channel(self._region_address) as channel:
            view = RegionView(channel, self.setting.questions)
            before, started = self._cpu(), time.monotonic()
            account = await self._watch_load(view)
            cpu = cpu_shares(before, self._cpu(), account, time.monotonic() - started)
            differences = await self._settle(view, account)
        return self._judge(account, view, differences, cpu)

    async def _watch_load(self, view: RegionView) -> Account:
        """Order the load, and show each second until its last account."""
        pipe = self._load.process
        assert pipe.stdin is not None and pipe.stdout is not None
        asks = tuple(ask_of(question) for question in self.setting.questions)
        setting = self.setting
        order = Order(tuple(self._doors), asks, setting.seconds, setting.seed, dwell_ns=setting.dwell_ns)
        with contextlib.suppress(ConnectionError):  # what happened to it is told below
            pipe.stdin.write(order.line())
            await pipe.stdin.drain()
        while True:
            try:
                line = await asyncio.wait_for(pipe.stdout.readline(), SILENT_S)
            except TimeoutError:
                raise failure(self._load, f"said nothing for {SILENT_S:g} s") from None
            if not line:
                await self._load.process.wait()
                raise failure(self._load, f"{self._load.how_it_ended()} before its time")
            account = Account.read(line)
            await self._read(view)
            self._note_ended()
            if account.done:
                return account
            self._watch(account, view.quotas)

    async def _settle(self, view: RegionView, account: Account) -> list[list[str]]:
        """Wait until the region's sums agree with the answers'; returns where they still differ, by question."""
        deadline = time.monotonic() + AGREE_S
        while not await self._read(view, EPOCHS_ALL):
            if time.monotonic() > deadline:
                raise failure(self._region, f"did not answer for {AGREE_S:g} s at the end of the run")
        while True:
            differences = [
                compare(rule.labels, quota.labels, rule.unanswered + rule.degraded * question.cost)
                for question, rule, quota in zip(self.setting.questions, account.rules, view.quotas, strict=True)
            ]
            awaited = any(label.unreported for quota in view.quotas for label in quota.labels.values())
            if (not any(differences) and not awaited) or time.monotonic() > deadline:
                return differences
            await asyncio.sleep(POLL_S)
            await self._read(view, EPOCHS_ALL)

    async def _read(self, view: RegionView, *epochs: int) -> bool:
        """Ask the region; False when it lives and did not answer, which a busy machine may do to it for a while."""
        try:
            await view.read(*epochs)
        except grpc.aio.AioRpcError:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._region.process.wait(), POLL_S)
            if self._region.ended:
                raise failure(self._region, f"{self._region.how_it_ended()} in the middle of the run") from None
            return False
        return True

    def _judge(self, account: Account, view: RegionView, differences: list[list[str]], cpu: dict[str, float]) -> Result:
        rows, problems = [], []
        for question, rule, quota, different in zip(
            self.setting.questions, account.rules, view.quotas, differences, strict=True
        ):
            row = rule_result(question, rule, quota, not different, self.setting.edges_max)
            rows.append(row)
            problems += problems_of(question, row, rule, different)
        unanswered = sum(rule.unanswered for rule in account.rules)
        if unanswered:
            where = ", ".join(
                f"{count} {status} at {edge}"
                for edge, told in zip(self.setting.edges, account.edges, strict=True)
                for status, count in sorted(told.failures.items())
            )
            self._notes.append(f"requests for {unanswered} units had no answer and may have been charged: {where}")
        degraded = sum(rule.degraded for rule in account.rules)
        if degraded:
            self._notes.append(f"{degraded} answers were given without the authority that should have decided")
        if account.not_sent:
            self._notes.append(f"{account.not_sent} requests were not sent, because too many had no answer yet")
        lost = sum(sum(told.failures.values()) for told in account.edges)
        # Where a process was killed, that is why answers are missing.
        if is_too_busy(lost, account.requests, account.not_sent) and not self._any_ended():
            self._notes.append("this machine is too busy for the figures to be typical")
        return Result(
            rules=tuple(rows),
            problems=tuple(problems),
            notes=tuple(self._notes),
            seconds=self.setting.seconds,
            seed=self.setting.seed,
            dwell=self.setting.dwell_ns / 1e9,
            edges=self.setting.edges,
            warm_up_epochs=account.warm_up_epochs,
            measured_epochs=account.measured_epochs,
            requests=account.requests,
            not_sent=account.not_sent,
            cpu=cpu,
            cpu_microseconds_per_request=round(account.cpu_seconds / max(account.requests, 1) * 1e6),
        )

    def _note_ended(self) -> None:
        """An edge or an allocator may be killed in the middle of a run; what that does is for the figures to show."""
        for child in (*self._edges, *self._allocators):
            note = f"{child.name} {child.how_it_ended()} in the middle of the run"
            if child.ended and note not in self._notes:
                self._notes.append(note)

    def _any_ended(self) -> bool:
        return any(child.ended for child in (*self._edges, *self._allocators))

    def _cpu(self) -> dict[str, float]:
        children = (self._region, *self._allocators, *self._edges)
        return {child.name: seconds for child in children if (seconds := child.cpu_seconds()) is not None}

    async def _has_leader(self, view: RegionView) -> None:
        """Wait until one of the allocators leads."""
        deadline = time.monotonic() + UP_S
        while True:
            await self._read(view)
            if view.generation:
                return
            for child in self._allocators:
                if child.ended:
                    raise failure(child, f"did not come up: it {child.how_it_ended()}")
            if time.monotonic() > deadline:
                raise failure(self._allocators[0], f"did not take the lead within {UP_S:g} s")
            await asyncio.sleep(POLL_S)


def edge_arguments(name: str, region: str, door: str) -> tuple[str, ...]:
    """Module and arguments of an edge."""
    return ("apportion", "edge", "--id", name, "--location", name, "--region", region, "--rls", door)


async def serving(child: Child, address: str) -> None:
    """Wait until the process's health says that it serves. Raises UnavailableError when it does not come to that."""
    deadline = time.monotonic() + UP_S
    while True:
        # A channel for each attempt: one that was refused would wait a second before it tries again.
        async with grpc.aio.insecure_channel(address) as channel:
            with contextlib.suppress(grpc.RpcError):
                check = health_pb2_grpc.HealthStub(channel).Check  # type: ignore[attr-defined]  # typed without it
                answer = await check(health_pb2.HealthCheckRequest(), timeout=1.0)
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
        if child.ended:
            raise failure(child, f"did not come up: it {child.how_it_ended()}")
        if time.monotonic() > deadline:
            raise failure(child, f"did not come up within {UP_S:g} s")
        await asyncio.sleep(POLL_S)
