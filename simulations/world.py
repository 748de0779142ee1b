"""The simulated world: one seed, one virtual clock, the shipped cores. The same seed gives the same run, to the last
message.

Only clocks, network, store and randomness are stand-ins; what decides is the code of `edge`, `region` and `allocator`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random

from apportion.allocator.leader import Leader
from apportion.core.limit import PeriodLimit
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.region.authority import Authority
from apportion.region.counters import PeriodCounters
from apportion.simulations.journal import Journal
from apportion.simulations.network import MS
from apportion.simulations.nodes import AllocatorNode, EdgeNode, RegionNode, parsed

SECOND = 1_000_000_000

Label = tuple[bytes, int]
"""A quota, as the store files it, and an epoch."""

Arrival = tuple[int, int, tuple[Application, ...]]
"""When, at which edge, which rules apply."""

NEVER: Arrival = (2**63, 0, ())
"""What comes when nothing comes any more."""

LAST = 2**63
"""The order of an instant's end."""


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
    spread: float = 1.0
    jitter: float = 0.25
    clock_drift: int = 200
    make_leader: Callable[..., Leader] = lambda name, incarnation: Leader(name, incarnation, parse_rules)
    make_authority: Callable[..., Authority] = Authority
    make_agent: Callable[..., Agent] = Agent
    make_periods: Callable[[bool], PeriodCounters] = PeriodCounters
    same_incarnation: bool = False


class World:
    """Region, allocators, edges, and the instant it is."""

    def __init__(self, seed: int, rules: Rules, journal: Journal, options: Options = Options()) -> None:
        self.random = Random(seed)
        self.rules = rules
        self.options = options
        self.has_periods = any(
            isinstance(each.limit, PeriodLimit) for rule in parsed(rules).rules for each in rule.on_plans
        )
        self.now_ns = 0
        self.journal = journal
        self._traffic: Iterator[Arrival] = iter(())
        self._next = NEVER
        self._queue: list[tuple[int, int, Callable[[], None] | None]] = []  # None: the end of a run
        self._order = count()
        self._incarnations: dict[str, int] = {}
        self.region = RegionNode(self, "region")
        self.edges = [EdgeNode(self, f"edge-{at}") for at in range(options.edges)]
        self.allocators = [AllocatorNode(self, f"allocator-{at}") for at in range(options.allocators)]

    def start(self, late: Collection[str] = ()) -> None:
        """Start every process but edges that come `late`; allocators last: to them the edges ran before, so that slices
        are given at once.
        """
        for node in (self.region, *self.edges):
            if node.name not in late:
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
        """Let time pass. Of one instant, requests come first, then what was wanted first."""
        until_ns = self.now_ns + int(seconds * SECOND)
        queue, edges, traffic = self._queue, self.edges, self._traffic
        heapq.heappush(queue, (until_ns, LAST, None))
        at_ns, edge, applications = self._next
        while True:
            if at_ns <= queue[0][0]:
                self.now_ns = at_ns
                edges[edge].ask(applications)
                at_ns, edge, applications = self._next = next(traffic, NEVER)
            else:
                self.now_ns, _, work = heapq.heappop(queue)
                if work is None:
                    break
                work()

    def edge(self, name: str) -> EdgeNode:
        """The edge of that name."""
        return self.edges[int(name.removeprefix("edge-"))]

    def offer(self, traffic: Iterator[Arrival]) -> None:
        """Let these requests arrive, in the order of time."""
        self._traffic = traffic
        self._next = next(traffic, NEVER)

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

    def open_requests(self) -> list[tuple[str, int, int]]:
        """Requests without a decision at living edges: where, when they came, and their shortest deadline."""
        return [(edge.name, *found) for edge in self.edges if edge.up for found in edge.waiting.values()]

    @property
    def leading(self) -> AllocatorNode | None:
        """The allocator that believes to lead, with the highest generation."""
        led = [each for each in self.allocators if each.up and each.leader.generation is not None]
        return max(led, key=lambda each: each.leader.generation or 0, default=None)
