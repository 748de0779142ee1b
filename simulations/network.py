"""Streams of the fault world: in order, delayed, cut at any instant, and some messages delivered twice.

A stream is a gRPC stream: nothing on it is lost but by losing it. Copies stand for what a peer may say again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from apportion.core.allocator_messages import Plan
from apportion.core.messages import AcquireAnswer, Report, ReportAck, Return, Slices, Tick
from apportion.proto.v1 import region_pb2
from apportion.proto.wire import (
    allocator_from_wire,
    allocator_reply_from_wire,
    allocator_reply_to_wire,
    allocator_to_wire,
    edge_from_wire,
    edge_to_wire,
    reply_from_wire,
    reply_to_wire,
)

if TYPE_CHECKING:
    from apportion.simulations.world import World

MS = 1_000_000

REPEATABLE = (AcquireAnswer, Plan, Report, ReportAck, Return, Slices, Tick)
"""Messages of which a second copy may arrive: what a peer resends, or says again after attaching anew.
No edge sends a return again: a copy of one must change nothing all the same."""

Deliver = Callable[[Any], None]


class Direction:
    """One half of a stream: messages in order, each after the one before it."""

    def __init__(self, stream: Stream, deliver: Deliver, through: Deliver) -> None:
        self._stream = stream
        self._deliver = deliver
        self._through = through
        self._queue: deque[Any] = deque()
        self.free_ns = 0

    def send(self, message: Any) -> None:
        """Let a message travel."""
        stream, world = self._stream, self._stream.world
        if not stream.open:
            return
        self._queue.append(self._through(message) if world.options.wire else message)
        self.free_ns = max(self.free_ns + 1, world.now_ns + stream.delay_ns())
        world.at(self.free_ns, self._arrive)
        if world.options.repeat and isinstance(message, REPEATABLE) and world.chance(world.options.repeat):
            copy = _without_names(self._queue[-1])
            later = self.free_ns + world.random.randrange(1, 1500 * MS)
            world.at(later, partial(self._arrive_again, copy))

    def _arrive(self) -> None:
        stream = self._stream
        if not stream.open:
            return
        if stream.blocked_ns > stream.world.now_ns:
            stream.world.at(stream.blocked_ns + 1, self._arrive)
            return
        self._deliver(self._queue.popleft())

    def _arrive_again(self, copy: Any) -> None:
        if self._stream.open and self._stream.blocked_ns <= self._stream.world.now_ns:
            self._deliver(copy)


class Stream:
    """One stream between a client and the region. `blocked_ns`: nothing arrives before that instant."""

    def __init__(self, world: World, kind: str, client: Any, server: Any, session: int) -> None:
        self.world = world
        self.open = True
        self.blocked_ns = client.blocked_ns
        self.session = session
        self.client = client
        self._server = server
        delay_ns = max(world.options.delay_ns, MS // 4)
        self._base_ns = world.random.randrange(max(MS // 5, int(delay_ns * (1 - world.options.spread))), delay_ns)
        up, down = (_through_edge, _through_reply) if kind == "edge" else (_through_allocator, _through_answer)
        self.up = Direction(self, lambda message: server.spoke(self, message), up)
        self.down = Direction(self, lambda message: client.heard(self, message), down)

    def delay_ns(self) -> int:
        """How long the next message travels."""
        random = self.world.random
        spike = 20 if random.random() < self.world.options.spikes else 1
        return self._base_ns + int(random.expovariate(1) * self.world.options.jitter * self._base_ns * spike)

    def cut(self, notice_ns: int = MS) -> None:
        """Lose the stream with all that is under way; each side notices by itself, `notice_ns` from now at most."""
        if not self.open:
            return
        self.open = False
        for tell in (self.client.lost, self._server.closed):
            self.world.at(self.world.now_ns + self.world.random.randrange(1, notice_ns + 1), partial(tell, self))

    def finish(self) -> None:
        """End the stream from the region's side after what was sent on it."""
        self.world.at(self.down.free_ns + MS, self.cut)


def _without_names(message: Any) -> Any:
    """What a peer says again declares nothing again: by the time it comes, an id may have another meaning."""
    return replace(message, names=()) if isinstance(message, Plan | Report | Slices) else message


def _through_edge(message: Any) -> Any:
    return edge_from_wire(region_pb2.FromEdge.FromString(edge_to_wire(message).SerializeToString()))


def _through_reply(message: Any) -> Any:
    return reply_from_wire(region_pb2.ToEdge.FromString(reply_to_wire(message).SerializeToString()))


def _through_allocator(message: Any) -> Any:
    return allocator_from_wire(region_pb2.FromAllocator.FromString(allocator_to_wire(message).SerializeToString()))


def _through_answer(message: Any) -> Any:
    return allocator_reply_from_wire(
        region_pb2.ToAllocator.FromString(allocator_reply_to_wire(message).SerializeToString())
    )
