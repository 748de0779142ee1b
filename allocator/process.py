"""The shell of `apportion allocator`: streams to the region replicas around the leader's pure core.

Only this module of the package may wait, connect and read a clock, and only its command imports it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from itertools import count

import structlog

from apportion.allocator.events import Command, Connected, Event, Input, Lost, Polled, Received, Send
from apportion.allocator.leader import Leader
from apportion.core.allocator_messages import FromAllocator
from apportion.linking import LINK_ERRORS, PAUSE_S, linked, reason_of
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.proto.wire import allocator_reply_from_wire, allocator_to_wire

log = structlog.get_logger("apportion.allocator")

IDLE_POLL_S = 0.1
"""Polling pace while there is no region to wait for."""

Outbox = asyncio.Queue[FromAllocator | None]


class Allocator:
    """One running allocator: leader or standby, as the register has it."""

    def __init__(self, leader: Leader, addresses: Sequence[str]) -> None:
        self.leader = leader
        self.divisions = 0
        self.division_ns = 0
        self._addresses = addresses
        self._links = count(1)
        self._outboxes: dict[int, Outbox] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether a region has been heard: then this allocator leads, or would."""
        return self.leader.register is not None and bool(self._outboxes)

    async def start(self) -> None:
        """Begin to connect to every replica; returns at once."""
        self._tasks = [asyncio.create_task(self._keep_connected(address)) for address in self._addresses]

    async def stop(self) -> None:
        """Let go of every stream. Nothing needs saying: claims are the leader's only sign of life."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _feed(self, event: Input) -> None:
        now_ns = time.monotonic_ns()
        divided = self.leader.divided
        try:
            commands = self.leader.step(event, now_ns)
            if self.leader.divided != divided:
                self.divisions += 1
                self.division_ns += time.monotonic_ns() - now_ns
            for command in commands:
                self._perform(command)
        finally:  # time must go on, whatever went wrong with one event
            self._poll_later(now_ns)

    def _perform(self, command: Command) -> None:
        match command:
            case Send(link, message):
                if link in self._outboxes:
                    self._outboxes[link].put_nowait(message)
            case Event(name, fields, level):
                getattr(log, level)(name, **fields)

    def _poll_later(self, now_ns: int) -> None:
        wake_ns = self.leader.wake_ns(now_ns)
        wait = IDLE_POLL_S if wake_ns is None else max(wake_ns - now_ns, 0) / 1e9
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait, self._feed, Polled())

    async def _keep_connected(self, address: str) -> None:
        while True:
            try:
                await self._connect(address)
            except LINK_ERRORS as error:
                log.warning("region_unreachable", region=address, reason=reason_of(error))
            except Exception:  # our own fault must not cost the link for good
                log.exception("link_failed", region=address)
            await asyncio.sleep(random.uniform(*PAUSE_S))

    async def _connect(self, address: str) -> None:
        async with linked(address) as channel:
            link, outbox = next(self._links), Outbox()
            self._outboxes[link] = outbox
            stream = region_pb2_grpc.RegionStub(channel).Govern(_requests(outbox))
            self._feed(Connected(link))
            try:
                async for reply in stream:
                    self._feed(Received(link, allocator_reply_from_wire(reply)))
            finally:
                del self._outboxes[link]
                outbox.put_nowait(None)  # gRPC goes on waiting for messages to send after the peer has ended the stream
                self._feed(Lost(link))


async def _requests(outbox: Outbox) -> AsyncIterator[region_pb2.FromAllocator]:
    while (message := await outbox.get()) is not None:
        yield allocator_to_wire(message)
