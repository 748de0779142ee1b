"""One request that cannot be answered from what the edge holds: it waits here for the region, or for its deadline."""

from __future__ import annotations

from apportion.core.request import Application
from apportion.edge.part import Part


class Ticket:
    """A waiting request. `epoch` is the one in which it arrived; `not_before_ns` when it may cross again; `settled`
    once answered. Requests of one `shape` are alike to the region, which then decides them by a
    count. `applications`: all of the request where there are shadow rules among them, which come after its
    parts. `shadow`: it is what one shadow rule asks, and nobody waits for it.
    """

    __slots__ = (
        "applications",
        "crossing",
        "deadline_ns",
        "epoch",
        "not_before_ns",
        "number",
        "parts",
        "peek",
        "settled",
        "shadow",
        "shape",
    )

    def __init__(
        self, number: int, parts: list[Part], peek: bool, epoch: int, deadline_ns: int, *, shadow: bool = False
    ) -> None:
        self.number = number
        self.parts = parts
        self.crossing = crossing = parts if len(parts) == 1 else [part for part in parts if part.crosses]
        self.peek = peek
        self.epoch = epoch
        self.deadline_ns = deadline_ns
        self.not_before_ns = 0
        self.settled = False
        self.shadow = shadow
        self.applications: tuple[Application, ...] = ()
        self.shape: tuple[object, ...]
        if len(crossing) == 1:
            self.shape = (peek, crossing[0].held.id, crossing[0].application.cost)
        else:
            self.shape = (peek, *[(part.held.id, part.application.cost) for part in crossing])
