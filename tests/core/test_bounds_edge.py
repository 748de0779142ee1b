"""By how much rules are exceeded that an edge decides alone, and that the bound is reached but not passed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.core.bounds import bound_of
from apportion.core.bounds_edge import edge_warning
from apportion.core.limit import RateLimit
from apportion.core.meter import Meter
from apportion.core.rule import Rule
from apportion.core.rules_file import parse_rules
from apportion.edge.thresholds import EachEdge

SECOND = 1_000_000_000


def rule(threshold: str, limit: str = "{rate: 1000/s}", edges_max: int = 40, wrong_costs: str = "noise") -> Rule:
    """An `edge` rule."""
    text = (
        f"version: 1\ndomain: api\nedges_max: {edges_max}\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [], limit: {limit}, enforce: edge, {threshold}, "
        f"wrong_costs: {wrong_costs}}}\n"
    )
    found = parse_rules([("r", text)]).rule("api", "r")
    assert found is not None
    return found


def test_the_bound_of_at_each_edge() -> None:
    """40 edges x (50 and a burst of 20) less 50."""
    bound = bound_of(rule("at_each_edge: 50/s", "{rate: 50/s}"))
    assert bound.units == 40 * 70 - 50
    assert "over by at most 2750, 40 edges (`edges_max`) x 70 (each admits 50 and the burst of 20" in bound.sentence
    assert "starts again within a label counts once more" in bound.sentence


def test_the_bound_of_slack() -> None:
    """10 % of 1000 once all have slices, and 39 shares of 28 while edges are new."""
    bound = bound_of(rule("slack: 10%"))
    assert bound.units == 100 + 39 * 28
    assert "100 (slack 10%) once each edge has a slice, and 1092 more (39 edges x their share of 28)" in bound.sentence
    assert "e x 1100" in bound.sentence


def test_edge_region_is_never_over_and_says_what_passes() -> None:
    """Its threshold costs crossings only."""
    text = (
        "version: 1\ndomain: api\nedges_max: 40\nrules:\n  - {name: r, match: {a: x}, key: [], limit: {rate: 10000/s}, "
        "cost: {max: 10}, enforce: edge+region, when_unavailable: [deny]}\n"
    )
    found = parse_rules([("r", text)]).rule("api", "r")
    assert found is not None
    bound = bound_of(found)
    assert bound.units == 0
    assert "lets from 1000 to 12500 units a second pass to the region (100% more than its slice" in bound.sentence


@pytest.mark.parametrize("wrong_costs, warns", [("noise", False), ("overload", True)])
def test_an_overload_that_is_not_ruled_out_is_said(wrong_costs: str, warns: bool) -> None:
    """A bound of more than a quarter of the limit; noise may be as wrong as it likes."""
    found = rule("slack: 10%", wrong_costs=wrong_costs)
    assert isinstance(found.limit, RateLimit)
    assert (edge_warning(found, found.limit) is not None) == warns


def test_a_small_overshoot_is_no_overload() -> None:
    """One edge at the limit's rate and a burst of 20 % of it."""
    found = rule("at_each_edge: 100/s", "{rate: 100/s, burst: 20}", edges_max=1, wrong_costs="overload")
    assert isinstance(found.limit, RateLimit)
    assert edge_warning(found, found.limit) is None


def test_the_bound_of_at_each_edge_is_reached() -> None:
    """A label that all edges fill stands as a burst in the meter while their buckets drain, so all bursts count."""
    found = rule("at_each_edge: 50/s", "{rate: 50/s}", edges_max=2)
    assert isinstance(found.limit, RateLimit) and found.at_each_edge is not None
    edges = [EachEdge(found.at_each_edge) for _ in range(2)]
    meter = Meter(found.limit, divided=False)
    for epoch, until_ms in ((0, 600), (1, 1000)):  # the first label leaves each bucket time to drain
        admitted = 0
        for edge in edges:
            for at in range(0, until_ms * 1_000_000, 1_000_000):
                now_ns = epoch * SECOND + at
                while edge.admits(1, epoch, now_ns):
                    edge.take(1, epoch, now_ns)
                    admitted += 1
        meter.record(epoch, admitted)
    # 69 of 70 each: the last unit drains at the label's very end
    assert meter.worst == 2 * 69 - 50
    assert bound_of(found).units == 2 * 70 - 50


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20), st.integers(0, 700), st.integers(0, 1)), max_size=120),
)
def test_the_bound_of_at_each_edge_holds_whatever_the_clocks_do(
    edges_max: int, asks: list[tuple[int, int, int, int]]
) -> None:
    """Labels that last as long as they like, clocks that stand still: what a label may have is counted by label."""
    found = rule("at_each_edge: 50/s", "{rate: 50/s}", edges_max=edges_max)
    assert isinstance(found.limit, RateLimit) and found.at_each_edge is not None
    edges = [EachEdge(found.at_each_edge) for _ in range(edges_max)]
    admitted: dict[int, int] = {}
    epoch, now_ns = 0, 0
    for place, cost, pause_ms, labels in asks:
        epoch, now_ns = epoch + labels, now_ns + pause_ms * 1_000_000
        edge = edges[place % edges_max]
        if edge.admits(cost, epoch, now_ns):
            edge.take(cost, epoch, now_ns)
            admitted[epoch] = admitted.get(epoch, 0) + cost
    meter = Meter(found.limit, divided=False)
    for label in sorted(admitted):
        meter.record(label, admitted[label])
    bound = bound_of(found).units
    assert bound is not None and meter.worst <= bound
