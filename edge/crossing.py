"""One crossing seen from the edge: waiting tickets become groups of like requests, and the answer is dealt back to
them.

One Acquire is in flight per edge; what arrives meanwhile goes with the next, without a timer (design 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apportion.core.messages import Acquire, AcquireAnswer, Group, GroupAnswer, Member, MemberAnswer, Outcome
from apportion.core.value import value
from apportion.edge.holding import Holding
from apportion.edge.holdings import declare
from apportion.edge.part import Part
from apportion.edge.ticket import Ticket

GROUPS_MAX = 1_024
"""Groups in one crossing: a region answers that many well within a deadline."""

RETRY_NS = 20_000_000
"""A request told NO_PLAN asks again this often until its deadline."""


@value
class InFlight:
    """The crossing under way: its tickets by group, in the order asked."""

    number: int
    groups: tuple[tuple[Ticket, ...], ...]
    sent_ns: int


class Crossings:
    """Tickets that wait to cross, and the one crossing under way. Crossings are numbered `step` apart after `first`."""

    def __init__(self, first: int = 0, step: int = 1) -> None:
        self.waiting: list[Ticket] = []
        self.in_flight: InFlight | None = None
        self._numbers = first
        self._step = step

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait for the next crossing."""
        self.waiting.append(ticket)

    def tickets(self) -> Iterator[Ticket]:
        """Every ticket not settled yet."""
        flying = (ticket for group in self.in_flight.groups for ticket in group) if self.in_flight else ()
        return (ticket for tickets in (self.waiting, flying) for ticket in tickets if not ticket.settled)

    @property
    def may_depart(self) -> bool:
        """Whether something waits and nothing is under way."""
        return self.in_flight is None and bool(self.waiting)

    def depart(self, stream: int, left_ns: int, now_ns: int) -> Acquire | None:
        """The next crossing, or None while one is under way or nothing waits. `stream` numbers the present stream."""
        if not self.may_depart:
            return None
        groups: dict[tuple[object, ...], list[Ticket]] = {}
        later: list[Ticket] = []
        for ticket in self.waiting:
            if ticket.settled:
                continue
            shape = ticket.shape()
            full = len(groups) >= GROUPS_MAX and shape not in groups
            if full or ticket.not_before_ns > now_ns:
                later.append(ticket)
            else:
                groups.setdefault(shape, []).append(ticket)
        self.waiting = later
        if not groups:
            return None
        self._numbers += self._step
        self.in_flight = InFlight(self._numbers, tuple(map(tuple, groups.values())), now_ns)
        waits: dict[Holding, int] = {}
        for group in groups.values():
            for holding, cost in group[0].members():
                waits[holding] = waits.get(holding, 0) + cost * len(group)
        return Acquire(
            self._numbers,
            declare(waits, stream),
            tuple(_group(tickets) for tickets in groups.values()),
            _ahead(waits, left_ns, now_ns),
        )

    def arrive(self, answer: AcquireAnswer) -> Iterator[tuple[Ticket, GroupAnswer, int | None]]:
        """Deal out the answer to the crossing under way: each open ticket with its group's answer and, if it was
        admitted, how many of its group were admitted after it. Admitted requests go to open tickets first: one that
        was answered meanwhile has no use for them. A peek charges nothing, so all of a group get its one answer.
        Nothing for an answer to any other crossing.
        """
        flight = self.in_flight
        if flight is None or flight.number != answer.number or len(flight.groups) != len(answer.groups):
            return
        self.in_flight = None
        for tickets, group in zip(flight.groups, answer.groups, strict=True):
            open_tickets = [ticket for ticket in tickets if not ticket.settled]
            for place, ticket in enumerate(open_tickets):
                before = 0 if ticket.peek else place
                yield ticket, group, group.admitted - 1 - before if before < group.admitted else None

    def told(self, answer: AcquireAnswer) -> list[tuple[Part, MemberAnswer]]:
        """What the answer to the crossing under way says of each part that was asked, whoever still waits for it."""
        flight = self.in_flight
        if flight is None or flight.number != answer.number or len(flight.groups) != len(answer.groups):
            return []
        return [
            (part, member)
            for tickets, group in zip(flight.groups, answer.groups, strict=True)
            for part, member in zip(tickets[0].crossing, group.members, strict=True)
        ]

    def lose(self) -> list[Ticket]:
        """The stream is gone: returns the open tickets of the crossing under way, whose outcome nobody will ever
        know.
        """
        flight, self.in_flight = self.in_flight, None
        return [ticket for group in flight.groups for ticket in group if not ticket.settled] if flight else []


def unanswered(group: GroupAnswer) -> Outcome | None:
    """Why the region gave no decision on the group's further requests; None when it decided."""
    outcomes = [member.outcome for member in group.members]
    for outcome in (Outcome.UNKNOWN_QUOTA, Outcome.UNAVAILABLE, Outcome.NO_PLAN):
        if outcome in outcomes:
            return outcome
    return None


def _group(tickets: list[Ticket]) -> Group:
    members = tuple(Member(holding.id, cost) for holding, cost in tickets[0].members())
    peek = tickets[0].peek
    return Group(1 if peek else len(tickets), members, peek)


def _ahead(waits: Mapping[Holding, int], left_ns: int, now_ns: int) -> tuple[tuple[int, int], ...]:
    # What waits was offered in the last 50 ms too, and is asked for already.
    wanted = ((each.id, each.ahead(left_ns, now_ns) - cost) for each, cost in waits.items() if each.rule.divided)
    return tuple((identity, units) for identity, units in wanted if units > 0)
