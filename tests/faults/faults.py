"""Faults of a seed: kills at chosen points, pauses, partitions, cut streams, restarts. None after healing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from apportion.core.allocator_messages import Claim, Lead, Plan
from apportion.core.messages import Acquire, AcquireAnswer, Report, Return, Slices
from apportion.region import events as regional
from apportion.simulations.node import Node, Trap
from apportion.simulations.nodes import AllocatorNode, EdgeNode, RegionNode
from tests.faults.world import SECOND, World

SAID_BY_ALLOCATOR = (Lead, Claim, Claim, Plan, Plan)
SAID_BY_EDGE = (Acquire, Report, Return)
DONE_BY_REGION = (regional.SwapRegister, regional.Consume, regional.RollUp, Slices, AcquireAnswer)


class Faults:
    """Draws `number` faults between two instants of the world's clock."""

    def __init__(self, world: World, from_s: float, until_s: float, number: int) -> None:
        self.world = world
        self.until_ns = int(until_s * SECOND)
        for _ in range(number):
            when = world.random.uniform(from_s, until_s)
            world.at(int(when * SECOND), partial(self._one, world.random.random()))

    def _one(self, draw: float) -> None:
        world, random = self.world, self.world.random
        if draw < 0.25:
            self._strike(world.leading or random.choice(world.allocators))
        elif draw < 0.4:
            self._trap(world.leading or random.choice(world.allocators), SAID_BY_ALLOCATOR)
        elif draw < 0.5:
            self._strike(random.choice(world.edges))
        elif draw < 0.58:
            self._trap(random.choice(world.edges), SAID_BY_EDGE)
        elif draw < 0.68:
            self._strike(world.region)
        elif draw < 0.76:
            self._trap(world.region, DONE_BY_REGION)
        elif draw < 0.88:
            node: Any = random.choice([*world.edges, *world.allocators])
            world.partition(node, min(random.uniform(0.05, 2.5), self._left()))
        else:
            node = random.choice([*world.edges, *world.allocators])
            if node.stream is not None:
                node.stream.cut(1_500_000_000)

    def _left(self) -> float:
        return max(0.001, (self.until_ns - self.world.now_ns) / SECOND)

    def _strike(self, node: Node) -> None:
        random = self.world.random
        assert isinstance(node, EdgeNode | AllocatorNode | RegionNode)
        if isinstance(node, AllocatorNode) and random.random() < 0.5:
            node.pause(int(min(random.uniform(0.1, 3.0), self._left()) * SECOND))
        else:
            self.world.restart(node, min(0.005 * 300 ** random.random(), self._left()))

    def _trap(self, node: Node, kinds: tuple[type, ...]) -> None:
        random = self.world.random
        kind, after = random.choice(kinds), random.random() < 0.5
        strike = partial(self._sprung, node)
        if kind is Plan and not after:  # claimed, divided, and said too late: the epoch has begun meanwhile
            strike = partial(node.pause, int(random.uniform(0.3, 1.5) * SECOND))
        node.trap = Trap(fits(kind), after, strike)

    def _sprung(self, node: Node) -> None:
        if self.world.now_ns < self.until_ns:
            self._strike(node)


def fits(kind: type) -> Callable[[Any], bool]:
    """Whether a command is of that kind, or sends a message of that kind."""
    return lambda command: isinstance(command, kind) or isinstance(getattr(command, "message", None), kind)
