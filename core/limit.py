"""What a rule allows: a rate with a burst, or no limit at all; and what one epoch of it is worth.

Everything is an integer. A rate of `units` per period is kept as units and a period in *ticks*; one tick is a
microsecond for periods up to a minute and a millisecond above, so that edge, region and store scripts compute the
same to the bit (design 4.2). A *backlog* is counted in unit-ticks: units x period_ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Unlimited:
    """No limit: nothing is counted, divided or stored. Not the same as zero, and not the same as none."""


Limit = RateLimit | Unlimited


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
