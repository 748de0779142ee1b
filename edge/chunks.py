"""Chunks of a period's allowance in hand at an edge (design 4.2): spent at once, given back once. Pure.

The region charged a chunk when it lent it, so what is spent of it needs nobody's leave, under whatever label; what is
not spent comes back with a report, under the name of the period it was lent of. That name is the region's word: an edge
never tells periods apart by a clock of its own, it only lets go of a chunk in time.
"""

from __future__ import annotations

from dataclasses import dataclass

from apportion.core.limit import EPOCH_NS, Finite, ceil_div
from apportion.core.messages import Lent, Quota
from apportion.core.rule import Rule
from apportion.edge.allowance import CLOCKS_APART
from apportion.edge.holding import Holding
from apportion.edge.ids import Ids
from apportion.edge.taken import Taken

SPAN_NS = 5 * EPOCH_NS
"""A chunk is asked for what is offered in so much time."""

KNOWN_NS = EPOCH_NS
"""Demand of a quota that is new here is taken to go on as in its first second, and not as in its first request."""


@dataclass(slots=True, eq=False)
class Chunk:
    """`units` left of what was lent of `period`, to be spent before `until_ns` of the edge's clock."""

    units: int
    until_ns: int
    period: str


class Unspent:
    """The holdings of an edge that have a chunk, or units of one to give back."""

    def __init__(self) -> None:
        self._holdings: dict[Leased, None] = {}

    def add(self, holding: Leased) -> None:
        """It has something to give back, now or later."""
        self._holdings[holding] = None

    def take(self, now_ns: int, *, leaving: bool = False) -> list[tuple[Leased, str, int]]:
        """What goes back now, by holding and period: of chunks whose time has passed, or, where the edge leaves, of
        all. It is nobody's any more here, so that it is given back once.
        """
        rows = []
        for holding in list(self._holdings):
            rows += [(holding, period, units) for period, units in holding.give_up(now_ns, leaving=leaving)]
            if holding.chunk is None:
                del self._holdings[holding]
        return rows


class Leased(Holding):
    """A period quota of which this edge is lent chunks; one is in hand at a time, and what is left of the former goes
    back when the next one comes.
    """

    __slots__ = ("_asked_of", "_before", "_now", "_since_ns", "_unspent", "chunk", "leftover")

    def __init__(self, ids: Ids, rule: Rule, limit: Finite, quota: Quota, unspent: Unspent) -> None:
        super().__init__(ids, rule, limit, quota)
        self._unspent = unspent
        self._asked_of = limit
        self._since_ns = -2 * SPAN_NS  # never
        self._now = 0
        self._before: int | None = None
        self.chunk: Chunk | None = None
        self.leftover: dict[str, int] = {}

    def change(self, rule: Rule, limit: Finite) -> None:
        """As of every holding; but a chunk of another limit may be of another period, whose count it is not in. One
        that is spent further goes on with the reset that callers were told.
        """
        before = self.allowance if limit == self.limit else None
        if limit != self.limit:
            self._let_go()
        super().change(rule, limit)
        if before is not None and self.allowance is not None:
            self.allowance.go_on(before)

    # --- units in hand

    def can_take(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether the chunk has `cost` units, at least one."""
        return self.in_hand(epoch, now_ns) >= (cost or 1)

    def in_hand(self, epoch: int, now_ns: int) -> int:
        """Units left of the chunk."""
        chunk = self.chunk
        return chunk.units if chunk is not None and now_ns < chunk.until_ns else 0

    def take(self, cost: int, epoch: int, now_ns: int) -> Taken | None:
        """Take `cost` units of the chunk, to be spent under `epoch`; None when it has fewer."""
        chunk = self.chunk
        if chunk is None or chunk.units < cost or now_ns >= chunk.until_ns:
            return None
        chunk.units -= cost
        return Taken(epoch, cost, borrowed=True, chunk=chunk)

    def draw(self, cost: int, epoch: int, now_ns: int) -> int:
        """As of every holding; what it returns is what callers are told."""
        chunk = self.chunk
        if chunk is None or chunk.units < cost or now_ns >= chunk.until_ns:
            return -cost
        chunk.units -= cost
        self.offer(cost, now_ns)
        return self.told(epoch, now_ns)

    def put_back(self, taken: Taken) -> None:
        """Undo a `take`. Units of a chunk that was let go of meanwhile follow it."""
        assert isinstance(taken.chunk, Chunk)
        if taken.chunk is self.chunk:
            taken.chunk.units += taken.units
        else:
            self._give_back(taken.chunk.period, taken.units)

    def told(self, epoch: int, now_ns: int) -> int:
        """Units left if nobody else spends any: what the region had, and the chunk."""
        remaining = self.region_remaining(now_ns)
        return self.in_hand(epoch, now_ns) if remaining is None else remaining

    def region_remaining(self, now_ns: int) -> int | None:
        """As of every holding; the chunk is part of it."""
        remaining = super().region_remaining(now_ns)
        return None if remaining is None else remaining + self.in_hand(0, now_ns)

    # --- chunks come and go

    def borrow(self, lent: Lent, asked_ns: int) -> None:
        """A chunk came that was asked for at `asked_ns`: its time counts from there, and a little less of it passes
        here than at the region.
        """
        self._let_go()
        self.chunk = Chunk(lent.units, asked_ns + lent.lasts_ns - lent.lasts_ns // CLOCKS_APART, lent.period)
        self._unspent.add(self)
        if self.allowance is not None:
            self.allowance.lend(lent.units)
        if self._asked_of != self.limit:
            self._let_go()

    def give_up(self, now_ns: int, *, leaving: bool) -> list[tuple[str, int]]:
        """Units to give back now, by period; see `Unspent.take`."""
        if self.chunk is not None and (leaving or now_ns >= self.chunk.until_ns):
            self._let_go()
        rows = list(self.leftover.items())
        self.leftover.clear()
        return rows

    def idle(self, epoch: int, now_ns: int, crowded: bool = False) -> bool:
        """As of every holding; a chunk in hand is of use."""
        return not self.in_hand(epoch, now_ns) and super().idle(epoch, now_ns, crowded)

    def _let_go(self) -> None:
        chunk, self.chunk = self.chunk, None
        if chunk is not None:
            self._give_back(chunk.period, chunk.units)

    def _give_back(self, period: str, units: int) -> None:
        if units:
            self.leftover[period] = self.leftover.get(period, 0) + units
            self._unspent.add(self)

    # --- demand

    def offer(self, cost: int, now_ns: int) -> None:
        """Count an offered cost in the sliding SPAN_NS."""
        if now_ns - self._since_ns >= SPAN_NS:
            self._slide(now_ns)
        self._now += cost

    def wants(self, waiting: int, left_ns: int, now_ns: int) -> int:
        """Units to ask for ahead beside `waiting` ones, where something waits that is to be charged: SPAN_NS of demand,
        unless half of that is in hand.
        """
        if not waiting:
            return 0
        demand = min(max(self.demand(now_ns), waiting), self.limit.units)
        if 2 * self.in_hand(0, now_ns) >= demand:
            return 0
        self._asked_of = self.limit
        return demand

    def demand(self, now_ns: int) -> int:
        """Units offered in SPAN_NS, by what was offered in the last one; where less time is known of, at its pace."""
        self._slide(now_ns)
        known_ns = now_ns - self._since_ns
        if self._before is None:
            return ceil_div(self._now * SPAN_NS, max(known_ns, KNOWN_NS))
        return self._now + self._before * (SPAN_NS - known_ns) // SPAN_NS

    def _slide(self, now_ns: int) -> None:
        passed = (now_ns - self._since_ns) // SPAN_NS
        if passed == 1:
            self._before, self._now = self._now, 0
            self._since_ns += SPAN_NS
        elif passed:  # nothing was offered in the last one, if there was one
            self._before = None if self._since_ns < 0 else 0
            self._now, self._since_ns = 0, now_ns
