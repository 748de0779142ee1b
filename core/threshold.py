"""What an edge may admit, or let pass to the region, of one quota by itself (design 4.1): arithmetic only. Pure.

A slack is kept in hundredths of a percent, so that every threshold is exact and rounded where its name says. What is
counted against a threshold, and when, is the edge's business; who gets which slice is the leader's.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div

SLACK_ONE = 10_000
"""Hundredths of a percent in the whole."""

SLACK_MAX = 100 * SLACK_ONE
"""100 times the limit: beyond that nothing is limited."""

SHARE_UNITS_MIN = 20
"""A limit with slack gives each edge at least so many units an epoch; a smaller one is not worth dividing."""

PASSING_UNITS_MIN = 20
"""An `edge+region` threshold is at least this, where the limit is: fewer would be refused by chance alone."""


def with_slack(units: int, slack: int) -> int:
    """`units` x (1 + slack), rounded down: what all slices of one epoch add up to."""
    return units * (SLACK_ONE + slack) // SLACK_ONE


def share_units(limit: RateLimit, slack: int, edges_max: int) -> int:
    """Q x (1 + slack) / edges_max, rounded up: what an edge without a slice admits of one label."""
    return ceil_div(limit.units * EPOCH_NS * (SLACK_ONE + slack), limit.period_ns * SLACK_ONE * edges_max)


def passing_units(limit: RateLimit, slack: int, edges_max: int, cost_max: int, part: int | None) -> int:
    """What an edge lets pass to the region of one label; `part` is its slice, None where it has none of that label.

    min(Q + burst, max((1 + slack) x slice, (1 + slack) x Q / edges, Q / 10, 20, cost_max)), rounded up.
    """
    most = ceil_div(limit.units * EPOCH_NS, limit.period_ns) + limit.burst
    if part is None:
        return most
    least = max(
        ceil_div(part * (SLACK_ONE + slack), SLACK_ONE),
        share_units(limit, slack, edges_max),
        ceil_div(limit.units * EPOCH_NS, limit.period_ns * 10),
        PASSING_UNITS_MIN,
        cost_max,
    )
    return min(most, least)


def slack_text(slack: int) -> str:
    """As the rules file writes it: `10%`, `2.5%`."""
    whole, rest = divmod(slack, 100)
    return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") + "%" if rest else f"{whole}%"
