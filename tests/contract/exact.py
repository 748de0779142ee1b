"""A bucket in fractions: the plain reading of design 4.2 that the integers are held to, to the bit."""

from fractions import Fraction
from math import ceil

from hypothesis import strategies as st

from apportion.core.limit import RateLimit, burst_max, tick_ns

SECOND = 1_000_000_000


class ExactBucket:
    """Units used, as a fraction, that drain continuously; time counts in whole ticks of the limit."""

    def __init__(self, limit: RateLimit, now_ns: int) -> None:
        self.limit = limit
        self.used = Fraction(0)
        self.last_ns = self.whole(now_ns)

    def whole(self, now_ns: int) -> int:
        """The start of the tick that `now_ns` is in."""
        return now_ns - now_ns % tick_ns(self.limit.period_ns)

    def drain(self, now_ns: int) -> None:
        """Units x elapsed / period leave; a time that lies back takes nothing."""
        now = self.whole(now_ns)
        if now > self.last_ns:
            drained = Fraction(self.limit.units * (now - self.last_ns), self.limit.period_ns)
            self.used = max(Fraction(0), self.used - drained)
            self.last_ns = now

    def take(self, cost: int, count: int, now_ns: int) -> int:
        """How many of `count` requests of `cost` units pass; they are charged."""
        self.drain(now_ns)
        if cost == 0:
            return count
        passed = max(0, min(count, (self.limit.burst - self.used) // cost))
        self.used += passed * cost
        return passed

    def change(self, limit: RateLimit, now_ns: int) -> None:
        """`limit` holds from now on; another period rounds what is used up to its unit-ticks, and time to its ticks."""
        self.drain(now_ns)
        if limit.period_ns != self.limit.period_ns:
            self.used = Fraction(ceil(self.used * limit.period_ticks), limit.period_ticks)
            tick = tick_ns(limit.period_ns)
            self.last_ns = max(-(-self.last_ns // tick) if self.used else 0, now_ns // tick) * tick
        self.limit = limit


@st.composite
def limits(draw: st.DrawFn) -> RateLimit:
    """Any limit, from one unit a year to thousands of millions a microsecond."""
    ticks = draw(st.sampled_from((1_000, 1_000_000)))
    small = draw(st.booleans())
    shortest, longest = (1, 60_000_000) if ticks == 1_000 else (60_001, 366 * 86_400_000)
    period = draw(st.integers(shortest, min(longest, shortest + 1_000) if small else longest)) * ticks
    units = draw(st.one_of(st.integers(1, 20), st.integers(1, 2**40)))
    burst = draw(st.one_of(st.integers(1, 20), st.integers(1, burst_max(period))))
    return RateLimit(units, period, min(burst, burst_max(period)))


def durations(limit: RateLimit) -> st.SearchStrategy[int]:
    """Times to wait that matter to `limit`: ticks, units, bursts, and anything up to an hour."""
    unit = max(1, limit.period_ns // limit.units)
    return st.one_of(
        st.integers(0, 3_000_000),
        st.integers(0, 4 * unit),
        st.integers(0, 2 * limit.drain_ns),
        st.integers(0, 3600 * SECOND),
    )


def costs(limit: RateLimit) -> st.SearchStrategy[int]:
    """Costs up to just above the burst, and absurd ones."""
    return st.one_of(st.integers(0, 4), st.integers(0, limit.burst + 1), st.just(2**64 - 1))
