"""The engine's buckets: one for each quota that is not full, bounded, swept as it goes; and so the counts of periods.

A bucket that has drained equals one that never was, so the table drops those it comes across, a few at a time; a live
one never, or being forgotten would be a fresh allowance. Who holds a bucket directly, as a plan does, must be able to
tell that it has left: it is *closed*, admits nothing and has to be looked up again. Nothing here decides.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TypeVar

from apportion.core.bucket import Bucket
from apportion.core.counter import Count, Counter
from apportion.core.limit import PeriodLimit, RateLimit
from apportion.core.rule import Rule

CLOSED = -1
"""Capacity of a bucket that is not in the table: even a cost of 0 does not fit in it."""

STEPS_FULL = 32
"""Buckets looked at when there is no room, beside those known to drain soonest: the most that one request may cost."""

SOONEST_KEPT = 32
"""Buckets remembered as draining soonest, so that a caller who waits as told finds the room he was told of."""


class Quotas:
    """The buckets of one limited rule, by encoded key.

    `absent` stands in for a key without a bucket: closed, so that whoever meets it looks the key up and makes one. For
    a limit of 0 it is an open bucket of capacity 0, which refuses by itself: such a rule never has a key.
    """

    __slots__ = ("absent", "buckets", "capacity", "cost_max", "limit", "rule")

    def __init__(self, rule: Rule, limit: RateLimit) -> None:
        self.rule = rule
        self.limit = limit
        self.cost_max = limit.burst if rule.cost_max is None else min(rule.cost_max, limit.burst)
        self.buckets: dict[bytes, LocalBucket] = {}
        self.absent = Bucket(limit, 0)
        self.capacity = self.absent.capacity
        if limit.units:
            self.absent.capacity = CLOSED


class LocalBucket(Bucket):
    """A bucket in the table; `place` is its index in the sweep's order."""

    __slots__ = ("name", "place", "quotas")

    def __init__(self, quotas: Quotas, name: bytes, now_ns: int) -> None:
        super().__init__(quotas.limit, now_ns)
        self.quotas = quotas
        self.name = name

    def enter(self, place: int) -> None:
        """Be the bucket of its key, at `place` of the sweep's order."""
        assert self.name not in self.quotas.buckets, "a quota has one bucket, or its allowance would be double"
        self.quotas.buckets[self.name] = self
        self.place = place

    def leaves_after_ns(self) -> int:
        """Nanoseconds from the last `drain` until it may be dropped."""
        return self.reset_after_ns()


class PeriodCounts:
    """The counts of one rule with a period quota, by encoded key and, where it is the calendar's, period."""

    __slots__ = ("buckets", "cost_max", "units")

    def __init__(self, rule: Rule, limit: PeriodLimit) -> None:
        self.units = limit.units
        self.cost_max = limit.units if rule.cost_max is None else min(rule.cost_max, limit.units)
        self.buckets: dict[bytes, LocalCount] = {}


class LocalCount:
    """What is counted of a period quota, in the place of a bucket. From `until_ns` on it counts for nothing; `last` is
    the latest instant that it was shown.
    """

    __slots__ = ("capacity", "counter", "last", "name", "place", "quotas", "until_ns")

    tick_ns = 1

    def __init__(self, quotas: PeriodCounts, name: bytes, counter: Counter, now_ns: int, until_ns: int) -> None:
        self.quotas = quotas
        self.name = name
        self.counter = counter
        self.last = now_ns
        self.until_ns = until_ns
        self.capacity = quotas.units

    def enter(self, place: int) -> None:
        """Be the count of its key and period, at `place` of the sweep's order."""
        assert self.name not in self.quotas.buckets, "a period has one count, or its allowance would be double"
        self.quotas.buckets[self.name] = self
        self.place = place

    def drain(self, now_ns: int) -> int:
        """Units that count at `now_ns`."""
        if now_ns > self.last:
            self.last = now_ns
        return self.counter.begin(self.last) if self.last < self.until_ns else 0

    def charge(self, cost: int) -> None:
        """Count `cost` units, which fit at the instant of the last `drain`."""
        self.counter.charge(cost)

    def ends_in(self, left_ns: int, kept_ns: int, now_ns: int) -> None:
        """The period ends `left_ns` after `now_ns`, and its count may be forgotten `kept_ns` later."""
        assert isinstance(self.counter, Count)
        self.counter.end_ns = max(now_ns, self.last) + left_ns
        self.until_ns = self.counter.end_ns + kept_ns

    def retry_after_ns(self, cost: int) -> int | None:
        """Nanoseconds from the last `drain` until `cost` fits; 0 when it fits now, None when it never will."""
        return self.counter.wait_ns(self.quotas.units, cost, self.last)

    def reset_after_ns(self) -> int:
        """Nanoseconds from the last `drain` until the allowance is whole again."""
        return self.counter.reset_ns(self.last)

    def leaves_after_ns(self) -> int:
        """Nanoseconds from the last `drain` until it may be dropped where room is short: a count that is over is kept
        for a wall clock that is set back, and not at the cost of the keys of now.
        """
        return self.reset_after_ns()


Kept = LocalBucket | LocalCount
T = TypeVar("T", LocalBucket, LocalCount)


class Table:
    """The buckets of all rules of a domain, at most `keys_max`."""

    __slots__ = ("_cursor", "_order", "_soonest", "_swept_ns", "keys_max")

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self._order: list[Kept] = []
        self._cursor = 0
        self._soonest: list[Kept] = []
        self._swept_ns = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def room(self) -> int:
        """For how many new buckets there is room."""
        return self.keys_max - len(self._order)

    def begins_ns(self, now_ns: int) -> int:
        """The instant as of which a new bucket begins: a clock that steps back finds one that was dropped as full now,
        not as one that fills again.
        """
        return max(now_ns, self._swept_ns)

    def add(self, kept: T) -> T:
        """Take in what a key is counted by that has nothing; the caller has seen to it that there is room."""
        assert len(self._order) < self.keys_max
        kept.enter(len(self._order))
        self._order.append(kept)
        return kept

    def sweep(self, now_ns: int, steps: int) -> None:
        """Look at up to `steps` buckets, in turn, and drop the drained ones."""
        for _ in range(min(steps, len(self._order))):
            bucket = self._order[self._cursor]
            if bucket.drain(now_ns):
                self._cursor += 1
            else:
                self.drop(bucket, now_ns)
            if self._cursor >= len(self._order):
                self._cursor = 0

    def make_room(self, needed: int, now_ns: int) -> None:
        """Try to have room for `needed` new buckets by dropping drained ones; does nothing where there is."""
        if needed <= self.room:
            return
        count = len(self._order)
        looked_at = [self._order[(self._cursor + step) % count] for step in range(min(STEPS_FULL, count))]
        self._cursor = (self._cursor + len(looked_at)) % max(count, 1)
        live = []
        for bucket in dict.fromkeys([*self._soonest, *looked_at]):
            if bucket.capacity == CLOSED:
                continue
            bucket.drain(now_ns)
            if bucket.leaves_after_ns():
                live.append(bucket)
            else:
                self.drop(bucket, now_ns)
        self._soonest = nsmallest(SOONEST_KEPT, live, key=_leaves_after_ns)

    def room_after_ns(self, needed: int, now_ns: int) -> int | None:
        """Nanoseconds until `needed` buckets will have drained, right after `make_room` found fewer; None = never.

        An upper bound: one that was not looked at may drain earlier.
        """
        missing = needed - self.room
        assert missing > 0
        if needed > self.keys_max or not self._soonest:
            return None
        bucket = self._soonest[min(missing, len(self._soonest)) - 1]
        return bucket.leaves_after_ns() + behind_ns(bucket, now_ns)

    def drop(self, bucket: Kept, now_ns: int) -> None:
        """Take a bucket that is drained or over out of the table, closed; the last of the order takes its place."""
        assert not (bucket.drain(now_ns) and bucket.leaves_after_ns()), "what holds something is never forgotten"
        bucket.capacity = CLOSED
        self._swept_ns = max(self._swept_ns, now_ns)
        last = self._order.pop()
        if last is not bucket:
            last.place = bucket.place
            self._order[last.place] = last
        if self._cursor >= len(self._order):
            self._cursor = 0
        buckets = bucket.quotas.buckets
        del buckets[bucket.name]
        if not buckets:
            buckets.clear()  # an emptied dict keeps its memory until it is told


def _leaves_after_ns(kept: Kept) -> int:
    return kept.leaves_after_ns()


def behind_ns(bucket: Bucket | LocalCount, now_ns: int) -> int:
    """How far `now_ns` is behind the latest instant that `bucket` saw, in whole ticks: until then nothing drains."""
    return max(0, bucket.last - now_ns // bucket.tick_ns) * bucket.tick_ns
