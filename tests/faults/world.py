"""The fault world: one seed, one virtual clock, real cores. The same seed gives the same run, to the last message."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random

from apportion.allocator.leader import Leader
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.region.authority import Authority
from tests.faults.network import MS
from tests.faults.nodes import AllocatorNode, EdgeNode, RegionNode
from tests.faults.referee import Label, Referee

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Options:
    """How a world is. `repeat`, `lost_answers`, `spikes`: chances for each message; `wire`: through the codec."""

    edges: int = 3
    allocators: int = 2
    wire: bool = False
    repeat: float = 0.0
    lost_answers: float = 0.0
    spikes: float = 0.0
    delay_ns: int = 20 * MS
    make_leader: Callable[..., Leader] = lambda name, incarnation: Leader(name, incarnation, parse_rules)
    make_agent: Callable[..., Agent] = Agent
    make_authority: Callable[..., Authority] = Authority
    same_incarnation: bool = False


class World:
    """Region, allocators, edges, and the instant it is."""

    def __init__(self, seed: int, options: Options = Options()) -> None:
        self.random = Random(seed)
        self.options = options
        self.now_ns = 0
        self.referee = Referee()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._incarnations: dict[str, int] = {}
        self.region = RegionNode(self, "region")
        self.edges = [EdgeNode(self, f"edge{at}") for at in range(options.edges)]
        self.allocators = [AllocatorNode(self, f"allocator{at}") for at in range(options.allocators)]

    def start(self) -> None:
        """Start every process, allocators last: to them the edges ran before, so that slices are given at once."""
        for node in (self.region, *self.edges):
            node.start()
        for allocator in self.allocators:
            self.after(0.5, allocator.start)

    def at(self, when_ns: int, work: Callable[[], None]) -> None:
        """Let `work` happen at an instant."""
        heapq.heappush(self._queue, (max(when_ns, self.now_ns), next(self._order), work))

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        """Let `work` happen that much later."""
        self.at(self.now_ns + int(seconds * SECOND), work)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until_ns = self.now_ns + int(seconds * SECOND)
        while self._queue and self._queue[0][0] <= until_ns:
            self.now_ns, _, work = heapq.heappop(self._queue)
            work()
        self.now_ns = until_ns

    def chance(self, probability: float) -> bool:
        """Whether something of that probability happens now."""
        return probability > 0 and self.random.random() < probability

    def incarnation(self, name: str) -> int:
        """A random number for a new life."""
        if self.options.same_incarnation and name in self._incarnations:
            return self._incarnations[name]
        self._incarnations[name] = self.random.getrandbits(62) + 1
        return self._incarnations[name]

    def restart(self, node: EdgeNode | AllocatorNode | RegionNode, seconds: float) -> None:
        """Kill a process; it starts again after `seconds`."""
        if node.up:
            node.crash()
            self.after(seconds, partial(self._start, node, node.life))

    def _start(self, node: EdgeNode | AllocatorNode | RegionNode, life: int) -> None:
        if node.life == life and not node.up:
            node.start()

    def partition(self, node: EdgeNode | AllocatorNode, seconds: float) -> None:
        """Cut a client off: nothing arrives either way until it heals, on whatever stream."""
        node.blocked_ns = self.now_ns + int(seconds * SECOND)
        if node.stream is not None:
            node.stream.blocked_ns = node.blocked_ns

    def rollup(self) -> dict[Label, int]:
        """What the region's store has counted, by quota and label."""
        return {(row.store_key, row.epoch): row.units for row in self.region.disk.rollup.rows(0)}

    @property
    def leading(self) -> AllocatorNode | None:
        """The allocator that believes to lead, with the highest generation."""
        led = [each for each in self.allocators if each.up and each.leader.generation is not None]
        return max(led, key=lambda each: each.leader.generation or 0, default=None)
