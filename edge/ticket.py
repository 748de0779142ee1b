"""One request that cannot be answered from what the edge holds: it waits here for the region, or for its deadline."""

from __future__ import annotations

from apportion.edge.holding import Holding
from apportion.edge.part import Part


class Ticket:
    """A waiting request. `epoch` is the one in which it arrived; `not_before_ns` when it may cross again; `settled`
    once answered.
    """

    __slots__ = ("crossing", "deadline_ns", "epoch", "not_before_ns", "number", "parts", "peek", "settled")

    def __init__(self, number: int, parts: list[Part], peek: bool, epoch: int, deadline_ns: int) -> None:
        self.number = number
        self.parts = parts
        self.crossing = [part for part in parts if part.crosses]
        self.peek = peek
        self.epoch = epoch
        self.deadline_ns = deadline_ns
        self.not_before_ns = 0
        self.settled = False

    def shape(self) -> tuple[object, ...]:
        """Requests of one shape are alike to the region, which then decides them by a count."""
        return (self.peek, *((part.held.id, part.application.cost) for part in self.crossing))

    def members(self) -> list[tuple[Holding, int]]:
        """What the region must decide: holdings and costs."""
        return [(part.held, part.application.cost) for part in self.crossing]
