"""What the region makes of rules with a threshold at each edge."""

from __future__ import annotations

import numpy as np

from apportion.core.allocator_messages import Column, Plan
from apportion.core.limit import RateLimit
from apportion.core.messages import Ids, Quota
from apportion.core.rules_file import parse_rules
from apportion.region.plans import HeldPlan, hold_plan
from apportion.region.quotas import KnownQuota, QuotaTable
from apportion.region.thresholds import OverThreshold, for_leader, is_grant, refused_with_room, rights
from apportion.region.versions import Lookup

SECOND = 1_000_000_000
TEXT = """
version: 1
domain: api
edges_max: 10
rules:
  - {name: alone, match: {a: x}, key: [], limit: {rate: 1000/s}, enforce: edge, slack: 10%, wrong_costs: noise}
  - {name: both, match: {b: x}, key: [], limit: {rate: 100/s}, enforce: edge+region, when_unavailable: [deny]}
  - {name: each, match: {c: x}, key: [], limit: {rate: 100/s}, enforce: edge, at_each_edge: 10/s, wrong_costs: noise}
"""


def known(table: QuotaTable, name: str) -> KnownQuota:
    """The one quota of a rule."""
    found = table.find(Quota("api", name, b""), 1)
    assert found is not None
    return found


def test_a_plan_of_edge_sums_to_the_limit_with_slack() -> None:
    """1100 of 1000 with 10 %; one unit more is refused, and so is a rule that nobody divides."""
    rules = Lookup(parse_rules([("r", TEXT)]))
    table = QuotaTable(rules)
    alone, both, each = (known(table, name).id for name in ("alone", "both", "each"))

    def held(*rows: tuple[int, int]) -> HeldPlan | str:
        ids, units = np.array([at for at, _ in rows], np.uint32), np.array([units for _, units in rows], np.uint64)
        plan = Plan(1, 5, 1, (), (Column(7, ids, units),))

        def same(named: Ids) -> Ids:
            return named

        return hold_plan(plan, 9, same, table, rules)

    assert isinstance(held((alone, 1100), (both, 100)), HeldPlan)
    assert held((alone, 1101)) == "alone: 1101 units planned, 1100 are to be"
    assert held((both, 101)) == "both: 101 units planned, 100 are to be"
    assert held((each, 100)) == f"quota {each} is not divided by the rules in force"


def test_what_an_edge_may_have_spent_by_itself() -> None:
    """Its share where it was given less; its rate and burst; of `edge+region` a slice is no right at all."""
    rules = parse_rules([("r", TEXT)])
    alone, both, each = (rules.rule("api", name) for name in ("alone", "both", "each"))
    assert alone is not None and both is not None and each is not None
    assert (rights(alone, 0), rights(alone, 300)) == (110, 300)
    assert rights(each, 0) == 10 + 25
    assert rights(both, 0) == 0
    assert [is_grant(rule) for rule in (alone, both, each)] == [True, False, True]


def test_a_key_below_its_share_everywhere_never_reaches_the_allocator() -> None:
    """Unless it is divided already: then who asks little must be known, too."""
    rules = Lookup(parse_rules([("r", TEXT)]))
    table = QuotaTable(rules)
    quotas = [known(table, name) for name in ("alone", "both", "each")]
    demand = np.array([110, 1, 1000], np.uint64)
    assert for_leader(quotas, demand, {}).tolist() == [False, True, False]
    assert for_leader(quotas, demand + np.uint64(1), {}).tolist() == [True, True, False]
    plan = HeldPlan(5, 1, 1, {}, {}, frozenset([quotas[0].id]))
    assert for_leader(quotas, demand, {5: plan}).tolist() == [True, True, False]


def test_a_refusal_at_the_edge_counts_as_too_early_where_the_label_ended_with_room() -> None:
    """100/s, burst 25: a full label has none, one of 90 has 25, after a burst there is what has drained."""
    limit = RateLimit(100, SECOND, 25)
    admitted = {1: 125, 2: 100, 3: 90, 4: 100}
    refused = {1: 50, 2: 50, 3: 50, 4: 3, 9: 40}
    assert refused_with_room(limit, admitted, refused) == {3: 10, 4: 3, 9: 25}


def test_refusals_are_kept_by_label_and_forgotten() -> None:
    """As long as the rollup is."""
    over = OverThreshold()
    over.add(5, b"k", 3)
    over.add(5, b"k", 4)
    over.add(6, b"k", 1)
    assert over.of(b"k") == {5: 7, 6: 1}
    over.forget(6)
    assert over.of(b"k") == {6: 1}


def test_what_was_refused_above_a_threshold_is_kept_in_so_many_rows() -> None:
    """Of more the oldest labels go, and what is added later is there."""
    refused = OverThreshold()
    refused.ROWS_MAX = 10
    for epoch in range(5):
        for key in (b"one", b"two", b"three"):
            refused.add(epoch, key, 1)
            refused.add(epoch, key, 1)
    assert refused.of(b"one") == {2: 2, 3: 2, 4: 2}
    refused.forget(4)
    for number in range(7):
        refused.add(5, b"key-%d" % number, 1)
    assert sorted(refused.of(b"two")) == [4]
