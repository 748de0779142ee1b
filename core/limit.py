"""What a rule allows: a rate with a burst, an allowance in each period, or no limit at all.

Everything is an integer. A rate of `units` per period is kept as units and a period in *ticks*; one tick is a
microsecond for periods up to a minute and a millisecond above, so that edge, region and store scripts compute the
same to the bit (design 4.2). A *backlog* is counted in unit-ticks: units x period_ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from apportion.core.periods import Calendar, Unit, after, unit_text

EPOCH_NS = 1_000_000_000
"""Length of an epoch: quotas are divided again once a second."""

BACKLOG_MAX = 2**53
"""burst x period_ticks stays below this, because a store's scripts count in doubles."""

DIVIDED_UNITS_MIN = 20
"""A lease quota is divided over edges only from this many units a second on (algorithms 1.2: smaller slices lose
more).
"""

MINUTE_NS = 60 * EPOCH_NS
MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`units` per `period_ns`, at most `burst` at once. Entitles to rate x w + burst in any interval of length w.

    `units` 0 admits nothing, ever (then `burst` is 0 too). Raises ValueError for values that cannot be computed
    exactly. `tick_ns`: nanoseconds of one tick; `period_ticks`: the period in ticks, the P of algorithms section 3.
    Both follow from the period, and are worked out once as every decision asks for them.
    """

    units: int
    period_ns: int
    burst: int
    tick_ns: int = field(init=False, compare=False, repr=False)
    period_ticks: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tick_ns", tick_ns(self.period_ns))
        object.__setattr__(self, "period_ticks", self.period_ns // self.tick_ns)
        if self.units < 0 or self.burst < 0 or self.period_ns <= 0:
            raise ValueError("units and burst are at least 0, the period is above 0")
        if self.period_ns % self.tick_ns:
            raise ValueError(f"the period must be whole ticks of {self.tick_ns} ns")
        if (self.units == 0) != (self.burst == 0):
            raise ValueError("a rate of 0 has burst 0, and only that one")
        if self.burst > self.burst_max:
            raise ValueError(f"burst is at most {self.burst_max} for this period")

    @property
    def burst_max(self) -> int:
        """The largest burst that keeps burst x period below 2^53."""
        return burst_max(self.period_ns)

    @property
    def largest(self) -> int:
        """The largest cost that can ever be admitted."""
        return self.burst

    @property
    def per_second(self) -> float:
        """Units a second, for people and for metrics; never for a decision."""
        return self.units * EPOCH_NS / self.period_ns

    @property
    def drain_ns(self) -> int:
        """Nanoseconds, rounded up, until a full backlog has drained; 0 for a rate of 0."""
        return ceil_div(self.burst * self.period_ns, self.units) if self.units else 0

    @property
    def can_be_divided(self) -> bool:
        """Whether a `lease` quota of this limit is divided over edges (design 4.1)."""
        return self.units * EPOCH_NS >= DIVIDED_UNITS_MIN * self.period_ns

    def units_in_epoch(self, epoch: int) -> int:
        """Q_k: whole units of epoch `epoch`; the fraction is carried to the next, so k epochs give floor(k x rate)."""
        per = self.units * EPOCH_NS
        return (epoch + 1) * per // self.period_ns - epoch * per // self.period_ns


class PeriodAnchor(Enum):
    """When the periods of a quota begin (design 4.2). The value is the word of the rules file."""

    CALENDAR = "calendar"  # by the clock of a zone, for all subjects at once
    FIRST_USE = "first_use"  # with the subject's first call, and again with the first one after its end
    ROLLING = "rolling"  # never: every window of that length counts


@dataclass(frozen=True, slots=True)
class PeriodLimit:
    """At most `units` in each period of `multiple` units of time, all at once if the caller likes.

    `zone`, `week_starts_on` (0 is Monday) and `month_starts_on` say when calendar periods begin; those of the tenant
    count where `zone_from_tenant` or `month_from_tenant` says so (`tenancy.Homes`). A rolling one has a fixed length.
    `audit_periods`: an event tells of each period that is closed.
    """

    units: int
    multiple: int
    unit: Unit
    anchor: PeriodAnchor
    zone: str = "UTC"
    week_starts_on: int = 0
    month_starts_on: int = 1
    zone_from_tenant: bool = False
    month_from_tenant: bool = False
    audit_periods: bool = False
    calendar: Calendar = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.units < 0 or self.multiple < 1:
            raise ValueError("an allowance is at least 0, a period at least one unit")
        if self.anchor is PeriodAnchor.ROLLING and self.unit.fixed_s is None:
            raise ValueError("a rolling period has a fixed length")
        calendar = Calendar(1, Unit.DAY)
        if self.anchor is PeriodAnchor.CALENDAR:
            calendar = Calendar(self.multiple, self.unit, self.zone, self.week_starts_on, self.month_starts_on)
        object.__setattr__(self, "calendar", calendar)

    @property
    def largest(self) -> int:
        """The largest cost that can ever be admitted."""
        return self.units

    @property
    def period_text(self) -> str:
        """The period as the rules file writes it: `day`, `6hour`."""
        return unit_text(self.multiple, self.unit)

    @property
    def length_ns(self) -> int:
        """Nanoseconds of a period; of months and years those that begin in 1970."""
        return self.ends_ns(0)

    @property
    def per_second(self) -> float:
        """Units a second, were they spent evenly; for people and metrics, never for a decision."""
        return self.units * EPOCH_NS / self.length_ns

    def ends_ns(self, start_ns: int) -> int:
        """When a period ends that the first use began at `start_ns`."""
        start_s, rest_ns = divmod(start_ns, EPOCH_NS)
        return after(self.multiple, self.unit, start_s) * EPOCH_NS + rest_ns


@dataclass(frozen=True, slots=True)
class Unlimited:
    """No limit: nothing is counted, divided or stored. Not the same as zero, and not the same as none."""


Finite = RateLimit | PeriodLimit
"""A limit that something is counted for."""

Limit = Finite | Unlimited


def tick_ns(period_ns: int) -> int:
    """Nanoseconds of a tick for a period of that length."""
    return MICROSECOND_NS if period_ns <= MINUTE_NS else MILLISECOND_NS


def burst_max(period_ns: int) -> int:
    """The largest burst allowed for a period of that length."""
    return (BACKLOG_MAX - 1) // (period_ns // tick_ns(period_ns))


def default_burst(units: int, period_ns: int) -> int:
    """A quarter second's worth, at least min(units, 20): 10000/s 2500, 200/s 50, 10/s 10, 1/min 1."""
    return max(units * EPOCH_NS // (4 * period_ns), min(units, 20))


def ceil_div(dividend: int, divisor: int) -> int:
    """dividend / divisor rounded up, exact for ints of any size."""
    return -(-dividend // divisor)
