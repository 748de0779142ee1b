"""What the checkers say of logs of quotas that are wrong, and that they say nothing of those that are right."""

from __future__ import annotations

import pytest

from apportion.core.messages import Rules
from apportion.core.periods import Unit, period_name
from apportion.simulations.checkers_period import period_violations
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.nodes import parsed
from apportion.simulations.period_log import PeriodLog
from apportion.simulations.recording import quota_key
from apportion.simulations.rows import (
    Answered,
    Clocked,
    GaveBack,
    Issued,
    Kept,
    Lifetimes,
    Offered,
    Rare,
    Row,
    Tallied,
    Told,
)
from apportion.simulations.scenario import NOON_NS, OneRule
from apportion.simulations.world import SECOND

QUOTA = quota_key("simulated", "search", ("k",))
CLOCKS = Clocked(0, NOON_NS, NOON_NS, 0, 0)
"""At instant 0 it is noon, and clocks are right."""


def ns(second: float) -> int:
    """An instant of virtual time."""
    return round(second * SECOND)


def tallied(second: float, units: int, refused: int = 0, cost: int = 1, lent: bool = False, fast: float = 0) -> Tallied:
    """The store charged units, and refused so many requests; its wall clock is `fast` by seconds."""
    now_ns = NOON_NS + ns(second)
    return Tallied(ns(second), now_ns, now_ns + ns(fast), QUOTA, int(second), units, cost, refused, lent)


def offered(second: float, cost: int = 1) -> Offered:
    """A request at the one edge."""
    return Offered(ns(second), "edge-0", 7, "simulated", "search", ("k",), cost, peek=False, first=True, alone=True)


def answered(second: float, allowed: bool, cost: int = 1, at_edge: bool = False) -> Answered:
    """Its answer."""
    reason = None if allowed else "over_limit"
    return Answered(
        ns(second), "edge-0", 7, "simulated", "search", ("k",), cost, allowed, allowed, allowed,
        int(second) if allowed else None, at_edge, False, False, reason, True,
    )  # fmt: skip


def wrong(rows: list[Row], anchor: str = "calendar", enforce: str = "region") -> set[str]:
    """The properties that are broken in a log of 10/10s."""
    text = OneRule("10/10s", enforce, quota=(("anchor", anchor),)).text(1)
    log = Log.of([CLOCKS, *rows])
    periods = PeriodLog(log, InForce(parsed(Rules(1, (("rules.yaml", text),))), log.rows))
    return {each.property for each in period_violations(log, periods)}


OVER: list[tuple[str, list[Row], bool]] = [
    ("calendar", [tallied(9, 10), tallied(10, 10)], False),
    ("calendar", [tallied(9, 10), tallied(9.999, 1)], True),
    ("calendar", [tallied(3, 10), tallied(4, 10, fast=6)], False),
    ("calendar", [tallied(3, 10), tallied(4, 10, fast=6), tallied(5, 1)], True),
    ("first_use", [tallied(3, 10), tallied(13, 10)], False),
    ("first_use", [tallied(3, 1), tallied(12.999, 10)], True),
    ("first_use", [tallied(3, 10), tallied(15, 1), tallied(24, 9), tallied(24.5, 1)], True),
    ("rolling", [tallied(3, 10), tallied(13, 10)], False),
    ("rolling", [tallied(3, 5), tallied(8, 5), tallied(12.9, 1)], True),
    ("rolling", [tallied(3, 5), tallied(8, 5), tallied(13, 5), tallied(18, 5)], False),
]


@pytest.mark.parametrize("anchor, rows, over", OVER)
def test_no_period_and_no_window_is_over(anchor: str, rows: list[Row], over: bool) -> None:
    """P1: each period by its own clock, each window by itself; a wall clock that steps back finds the former period."""
    assert ("P1" in wrong(rows, anchor)) is over


REFUSED: list[tuple[str, list[Row], bool]] = [
    ("calendar", [tallied(3, 10), tallied(9, 0, refused=1)], False),
    ("calendar", [tallied(3, 10), tallied(10, 0, refused=1)], True),
    ("calendar", [tallied(3, 8), tallied(9, 0, refused=1, cost=3)], False),
    ("calendar", [tallied(3, 8), tallied(9, 0, refused=1, cost=2)], True),
    ("first_use", [tallied(3, 10), tallied(12.9, 0, refused=1)], False),
    ("first_use", [tallied(3, 10), tallied(13, 0, refused=1)], True),
    ("rolling", [tallied(3, 10), tallied(13, 0, refused=1)], False),  # the oldest part counts whole
    ("rolling", [tallied(3, 10), tallied(13.2, 0, refused=1)], True),
]


@pytest.mark.parametrize("anchor, rows, stuck", REFUSED)
def test_the_store_refuses_nobody_what_there_is_room_for(anchor: str, rows: list[Row], stuck: bool) -> None:
    """P2 at the store, to the nanosecond."""
    assert wrong(rows, anchor) == ({"P2"} if stuck else set())


def at_the_edge(second: float, anchor: str, *more: Row) -> set[str]:
    """An allowance is used up at 3 s; the edge refuses by itself later."""
    rows: list[Row] = [offered(2.9), tallied(3, 10), answered(3.1, True), offered(second), *more]
    return wrong([*rows, answered(second, allowed=False, at_edge=True)], anchor)


def test_an_edge_holds_a_refusal_until_the_reset_and_no_longer() -> None:
    """P2 at the edge, which has a second for a message's way and its clock; none while a clock has just been set."""
    for anchor, reset in (("calendar", 10), ("first_use", 13), ("rolling", 13.1)):
        assert at_the_edge(reset - 0.1, anchor) == set()
        assert at_the_edge(reset + 0.9, anchor) == set()
        assert at_the_edge(reset + 1.1, anchor) == {"P2"}
    assert at_the_edge(11.1, "calendar", Clocked(ns(11), NOON_NS + ns(11), NOON_NS + ns(11), 0, 0)) == set()


def test_an_edge_may_hold_a_refusal_as_long_as_the_wall_clock_was_set_ahead() -> None:
    """At 4 s the wall clock jumps to 12 s: the reset that the edge was told of is at 10 s all the same."""
    ahead = Clocked(ns(4), NOON_NS + ns(4), NOON_NS + ns(12), 0, 0)
    assert at_the_edge(10, "calendar", ahead) == set()
    assert at_the_edge(13.1, "calendar", ahead) == {"P2"}


def patient(second: float, allowed: bool, *more: Row) -> set[str]:
    """A caller is refused at 5 s and told to wait 5 s; it comes again then."""
    told: list[Rare] = [tallied(3, 10), Told(ns(5.1), "search", ("k",), 1, ns(5))]
    first: list[Row] = [offered(2.9), answered(3.1, True, cost=10), offered(5), answered(5.1, False)]
    return wrong([*told, *first, *more, offered(second), answered(second + 0.1, allowed)])


def test_who_waits_as_told_is_admitted() -> None:
    """P3: not who comes early, and not who was not alone."""
    assert patient(10.1, False) == {"P3"}
    assert patient(10.0, False) == set()
    assert patient(10.1, False, offered(9), offered(9.5), answered(9.6, False), answered(9.7, False)) == set()
    charged: Row = tallied(10.1, 1)
    assert patient(10.1, True, charged) == set()


def test_what_was_charged_is_what_is_kept_and_covers_what_was_admitted() -> None:
    """P4: the counter at the end, all callers together, and what each edge spends by itself of what it was lent."""
    assert wrong([tallied(3, 4), Kept(QUOTA, NOON_NS, 4)]) == set()
    assert wrong([tallied(3, 4), Kept(QUOTA, NOON_NS, 5)]) == {"P4"}
    assert wrong([tallied(3, 4), Kept(QUOTA, NOON_NS + ns(10), 4)]) == {"P4"}
    assert wrong([tallied(3, 4), answered(3.1, True, cost=4)]) == set()
    assert wrong([tallied(3, 4), answered(3.1, True, cost=5)]) == {"P4"}
    lent: list[Row] = [tallied(3, 6, lent=True), Issued(7, "search", QUOTA, 3, 4, lent=True)]
    assert wrong([*lent, answered(3.1, True, cost=4, at_edge=True)], enforce="lease") == set()
    assert wrong([*lent, answered(3.1, True, cost=5, at_edge=True)], enforce="lease") == {"P4"}
    back = GaveBack(ns(5), QUOTA, period_name(NOON_NS // SECOND, 10, Unit.SECOND), 4)
    assert wrong([tallied(3, 6, lent=True), back, Kept(QUOTA, NOON_NS, 2), tallied(6, 8)], enforce="lease") == {"P4"}
    assert wrong([tallied(3, 6, lent=True), back, tallied(6, 8), Kept(QUOTA, NOON_NS, 10)], enforce="lease") == set()


def test_each_lifetime_that_was_lost_is_counted() -> None:
    """P5."""
    assert wrong([tallied(3, 1), Lifetimes(5, 5)]) == set()
    assert wrong([tallied(3, 1), Lifetimes(5, 4)]) == {"P5"}
