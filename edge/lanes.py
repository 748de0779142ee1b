"""The two lanes on which requests cross: one for those that callers wait for, one for shadow rules (design 4). Pure.

One crossing of each is in flight at a time, so that no caller ever waits for what only a shadow rule wants to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain

from apportion.core.messages import Acquire, AcquireAnswer
from apportion.edge.crossing import Crossings, InFlight
from apportion.edge.ticket import Ticket


class Lanes:
    """All tickets that wait to cross, and the crossings under way. Their numbers say which lane they are of."""

    def __init__(self) -> None:
        self._lanes = self._enforced, self._shadow = Crossings(0, 2), Crossings(1, 2)
        self._deadlines: list[tuple[int, int, Ticket]] = []  # heaps; who is settled stays until it comes first
        self._again: list[tuple[int, int, Ticket]] = []

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait for the next crossing of its lane."""
        (self._shadow if ticket.shadow else self._enforced).waiting.append(ticket)
        heappush(self._deadlines, (ticket.deadline_ns, ticket.number, ticket))

    def add_again(self, ticket: Ticket, not_before_ns: int) -> None:
        """Let a ticket that has crossed in vain wait for another crossing, from that instant on."""
        ticket.not_before_ns = not_before_ns
        self._lanes[ticket.shadow].waiting.append(ticket)
        heappush(self._again, (not_before_ns, ticket.number, ticket))

    def deadline_ns(self) -> int | None:
        """The earliest deadline of the tickets not settled yet; None when there are none."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].settled:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def again_ns(self, now_ns: int) -> int | None:
        """When the first of those that wait for another crossing may leave; None when each of them may already."""
        again = self._again
        while again and (again[0][0] <= now_ns or again[0][2].settled):
            heappop(again)
        return again[0][0] if again else None

    def tickets(self) -> Iterator[Ticket]:
        """Every ticket not settled yet."""
        return chain.from_iterable(lane.tickets() for lane in self._lanes)

    @property
    def may_depart(self) -> bool:
        """Whether any lane has something to send now."""
        return self._enforced.may_depart or self._shadow.may_depart

    def depart(self, stream: int, left_ns: int, now_ns: int) -> list[Acquire]:
        """The crossings to send now, in this order."""
        departing = [lane.depart(stream, left_ns, now_ns) for lane in self._lanes if lane.may_depart]
        return [acquire for acquire in departing if acquire is not None]

    def land(self, answer: AcquireAnswer) -> InFlight | None:
        """As `Crossings.land`."""
        return self._lanes[answer.number % len(self._lanes)].land(answer)

    def lose(self) -> list[Ticket]:
        """As `Crossings.lose`."""
        return [ticket for lane in self._lanes for ticket in lane.lose()]
