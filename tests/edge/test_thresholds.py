"""What an edge counts of a quota against what it may do by itself (design 4.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.core.limit import RateLimit
from apportion.core.rule import Rule
from apportion.core.rules_file import parse_rules
from apportion.edge.thresholds import EachEdge, Passing, Share, Threshold, threshold_of

MS = 1_000_000
SECOND = 1000 * MS


def threshold(fields: str, limit: str = "{rate: 1000/s}", edges_max: int = 40) -> tuple[Threshold, Rule]:
    """The threshold of a rule with those fields."""
    text = (
        f"version: 1\ndomain: api\nedges_max: {edges_max}\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [], limit: {limit}, {fields}}}\n"
    )
    rule = parse_rules([("r", text)]).rule("api", "r")
    assert rule is not None and isinstance(rule.limit, RateLimit)
    found = threshold_of(rule, rule.limit)
    assert found is not None
    return found, rule


def share(slack: str = "10%") -> Share:
    """1000/s over 40 edges: a share of 28, and a depth of a quarter of it."""
    found, _ = threshold(f"enforce: edge, slack: {slack}, wrong_costs: noise")
    assert isinstance(found, Share)
    return found


def spend(held: Threshold, epoch: int, now_ns: int, most: int = 10_000) -> int:
    """Take units one by one until they are refused; returns how many were."""
    for taken in range(most):
        if not held.admits(1, epoch, now_ns):
            return taken
        held.take(1, epoch, now_ns)
    return most


def over_the_label(held: Threshold, epoch: int) -> int:
    """What a label admits of one who asks each 5 ms of its second."""
    return sum(spend(held, epoch, epoch * SECOND + at * 5 * MS) for at in range(200))


def test_at_each_edge_admits_from_the_first_request_on() -> None:
    """Its burst at once, then its rate."""
    held, _ = threshold("enforce: edge, at_each_edge: 50/s, wrong_costs: noise", "{rate: 50/s}")
    assert isinstance(held, EachEdge)
    assert spend(held, 7, 5 * SECOND) == 20
    assert spend(held, 7, 5 * SECOND + 100 * MS) == 5


def test_at_each_edge_gives_one_label_no_more_than_a_second_s_worth() -> None:
    """A label that lasts for two seconds on a wrong clock has its rate and burst once."""
    held, _ = threshold("enforce: edge, at_each_edge: 50/s, wrong_costs: noise", "{rate: 50/s}")
    assert sum(spend(held, 7, at * 10 * MS) for at in range(200)) == 70
    assert spend(held, 8, 2 * SECOND) == 20  # the bucket has been full since


def test_at_each_edge_is_remembered_while_it_matters() -> None:
    """1/min: a bucket that has not drained is not idle, or being forgotten would be a fresh allowance."""
    held, _ = threshold("enforce: edge, at_each_edge: 1/min, wrong_costs: noise", "{rate: 2/min}")
    assert held.admits(2, 0, 0)
    held.take(2, 0, 0)
    assert not held.idle(119 * SECOND)
    assert held.idle(120 * SECOND)


def test_a_limit_of_zero_admits_nothing() -> None:
    """Whatever is written beside it."""
    held, _ = threshold("enforce: edge, at_each_edge: 50/s, wrong_costs: noise", "{rate: 0/s}")
    assert not held.admits(1, 0, 0)


def test_without_a_slice_an_edge_admits_its_share() -> None:
    """From its first request on, and in each label anew."""
    held = share()
    assert spend(held, 0, 0) == 7
    assert over_the_label(held, 1) == 28
    assert over_the_label(held, 2) == 28


def test_a_slice_replaces_the_share_and_only_of_its_label() -> None:
    """What the share spent before the plan came counts against the slice."""
    held = share()
    assert spend(held, 3, 3 * SECOND) == 7
    held.begin(3, 400)
    assert over_the_label(held, 3) == 393
    held.begin(4, 1)
    assert over_the_label(held, 4) == 1
    assert over_the_label(held, 5) == 28


def test_a_slice_below_what_the_share_has_spent_admits_no_more() -> None:
    """A label never has more than the larger of the two."""
    held = share()
    assert spend(held, 3, 3 * SECOND) == 7
    held.begin(3, 5)
    assert over_the_label(held, 3) == 0


def test_a_cost_above_the_depth_passes_and_delays_the_next() -> None:
    """There is nobody to borrow from: 28 at once is a share, and the level pays it back."""
    held = share()
    assert held.admits(28, 0, 0)
    held.take(28, 0, 0)
    assert held.wait_ns(1, 0, 10 * MS, 0) > 10 * MS  # not at once in the next label either


def test_what_is_put_back_can_be_taken_again() -> None:
    """Another rule refused the request."""
    held = share()
    assert held.admits(5, 0, 0)
    held.take(5, 0, 0)
    held.put_back(0, 5)
    assert spend(held, 0, 0) == 7


@pytest.mark.parametrize(
    "fields",
    [
        "enforce: edge, at_each_edge: 300/s, wrong_costs: noise",
        "enforce: edge, slack: 10%, wrong_costs: noise",
        "enforce: edge+region, when_unavailable: [deny]",
    ],
)
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 28)), max_size=60), st.integers(1, 28))
def test_a_lone_caller_that_waits_as_told_is_admitted(fields: str, asks: list[tuple[int, int]], cost: int) -> None:
    """Exactly so long, at whatever state it was refused."""
    held, _ = threshold(fields)
    now_ns = 0
    for pause_ms, each in asks:
        now_ns += pause_ms * MS
        epoch = now_ns // SECOND
        if held.admits(each, epoch, now_ns):
            held.take(each, epoch, now_ns)
    epoch = now_ns // SECOND
    if not held.admits(cost, epoch, now_ns):
        now_ns += held.wait_ns(cost, epoch, (epoch + 1) * SECOND - now_ns, now_ns)
        assert held.admits(cost, now_ns // SECOND, now_ns)


def test_edge_region_lets_pass_what_its_slice_says_and_takes_back_what_was_refused() -> None:
    """Twice the slice; a request that the region refused has not passed."""
    held, _ = threshold("enforce: edge+region, cost: {max: 1}, when_unavailable: [deny]")
    assert isinstance(held, Passing)
    assert spend(held, 0, 0) == 1250  # no slice: Q + burst
    held.begin(1, 200)
    assert spend(held, 1, SECOND) == 400
    held.put_back(1, 30)
    held.put_back(0, 30)
    assert spend(held, 1, SECOND) == 30
    assert held.wait_ns(1, 1, 600 * MS, SECOND + 400 * MS) == 600 * MS


@pytest.mark.parametrize(
    "limit, after, fields",
    [
        ("{rate: 50/s}", "{rate: 3000/min, burst: 20}", "enforce: edge, at_each_edge: 50/s, wrong_costs: noise"),
        ("{rate: 1000/s}", "{rate: 1000/s, burst: 200}", "enforce: edge, slack: 10%, wrong_costs: noise"),
        ("{rate: 1000/s}", "{rate: 1000/s}", "enforce: edge+region, when_unavailable: [deny]"),
    ],
)
def test_other_rules_give_back_nothing_of_what_was_counted(limit: str, after: str, fields: str) -> None:
    """A change of the rules is no fresh allowance."""
    held, _ = threshold(fields, limit)
    assert spend(held, 3, 3 * SECOND) > 0
    _, rule = threshold(fields, after)
    assert isinstance(rule.limit, RateLimit)
    later = threshold_of(rule, rule.limit, held)
    assert later is not None and spend(later, 3, 3 * SECOND) == 0


def test_only_rules_with_a_threshold_have_one() -> None:
    """A lease holds what it was given, and a region rule nothing."""
    for enforce in ("lease", "region"):
        text = (
            f"version: 1\ndomain: api\nrules:\n  - {{name: r, match: {{a: x}}, key: [], limit: {{rate: 9/s}}, "
            f"enforce: {enforce}, when_unavailable: [deny]}}\n"
        )
        rule = parse_rules([("r", text)]).rule("api", "r")
        assert rule is not None and isinstance(rule.limit, RateLimit)
        assert threshold_of(rule, rule.limit) is None
