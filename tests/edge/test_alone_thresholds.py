"""Rules with thresholds in an edge without a region: one location, every limit local."""

from __future__ import annotations

from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone

TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: both, match: {b: x}, key: [], limit: {rate: 100/s}, enforce: edge+region, when_unavailable: [deny]}
  - {name: each, match: {c: x}, key: [], limit: {rate: 100/s}, enforce: edge, at_each_edge: 30/s, wrong_costs: noise}
  - {name: slack, match: {a: x}, key: [], limit: {rate: 100/s}, enforce: edge, slack: 10%, wrong_costs: noise}
"""
RULES = parse_rules([("r", TEXT)])


def over_a_second(name: str) -> int:
    """What is admitted of 1000 requests, evenly over one second."""
    instants = iter(range(0, 1_000_000_000, 1_000_000))
    alone = Alone(RULES, lambda: next(instants))
    rule = RULES.rule("api", name)
    assert rule is not None
    return sum(alone.decide((Application(rule, (), 1),), False).allowed for _ in range(1000))


def test_each_edge_s_own_rate_holds_for_the_one_edge() -> None:
    """30/s and the burst of 25 that the limit has."""
    assert over_a_second("each") == 25 + 29


def test_the_whole_limit_is_the_one_edge_s_where_it_would_be_divided() -> None:
    """100/s and its burst of 25: there is nobody to share with, and no slack to need."""
    assert over_a_second("slack") == over_a_second("both") == 25 + 99
