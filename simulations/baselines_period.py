"""One central counter for a quota of a period, asked for every request: what every mode is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apportion.core.limit import EPOCH_NS, PeriodLimit
from apportion.region.counters import PeriodCounters
from apportion.simulations.recording import quota_key
from apportion.simulations.rows import Answered, Clocked, Crossed, Offered, Row, Tallied
from apportion.simulations.world import Arrival

SWEPT = 4
"""Counters that are looked at for sweeping with each request."""


def central_rows(traffic: Iterable[Arrival], names: list[str], begins_ns: int) -> Iterator[Row]:
    """The log of requests for one rule, in the order of time, at edges of these names. Clocks are right, and show
    `begins_ns` at instant 0.
    """
    counters = PeriodCounters(durable=False)
    yield Clocked(0, begins_ns, begins_ns, 0, 0)
    for at_ns, edge, applications in traffic:
        (asked,) = applications
        rule, key, cost, limit = asked.rule, asked.key, asked.cost, asked.rule.limit
        assert isinstance(limit, PeriodLimit)
        quota, now_ns, epoch = quota_key(rule.domain, rule.name, key), begins_ns + at_ns, at_ns // EPOCH_NS
        need = counters.need(quota, limit, cost, now_ns, now_ns)
        allowed = need.fits(0)
        if allowed:
            counters.charge(quota, need, cost, now_ns, now_ns)
        counters.sweep(now_ns, now_ns, SWEPT, False, set())
        yield Offered(
            at_ns, names[edge], edge, rule.domain, rule.name, key, cost, peek=False, first=True, alone=True
        )  # fmt: skip
        yield Crossed(at_ns, names[edge], (rule.name,))
        yield Tallied(at_ns, now_ns, now_ns, quota, epoch, cost if allowed else 0, cost, int(not allowed), lent=False)
        yield Answered(
            at_ns, names[edge], edge, rule.domain, rule.name, key, cost, allowed, allowed, allowed,
            epoch if allowed else None, False, False, False, None if allowed else "over_limit", True,
        )  # fmt: skip
