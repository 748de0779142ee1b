"""What a plan is made of: one limited rule under one key, and how to get at what is counted of it. Decides nothing.

A part of a rate holds its bucket, which the engine's fast path reads by itself. A part of a period quota is for the
whole of a decision (`settling`): it must be told what time it is, and so which period, before anything is asked.
"""

from __future__ import annotations

from apportion.core.bucket import Bucket, retry_after_ns
from apportion.core.counter import Count, Counter, Ring
from apportion.core.key import encode_key, encode_period
from apportion.core.limit import BACKLOG_MAX, EPOCH_NS, PeriodAnchor, PeriodLimit, RateLimit, ceil_div
from apportion.core.periods import HOUR_S, Period
from apportion.core.rule import REQUESTS, Rule
from apportion.core.table import CLOSED, LocalBucket, LocalCount, PeriodCounts, Quotas, Table, behind_ns

KEPT_NS = HOUR_S * EPOCH_NS
"""A calendar period's count stays at most so long, and no longer than the period, after the period's end: a wall clock
that is set back by less finds it again.
"""

FOREVER_NS = 2**63
"""The end of what ends only when it is empty."""


class Part:
    """One limited rule under one key, as a plan holds it: a link of a chain in rule-name order.

    `bucket` may be closed: then `find` it again. `charge_default` is the rule's default cost in unit-ticks.
    """

    __slots__ = (
        "bucket",
        "capacity",
        "charge_default",
        "cost_max",
        "following",
        "key",
        "limit",
        "name",
        "period",
        "quotas",
        "rule",
        "tick_ns",
        "units",
    )

    def __init__(self, quotas: Quotas, key: tuple[str, ...], following: Part | None = None) -> None:
        self.quotas = quotas
        self.key = key
        self.following = following
        self.name = encode_key(key)
        self.rule = quotas.rule
        self.limit = quotas.limit
        self.units = quotas.absent.units
        self.period = quotas.absent.period
        self.tick_ns = quotas.absent.tick_ns
        self.capacity = quotas.capacity
        self.cost_max = quotas.cost_max
        # A default cost above the maximum can never pass: it is made one that does not fit in any bucket.
        self.charge_default = self.rule.cost_default * self.period
        if self.rule.cost_default > self.cost_max:
            self.charge_default = BACKLOG_MAX
        self.bucket: Bucket = quotas.absent
        self.find()

    def find(self) -> bool:
        """Hold the bucket of the key as the table has it now, or the rule's stand-in for an absent one; whether there
        is one.
        """
        self.bucket = self.quotas.buckets.get(self.name, self.quotas.absent)
        return self.bucket is not self.quotas.absent

    def begin(self, table: Table, now_ns: int) -> None:
        """Put a new bucket into the table, which has room."""
        self.bucket = table.add(LocalBucket(self.quotas, self.name, table.begins_ns(now_ns)))

    def held(self, now_ns: int) -> int:
        """What counts at `now_ns`, in unit-ticks."""
        return self.bucket.drain(now_ns)

    def charge(self, cost: int) -> None:
        """Count `cost` units that fit at the instant of the last `held`."""
        self.bucket.charge(cost)

    def wait_ns(self, cost: int, held: int) -> int | None:
        """Nanoseconds until `cost` units fit where `held` was; 0 now, None never."""
        return retry_after_ns(self.limit, held, cost)

    def whole_in_ns(self, held: int) -> int:
        """Nanoseconds until the allowance is whole again where `held` is."""
        return ceil_div(held, self.units) * self.tick_ns if held else 0

    def late_ns(self, now_ns: int) -> int:
        """How far `now_ns` is behind the latest instant seen here."""
        return behind_ns(self.bucket, now_ns)


_CLOSED_BUCKET = Bucket(RateLimit(1, EPOCH_NS, 1), 0)
_CLOSED_BUCKET.capacity = CLOSED


class PeriodPart(Part):
    """A period quota under one key: what is counted of it is in `count`, None where there is nothing.

    Its bucket is closed for ever. `turn_to` says what time it is, before anything is asked. Each period of a calendar
    has a name in the table, as in a store: a clock that is set back finds what the period before has used.
    """

    __slots__ = ("_key_name", "_left_ns", "_period", "count", "counts", "period_limit")

    def __init__(self, counts: PeriodCounts, rule: Rule, key: tuple[str, ...], following: Part | None = None) -> None:
        assert isinstance(rule.limit, PeriodLimit)
        self.counts = counts
        self.count: LocalCount | None = None
        self.rule, self.key, self.following = rule, key, following
        self.name = self._key_name = encode_key(key)
        self.period_limit = rule.limit
        self.capacity = self.units = rule.limit.units
        self.cost_max = counts.cost_max
        self.bucket = _CLOSED_BUCKET
        self.tick_ns, self.period, self.charge_default = 1, 1, 0
        self._period: Period | None = None
        self._left_ns = 0

    def turn_to(self, table: Table, now_ns: int, wall_ns: int) -> None:
        """Be of the period of that instant, by the one clock and the other; a count that is over leaves the table."""
        limit = self.period_limit
        if limit.anchor is PeriodAnchor.CALENDAR:
            wall_s = wall_ns // EPOCH_NS
            if self._period is None or wall_s not in self._period:
                self._period = limit.calendar.period(wall_s)
                self.name = encode_period(self._key_name, self._period.name)
            self._left_ns = self._period.end_s * EPOCH_NS - wall_ns
        elif limit.anchor is PeriodAnchor.FIRST_USE:
            self._left_ns = limit.ends_ns(wall_ns) - wall_ns
        if self.find():
            assert self.count is not None
            if self._period is not None:  # the wall clock may have been set since
                self.count.ends_in(self._left_ns, self._kept_ns, now_ns)
            if not self.count.drain(now_ns):
                table.drop(self.count, now_ns)

    def find(self) -> bool:
        self.count = self.counts.buckets.get(self.name)
        return self.count is not None

    def begin(self, table: Table, now_ns: int) -> None:
        start_ns = table.begins_ns(now_ns)
        if self.period_limit.anchor is PeriodAnchor.ROLLING:
            counter: Counter = Ring(self.period_limit.length_ns, start_ns)
            until_ns = FOREVER_NS
        else:
            counter = Count(start_ns, start_ns + self._left_ns)
            until_ns = counter.end_ns + self._kept_ns
        self.count = table.add(LocalCount(self.counts, self.name, counter, start_ns, until_ns))

    def held(self, now_ns: int) -> int:
        return self.count.drain(now_ns) if self.count is not None else 0

    def charge(self, cost: int) -> None:
        assert self.count is not None
        self.count.charge(cost)

    def wait_ns(self, cost: int, held: int) -> int | None:
        assert self.count is not None
        return self.count.retry_after_ns(cost)

    def whole_in_ns(self, held: int) -> int:
        return self.count.reset_after_ns() if held and self.count is not None else 0

    def late_ns(self, now_ns: int) -> int:
        return max(0, self.count.last - now_ns) if self.count is not None else 0

    @property
    def _kept_ns(self) -> int:
        """How long a count stays after the end of its period."""
        if self._period is None:
            return 0
        return min((self._period.end_s - self._period.start_s) * EPOCH_NS, KEPT_NS)


class Detour(Part):
    """Stands in front of a plan that the engine's fast path must leave to the whole one: with a shadow rule, one that
    counts another measure than requests, or a period quota.

    Its bucket is closed for ever, which the fast path meets before it has charged anything; so no other plan pays for
    the question whether it is such a one.
    """

    __slots__ = ()

    def __init__(self, following: Part) -> None:
        self.following = following
        self.bucket = _CLOSED_BUCKET
        self.tick_ns, self.units, self.period, self.charge_default, self.cost_max = 1, 0, 0, 0, 0


def detours(part: Part) -> bool:
    """Whether a plan with this part needs a Detour."""
    return part.rule.shadow or part.rule.counts != REQUESTS or isinstance(part, PeriodPart)


Plan = Part | None
"""The first part of a chain, or a Detour in front of it; None where no limited rule applies."""


def chain(plan: Plan) -> list[Part]:
    """The parts of a plan, first to last."""
    parts = []
    if plan.__class__ is Detour:
        plan = plan.following
    while plan is not None:
        parts.append(plan)
        plan = plan.following
    return parts
