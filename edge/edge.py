"""The edge's shell: it keeps a stream to a region replica and performs what the agent wants. It decides nothing itself.

One event is handled at a time, in the event loop. Requests that cross wait as futures, keyed by ticket number.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import cycle

import grpc
import grpc.aio
import structlog

from apportion.core.decision import Decision, Verdict
from apportion.core.match import Matcher
from apportion.core.messages import Acquire, FromEdge
from apportion.core.request import Application
from apportion.edge import verdicts
from apportion.edge.agent import Agent
from apportion.edge.decider import Gauges
from apportion.edge.events import (
    Command,
    Connected,
    Event,
    Lost,
    Note,
    Polled,
    Received,
    Reconnect,
    Send,
    Settled,
    Shadowed,
)
from apportion.linking import LINK_ERRORS, PAUSE_S, linked, reason_of
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.proto.wire import edge_to_wire, reply_from_wire

log = structlog.get_logger("apportion.edge")

SPREAD_S = 1.0
"""Over so long the first attempts of many edges are spread, after their start and after a stream that worked was lost:
when a whole region restarts, or all edges do, no tenth of a second brings many of them (case C31).
"""

LEAVE_S = 1.0
"""What a leaving edge waits for the region to take its last report."""

Stream = grpc.aio.StreamStreamCall[region_pb2.FromEdge, region_pb2.ToEdge]


def boottime_ns() -> int:
    """The edge's clock: monotonic, and it goes on while the machine is suspended, where the system has such a one."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Edge:
    """One running edge agent; a `Decider` for its doors. `addresses` are region replicas, tried in turn."""

    def __init__(
        self, agent: Agent, addresses: Sequence[str], clock: Callable[[], int] = boottime_ns, seed: int | None = None
    ) -> None:
        self.agent = agent
        self._addresses = cycle(addresses)
        self._clock = clock
        self._random = random.Random(seed)
        self._futures: dict[int, asyncio.Future[Decision]] = {}
        self._outbox: asyncio.Queue[FromEdge | None] | None = None
        self._stream: Stream | None = None
        self._link: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = False
        self._crossings = 0
        self._was_ready = False
        self._worked = False
        self._readiness = asyncio.Event()
        self.shadowed: Callable[[Verdict], object] = lambda _: None
        """Told what shadow rules say that no decision could wait for."""

    @property
    def ready(self) -> bool:
        """Whether rules are in force: the region's, or those of before while it is away."""
        return self.agent.ready

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that there are rules for, sorted; none before the first rules came."""
        return tuple(sorted(self.agent.matchers))

    def matcher(self, domain: str) -> Matcher | None:
        """The compiled rules of `domain`; "" names the only one."""
        matchers = self.agent.matchers
        if not domain and len(matchers) == 1:
            return next(iter(matchers.values()))
        return matchers.get(domain)

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        """Decide a request; a future where it has to cross."""
        try:
            answer = self.agent.ask(applications, self._clock(), peek)
        except Exception:  # our own fault must still be answered (design 4.1), and be seen
            log.exception("decision_failed")
            return self._answer_failure(applications, peek)
        if isinstance(answer, Decision):
            return answer
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._futures[answer.number] = future
        if not self._flushing and self.agent.pressing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)
        return future

    def _answer_failure(self, applications: tuple[Application, ...], peek: bool) -> Decision:
        """What the rules' stages say, for this program has failed; refused if that fails, too."""
        try:
            return self.agent.fall_back(applications, self._clock(), peek)
        except Exception:
            log.exception("fallback_failed")
            return verdicts.unavailable(applications)

    def gauges(self) -> Gauges:
        """What a scrape sees beside the counts."""
        return Gauges(
            holdings=self.agent.holdings,
            crossings=self._crossings,
            tickets_waiting=len(self._futures),
            epoch_error_ns=self.agent.clock.error_ns(),
            reports_given_up=self.agent.reports_given_up,
            rules_version=self.agent.rules.version if self.agent.rules is not None else None,
            stages=dict(self.agent.fallbacks.counts),
        )

    async def readiness_changed(self) -> None:
        """Wait until `ready` has changed since the last call."""
        await self._readiness.wait()
        self._readiness.clear()

    async def start(self) -> None:
        """Begin to attach; returns at once. `ready` tells when it has."""
        self._link = asyncio.create_task(self._keep_attached())

    async def stop(self) -> None:
        """Leave in good order: answer what waits, give back what is unspent, report, end the stream."""
        if self._timer is not None:
            self._timer.cancel()
        for command in self.agent.leave(self._clock()):
            self._perform(command)
        if self._outbox is not None and self._stream is not None:
            self._outbox.put_nowait(None)
            await asyncio.wait([asyncio.create_task(self._stream.code())], timeout=LEAVE_S)
        if self._link is not None:
            self._link.cancel()
            await asyncio.gather(self._link, return_exceptions=True)

    # --- the agent

    def _feed(self, event: Event) -> None:
        now_ns = self._clock()
        try:
            for command in self.agent.step(event, now_ns):
                self._perform(command)
        finally:  # time must go on, whatever went wrong with one event
            self._note_readiness()
            wake = (self.agent.wake_ns(now_ns) - now_ns) / 1e9
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(wake, self._feed, Polled())

    def _note_readiness(self) -> None:
        if self.agent.ready != self._was_ready:
            self._was_ready = self.agent.ready
            self._readiness.set()

    def _flush(self) -> None:
        self._flushing = False
        self._feed(Polled())

    def _perform(self, command: Command) -> None:
        match command:
            case Send(message):
                self._crossings += isinstance(message, Acquire)
                if self._outbox is not None:
                    self._outbox.put_nowait(message)
            case Settled(ticket, decision):
                future = self._futures.pop(ticket, None)
                if future is not None and not future.done():
                    future.set_result(decision)
            case Shadowed(verdict):
                self.shadowed(verdict)
            case Reconnect():
                if self._stream is not None:
                    self._stream.cancel()
            case Note(level, event, fields):
                getattr(log, level)(event, edge=self.agent.edge, **dict(fields))

    # --- the stream

    async def _keep_attached(self) -> None:
        pause = pause_s(self._random, worked=True)
        while True:
            await asyncio.sleep(pause)
            address = next(self._addresses)
            self._worked = False
            try:
                await self._attach(address)
            except LINK_ERRORS as error:
                log.warning("region_unreachable", edge=self.agent.edge, region=address, reason=reason_of(error))
            except Exception:  # our own fault must not cost the link for good
                log.exception("link_failed", edge=self.agent.edge, region=address)
            self._feed(Lost())
            pause = pause_s(self._random, self._worked)

    async def _attach(self, address: str) -> None:
        async with linked(address) as channel:
            outbox = self._outbox = asyncio.Queue()
            stream = region_pb2_grpc.RegionStub(channel).Attach(_requests(outbox))
            self._stream = stream
            try:
                self._feed(Connected())
                async for reply in stream:
                    self._worked = True
                    self._feed(Received(reply_from_wire(reply)))
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
                # otherwise the stream was cancelled, by Reconnect
            finally:
                self._stream, self._outbox = None, None
                outbox.put_nowait(None)  # gRPC goes on waiting for messages to send after the peer has ended the stream


def pause_s(source: random.Random, worked: bool) -> float:
    """Seconds until the next attempt to attach: one of many where a stream `worked`, else soon."""
    return source.uniform(0, SPREAD_S) if worked else source.uniform(*PAUSE_S)


async def _requests(outbox: asyncio.Queue[FromEdge | None]) -> AsyncIterator[region_pb2.FromEdge]:
    while (message := await outbox.get()) is not None:
        yield edge_to_wire(message)
