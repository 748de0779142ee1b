"""One crossing seen from the edge: waiting tickets become groups of like requests, and the answer is dealt back to
them.

One Acquire is in flight per edge; what arrives meanwhile goes with the next, without a timer (design 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apportion.core.messages import Acquire, AcquireAnswer, Group, GroupAnswer, Member, Outcome
from apportion.core.value import value
from apportion.edge.holding import Holding
from apportion.edge.holdings import declare
from apportion.edge.ticket import Ticket

GROUPS_MAX = 1_024
"""Groups in one crossing: a region answers that many well within a deadline."""

UNANSWERED = (Outcome.UNKNOWN_QUOTA, Outcome.UNAVAILABLE, Outcome.NO_PLAN)
"""What is no decision, the gravest first."""

RETRY_NS = 20_000_000
"""A request told NO_PLAN asks again this often until its deadline."""


@value
class InFlight:
    """A crossing under way: its tickets by group, in the order asked."""

    number: int
    groups: tuple[list[Ticket], ...]
    sent_ns: int


class Crossings:
    """`waiting`: tickets that wait to cross; and the one crossing under way. Numbers are `step` apart after `first`."""

    def __init__(self, first: int = 0, step: int = 1) -> None:
        self.waiting: list[Ticket] = []
        self.in_flight: InFlight | None = None
        self._numbers = first
        self._step = step

    def tickets(self) -> Iterator[Ticket]:
        """Every ticket not settled yet."""
        flying = (ticket for group in self.in_flight.groups for ticket in group) if self.in_flight else ()
        return (ticket for tickets in (self.waiting, flying) for ticket in tickets if not ticket.settled)

    @property
    def may_depart(self) -> bool:
        """Whether something waits and nothing is under way."""
        return self.in_flight is None and bool(self.waiting)

    def depart(self, stream: int, left_ns: int, now_ns: int) -> Acquire | None:
        """The next crossing, where one `may_depart`; None where none of what waits may leave already. `stream` numbers
        the present stream.
        """
        assert self.in_flight is None, "one crossing is under way at a time"
        groups: dict[tuple[object, ...], list[Ticket]] = {}
        later: list[Ticket] = []
        for ticket in self.waiting:
            if ticket.settled:
                continue
            alike = groups.get(ticket.shape)
            if ticket.not_before_ns > now_ns or (alike is None and len(groups) >= GROUPS_MAX):
                later.append(ticket)
            elif alike is None:
                groups[ticket.shape] = [ticket]
            else:
                alike.append(ticket)
        self.waiting = later
        if not groups:
            return None
        self._numbers += self._step
        self.in_flight = InFlight(self._numbers, tuple(groups.values()), now_ns)
        waits: dict[Holding, int] = {}
        asked = []
        for tickets in groups.values():
            first, count = tickets[0], len(tickets)
            members = []
            for part in first.crossing:
                holding, cost = part.held, part.application.cost
                waits[holding] = waits.get(holding, 0) + cost * count
                members.append(Member(holding.id, cost))
            asked.append(Group(1 if first.peek else count, tuple(members), first.peek))
        return Acquire(self._numbers, declare(waits, stream), tuple(asked), _ahead(waits, left_ns, now_ns))

    def land(self, answer: AcquireAnswer) -> InFlight | None:
        """The crossing under way, which has `answer`; None for an answer to any other."""
        flight = self.in_flight
        if flight is None or flight.number != answer.number or len(flight.groups) != len(answer.groups):
            return None
        self.in_flight = None
        return flight

    def lose(self) -> list[Ticket]:
        """The stream is gone: returns the open tickets of the crossing under way, whose outcome nobody will ever
        know.
        """
        flight, self.in_flight = self.in_flight, None
        return [ticket for group in flight.groups for ticket in group if not ticket.settled] if flight else []


def deal(tickets: Sequence[Ticket], group: GroupAnswer) -> Iterator[tuple[Ticket, int | None]]:
    """Deal out a group's answer: each open ticket with, if it was admitted, how many of its group were admitted after
    it. Admitted requests go to open tickets first: one that was answered meanwhile has no use for them. A peek charges
    nothing, so all of a group get its one answer.
    """
    left = group.admitted
    for ticket in tickets:
        if not ticket.settled:
            yield ticket, left - 1 if left else None
            if left and not ticket.peek:
                left -= 1


def unanswered(group: GroupAnswer) -> Outcome | None:
    """Why the region gave no decision on the group's further requests; None when it decided."""
    outcomes = [member.outcome for member in group.members]
    return next((outcome for outcome in UNANSWERED if outcome in outcomes), None)


def _ahead(waits: Mapping[Holding, int], left_ns: int, now_ns: int) -> tuple[tuple[int, int], ...]:
    # What waits was offered in the last 50 ms too, and is asked for already.
    wanted = [(each.id, each.ahead(left_ns, now_ns) - cost) for each, cost in waits.items() if each.rule.divided]
    return tuple([each for each in wanted if each[1] > 0])
