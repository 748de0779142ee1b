"""What an edge holds and knows of one quota: its slice, units borrowed ahead, and what the region last said of it.

Pure. A holding admits only from units it holds; what it knows of the region serves only to refuse, and only what the
region would refuse too: a backlog drains with time and nothing else (design 4.1, "In overload").
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

from apportion.core.bucket import retry_after_ns
from apportion.core.budget import DEPTH_MIN, Budget, comes_in_ns
from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.messages import MemberAnswer, Outcome, Quota
from apportion.core.rule import Rule
from apportion.edge.thresholds import Passing, threshold_of

HOLD_NS = 20_000_000
"""A refusal by the region holds at least this long at the edge, or every request in overload would cross."""

NEWS_NS = EPOCH_NS // 4
"""What the region said of its room counts for so long: longer than the way there and back."""

PROBE_NS = 50_000_000
"""Above a threshold one request in so much time asks anew, where the region said nothing lately."""

BORDER_NS = 100_000_000
"""A caller told to wait until so shortly before a label's end may come after it: the way there and back."""

WINDOW_NS = 50_000_000
"""Demand of the last 50 ms is asked for ahead with what waits (design 4.1)."""


class Ids:
    """Small numbers for holdings, each used again once nothing has it any more."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._fresh = 0

    def take(self) -> int:
        """A number that no holding has."""
        if self._free:
            return self._free.pop()
        self._fresh += 1
        return self._fresh - 1

    def give_back(self, identity: int) -> None:
        """Its holding is no more."""
        self._free.append(identity)


class Taken(NamedTuple):
    """Units taken from what the edge holds, to be spent under label `epoch`, or put back."""

    epoch: int
    units: int
    borrowed: bool


class Holding:
    """One quota at one edge. `id` names it on outgoing streams, `stream` the last stream it was declared on; `used` is
    the last epoch in which it was asked for, `looked_at` the last in which it was used or found not to be idle.

    A holding that is forgotten lives on in the reports that name it, and its id with it: that must not name another one
    before they have been sent.
    """

    __slots__ = (
        "_ids",
        "_window_now",
        "_window_ns",
        "_window_past",
        "backlog",
        "backlog_ns",
        "backlog_told_ns",
        "beyond",
        "beyond_epoch",
        "borrowed",
        "borrowed_epoch",
        "budget",
        "hold_cost",
        "hold_told_ns",
        "hold_until_ns",
        "id",
        "limit",
        "looked_at",
        "probed_ns",
        "quota",
        "rule",
        "stream",
        "threshold",
        "used",
    )

    def __init__(self, ids: Ids, rule: Rule, limit: RateLimit, quota: Quota) -> None:
        self._ids = ids
        self.id = ids.take()
        self.stream = 0
        self.rule = rule
        self.limit = limit
        self.quota = quota
        self.threshold = threshold_of(rule, limit)
        self.probed_ns = 0
        self.used = self.looked_at = 0
        self.budget: Budget | None = None
        self.borrowed = 0
        self.borrowed_epoch = 0
        self.beyond = 0
        self.beyond_epoch = 0
        self.backlog: int | None = None
        self.backlog_ns = 0
        self.backlog_told_ns = 0
        self.hold_cost = 0
        self.hold_until_ns = 0
        self.hold_told_ns = 0
        self._window_ns = 0
        self._window_now = 0
        self._window_past = 0

    def __del__(self) -> None:
        self._ids.give_back(self.id)

    def change(self, rule: Rule, limit: RateLimit) -> None:
        """Other rules are in force. What is held stays held; what the region said of the former limit is void."""
        self.rule, self.limit = rule, limit
        self.threshold = threshold_of(rule, limit, self.threshold)
        self.backlog = None
        self.hold_cost = self.hold_until_ns = self.hold_told_ns = 0

    # --- units in hand

    def begin(self, epoch: int, part: int | None, began_ns: int) -> None:
        """The slice of `epoch` is `part` units (None: it has none); its smoothing counts from the epoch's start."""
        units = part or 0
        if self.threshold is not None:
            self.threshold.begin(epoch, part)
            return
        if self.budget is None:
            if units == 0:
                return
            self.budget = Budget(began_ns)
        if self.budget.epoch != epoch:
            quota_units = self.limit.units_in_epoch(epoch)
            self.budget.begin(epoch, units, self.limit.burst, quota_units, began_ns)

    def can_take(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units, at least one, are in hand in `epoch`. A slice that is as large as the cost lets its
        level reach it: the pool may never have as much.
        """
        if cost > DEPTH_MIN and self.budget is not None and self.budget.epoch == epoch:
            self.budget.deepen(cost)
        return self.in_hand(epoch, now_ns) >= (cost or 1)

    def in_hand(self, epoch: int, now_ns: int) -> int:
        """Whole units that could be taken at once in `epoch`: of the slice or borrowed ahead, whichever is more; of a
        rule with a threshold, what it leaves.
        """
        if self.threshold is not None:
            return self.threshold.room(epoch, now_ns)
        units = self.borrowed if self.borrowed_epoch == epoch else 0
        if self.budget is not None and self.budget.epoch == epoch:
            available = self.budget.available(now_ns)
            return available if available > units else units
        return units

    def take(self, cost: int, epoch: int, now_ns: int) -> Taken | None:
        """Take `cost` units of `epoch`; None when neither the slice nor what was borrowed has them."""
        if self.threshold is not None:
            if not self.threshold.admits(cost, epoch, now_ns):
                if not self._has_room(cost, now_ns):
                    return None
                self.probed_ns = now_ns
            self.threshold.take(cost, epoch, now_ns)
            return Taken(epoch, cost, borrowed=False)
        if self.budget is not None and self.budget.epoch == epoch and self.budget.available(now_ns) >= cost:
            self.budget.take(cost)
            return Taken(epoch, cost, borrowed=False)
        if self.borrowed_epoch == epoch and self.borrowed >= cost:
            self.borrowed -= cost
            return Taken(epoch, cost, borrowed=True)
        return None

    def draw(self, cost: int, epoch: int, now_ns: int) -> int:
        """`can_take` and `take` in one, for a request that nobody else can refuse: units in hand after it; below 0, and
        nothing taken, where there were fewer than `cost`, which is at least one.
        """
        if self.threshold is not None:
            left = self.threshold.room(epoch, now_ns) - cost
            if left >= 0:
                self.threshold.take(cost, epoch, now_ns)
            return left
        left, budget = -cost, self.budget
        if budget is not None and budget.epoch == epoch:
            if cost > DEPTH_MIN:
                budget.deepen(cost)
            left = budget.draw(cost, now_ns)
        if self.borrowed_epoch == epoch and self.borrowed:
            left = self._draw_borrowed(cost, left)
        if left >= 0:
            self.offer(cost, now_ns)
        return left

    def _draw_borrowed(self, cost: int, left: int) -> int:
        """`draw` where there are borrowed units beside the slice, which has `left` more than `cost`."""
        if left < 0 and self.borrowed >= cost:
            self.borrowed -= cost
            left += cost
        elif left < 0:
            return left
        return max(left, self.borrowed)

    def put_back(self, taken: Taken) -> None:
        """Undo a `take`; void when its label has passed."""
        if self.threshold is not None:
            self.threshold.put_back(taken.epoch, taken.units)
            return
        if taken.borrowed:
            if self.borrowed_epoch == taken.epoch:
                self.borrowed += taken.units
        elif self.budget is not None:
            self.budget.put_back(taken.epoch, taken.units)

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until what is held is whole again, where `left_ns` of the epoch are left."""
        return left_ns if self.threshold is None else self.threshold.reset_ns(left_ns, now_ns)

    def lend(self, epoch: int, units: int) -> None:
        """Units borrowed ahead arrived; what was left of a former label is void."""
        if epoch == self.borrowed_epoch:
            self.borrowed += units
        elif epoch > self.borrowed_epoch:
            self.borrowed_epoch, self.borrowed = epoch, units

    def surplus(self, elapsed_ns: int) -> int:
        """Units of the slice beyond 1.5 times what it will have been used by the end of its epoch, if use goes
        on as in the `elapsed_ns` since its start. Use, not demand: what no request here can be served from, because
        each costs more than the slice, is of use elsewhere.
        """
        assert self.budget is not None and elapsed_ns > 0
        used = self.budget.part - self.budget.units
        # A few requests say little of the rate: one more root of them than there were is as likely.
        projected = (used + isqrt(used)) * EPOCH_NS // elapsed_ns
        return max(0, self.budget.part - projected * 3 // 2)

    def left_over(self, elapsed_ns: int) -> int:
        """Unspent units of the slice beyond what the rest of its epoch will use, as likely, if use goes on as in the
        `elapsed_ns` since its start.
        """
        assert self.budget is not None and 0 < elapsed_ns < EPOCH_NS
        used = self.budget.part - self.budget.units
        projected = ceil_div((used + isqrt(used) + 1) * (EPOCH_NS - elapsed_ns), elapsed_ns)
        return max(0, self.budget.units - max(projected, self.budget.largest()))

    # --- degraded answers

    def room(self, epoch: int, share: int) -> int:
        """Units of `epoch` that may still be spent without anybody's leave, where the edge may spend `share` of it in
        all: what it spends of a slice of the epoch counts against the share, and the other way round. What it returned
        of the slice others may have spent.
        """
        part = spent = 0
        if self.budget is not None and self.budget.epoch == epoch:
            part = self.budget.part
            spent = max(part - self.budget.units, 0)
            share -= self.budget.given_up
        return max(max(part, share) - spent - (self.beyond if self.beyond_epoch == epoch else 0), 0)

    def spend_beyond(self, cost: int, epoch: int) -> int:
        """Spend what `room` named at the same instant, of the slice first; returns the units that no slice covered."""
        covered = 0
        if self.budget is not None and self.budget.epoch == epoch:
            covered = min(self.budget.units, cost)
            self.budget.take(covered)
        if self.beyond_epoch != epoch:
            self.beyond_epoch, self.beyond = epoch, 0
        self.beyond += cost - covered
        return cost - covered

    def relabel(self, shift: int) -> None:
        """Labels so far are called `shift` later: what was spent of them stays spent. No slice was held by then."""
        self.used += shift
        self.looked_at += shift
        self.beyond_epoch += shift
        if self.threshold is not None:
            self.threshold.relabel(shift)

    # --- what the region said

    def refusal_ns(self, cost: int, left_ns: int, now_ns: int) -> int | None:
        """Nanoseconds to wait where the region cannot admit `cost` yet, by what it said last; None: it might, so ask.
        `left_ns` of the epoch are left.

        It is refused here only until it can have become possible at the earliest. The wait ends when it is possible for
        sure: the region's state is as old as the answer at most, but may be as old as the question.
        """
        wait = 0
        if cost >= self.hold_cost and self.hold_until_ns > now_ns:
            wait = self.hold_told_ns - now_ns
            if self.rule.divided and cost > self.hold_cost:  # the region spoke of less than is asked now
                wait = max(wait, left_ns)
            wait = self.told_ns(wait, cost, left_ns)
        if self.backlog is not None and not self.rule.divided:  # else a label may be spent before its bucket is
            until_fits = retry_after_ns(self.limit, self.backlog, cost)
            if until_fits is not None and self.backlog_ns + until_fits > now_ns:
                wait = max(wait, self.backlog_told_ns + until_fits - now_ns)
        return wait if wait > 0 else None

    def told_ns(self, wait: int, cost: int, left_ns: int) -> int:
        """What a caller is told for whose `cost` the region said `wait`; `left_ns` of the epoch are left. Where it ends
        at the end of a divided quota's label it is told when the next one has the cost, for that is divided anew.
        """
        if not self.rule.divided or wait + BORDER_NS < left_ns:
            return wait
        return max(wait, left_ns + comes_in_ns(self.limit, cost))

    def passes(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether a request may cross: below the threshold of an `edge+region` rule, or above it with good reason."""
        return self.threshold is None or self.threshold.admits(cost, epoch, now_ns) or self._has_room(cost, now_ns)

    def _has_room(self, cost: int, now_ns: int) -> bool:
        """The threshold protects a region in overload. Where the region has just said that at least half of its bucket
        is free there is none, wherever demand has moved; where it said nothing lately, one request asks.
        """
        if not isinstance(self.threshold, Passing) or not self.threshold.possible(cost):
            return False
        if self.backlog is not None and now_ns - self.backlog_told_ns < NEWS_NS:
            remaining = self.region_remaining(now_ns)
            return remaining is not None and remaining >= max(cost, self.limit.burst // 2)
        return now_ns - self.probed_ns >= PROBE_NS

    def learn(self, member: MemberAnswer, cost: int, asked_ns: int, now_ns: int, probe_ns: int | None = None) -> None:
        """Take the region's answer. `asked_ns`: when it was asked; the state is not older than that, so what it rules
        out is counted from there and never ends later than at the region. `probe_ns`: when a pool that was spent may
        have been returned something, so that it is worth asking, whatever callers are told; None: not before that.
        """
        if member.backlog is not None:
            self.backlog, self.backlog_ns, self.backlog_told_ns = member.backlog, asked_ns, now_ns
        if member.outcome is not Outcome.OVER_LIMIT:
            return
        # A larger cost has to wait longer, which says nothing of the smaller one that is held already.
        if now_ns >= self.hold_until_ns or cost <= self.hold_cost:
            wait = member.wait_ns or 0
            self.hold_cost = cost
            until_ns = (asked_ns if member.store else now_ns) + wait
            if not member.store and probe_ns is not None:
                until_ns = min(until_ns, probe_ns)
            self.hold_until_ns = max(until_ns, now_ns + HOLD_NS)
            self.hold_told_ns = now_ns + max(wait, HOLD_NS)

    def region_remaining(self, now_ns: int) -> int | None:
        """Units the region's bucket holds at least, were nobody else spending, by what it said last; None: not
        known.
        """
        if self.backlog is None:
            return None
        ticks = max(0, now_ns - self.backlog_ns) // self.limit.tick_ns
        backlog = max(0, self.backlog - self.limit.units * ticks)
        return max(0, self.limit.burst * self.limit.period_ticks - backlog) // self.limit.period_ticks

    # --- demand, for borrowing ahead

    def offer(self, cost: int, now_ns: int) -> None:
        """Count an offered cost in the sliding 50 ms."""
        if now_ns - self._window_ns >= WINDOW_NS:
            self._slide(now_ns)
        self._window_now += cost

    def ahead(self, left_ns: int, now_ns: int) -> int:
        """Units to borrow ahead: what the last 50 ms offered, at most what the rest of the epoch can use."""
        self._slide(now_ns)
        part = WINDOW_NS - (now_ns - self._window_ns)
        recent = self._window_now + self._window_past * part // WINDOW_NS
        return recent * min(left_ns, WINDOW_NS) // WINDOW_NS

    def _slide(self, now_ns: int) -> None:
        passed = (now_ns - self._window_ns) // WINDOW_NS
        if passed > 0:
            self._window_past = self._window_now if passed == 1 else 0
            self._window_now = 0
            self._window_ns += passed * WINDOW_NS

    def idle(self, epoch: int, now_ns: int) -> bool:
        """Whether forgetting this holding changes no later decision but by a crossing."""
        if self.threshold is not None and not self.threshold.idle(now_ns):
            return False
        return self.used < epoch and now_ns >= self.hold_until_ns


assert WINDOW_NS <= EPOCH_NS
