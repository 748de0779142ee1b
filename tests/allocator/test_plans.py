"""What a leader's plans hold: who is in them, of which quotas, and under which names (design 5.4, 5.5, 5.8, 5.9)."""

from dataclasses import replace

import numpy as np
import pytest

from apportion.allocator.names import EPOCHS_RESTED
from apportion.allocator.planning import Limits
from apportion.core.allocator_messages import Demand, Plan
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Quota, QuotaName, Rules
from apportion.core.rules_file import parse_rules
from tests.allocator.world import E1, E2, E3, MS, REPLICA, RULES, World, leader, names_of, quota, units_of

WEB, APP = quota("web"), quota("app")


def plans_until(world: World, seconds: int, edges: dict[int, dict[Quota, int]]) -> list[Plan]:
    """The plans of a leader that ran alone until `seconds`, with these edges attached and reporting all the while."""
    world.edges = {edge: world.edges.get(edge, REPLICA) for edge in edges}
    world.demand = edges
    one = leader()
    for link in world.replicas or {1: REPLICA}:
        world.connect(one, link)
    world.run(seconds * EPOCH_NS + 600 * MS, one)
    return [plan for link, plan in world.plans if link == 1]


def given(plans: list[Plan]) -> dict[int, dict[Quota, int]]:
    """What each holder gets by the last of these plans."""
    names = names_of(*plans)
    return {column.holder: units_of(plans[-1], column.holder, names) for column in plans[-1].columns}


def test_each_edge_gets_its_base_demand_and_the_replica_the_pool() -> None:
    """The columns of one quota add up to Q_k."""
    plans = plans_until(World(), 12, {E1: {WEB: 600}, E2: {WEB: 100}})
    assert given(plans) == {E1: {WEB: 600}, E2: {WEB: 100}, REPLICA: {WEB: 300}}


def test_in_overload_edges_get_the_fair_level() -> None:
    """950 of 1000 by max-min, 50 in the pool; the small edge has a unit more than it ever asked for, and keeps it."""
    plans = plans_until(World(), 12, {E1: {WEB: 5000}, E2: {WEB: 5000}, E3: {WEB: 50}})
    assert given(plans) == {E1: {WEB: 450}, E2: {WEB: 449}, E3: {WEB: 51}, REPLICA: {WEB: 50}}
    assert {column.holder: len(column.kept) for column in plans[-1].columns} == {E1: 0, E2: 0, E3: 1, REPLICA: 0}


def test_what_an_edge_kept_early_counts_in_the_next_division_only() -> None:
    """E1 returned all but 30 of its 600 in epoch 13, so it will use 20: the next plan gives that, the one after goes
    by its report.
    """
    world, one = World(edges={E1: REPLICA}, demand={E1: {WEB: 600}}), leader()
    world.connect(one)
    world.run(13 * EPOCH_NS + 300 * MS, one)
    columns = np.zeros(1, np.uint32), np.array([30], np.uint64)
    world.receive(one, Demand(E1, world.epoch, (QuotaName(0, WEB),), *columns, early=True))
    world.run(14 * EPOCH_NS + 600 * MS, one)
    by_name = names_of(*(plan for _, plan in world.plans))
    assert [units_of(plan, E1, by_name) for _, plan in world.plans[-3:]] == [{WEB: 600}, {WEB: 20}, {WEB: 600}]


def test_only_quotas_of_divided_rules_with_demand_are_planned() -> None:
    """10/s is too small to divide, `region` is not divided, and what nobody asks for is lent directly."""
    demand = {WEB: 5, quota("t", "small"): 5, quota("u", "exact"): 5, quota("idle"): 0, quota("x", "unknown"): 5}
    plans = plans_until(World(), 12, {E1: demand})
    assert given(plans) == {E1: {WEB: 5}, REPLICA: {WEB: 995}}


def test_without_demand_the_plan_is_empty_but_sent() -> None:
    """Only with the whole plan in hand may a replica lend directly."""
    plans = plans_until(World(), 12, {})
    assert [plan.epoch for plan in plans] == list(range(3, 14))
    assert given(plans) == {}


def test_a_quota_idle_for_eight_ticks_leaves_the_plan() -> None:
    """It is in the plan as long as the history knows demand for it."""
    world = World()
    plans_until(world, 12, {E1: {WEB: 5, APP: 7}})
    world.plans.clear()
    world, one = World(edges={E1: REPLICA}, demand={E1: {WEB: 5, APP: 7}}), leader()
    world.connect(one)
    world.run(12 * EPOCH_NS, one)
    world.demand = {E1: {WEB: 5}}
    world.run(19 * EPOCH_NS + 600 * MS, one)
    assert given([plan for _, plan in world.plans])[REPLICA] == {WEB: 995, APP: 1000}
    world.run(20 * EPOCH_NS + 600 * MS, one)
    assert given([plan for _, plan in world.plans])[REPLICA] == {WEB: 995}


def test_an_edge_that_is_not_attached_gets_nothing() -> None:
    """Its slice would lie idle."""
    world, one = World(edges={E1: REPLICA, E2: REPLICA}), leader()
    world.demand = {E1: {WEB: 100}, E2: {WEB: 100}}
    world.connect(one)
    world.run(12 * EPOCH_NS, one)
    del world.edges[E2]
    world.receive(one, world.governance())
    world.run(12 * EPOCH_NS + 600 * MS, one)
    assert given([plan for _, plan in world.plans]) == {E1: {WEB: 100}, REPLICA: {WEB: 900}}


def test_an_edge_with_three_missing_reports_gets_nothing() -> None:
    """With two it still does, unchanged: a missing report is not a zero."""
    world, one = World(edges={E1: REPLICA, E2: REPLICA}), leader()
    world.demand = {E1: {WEB: 100}, E2: {WEB: 100}}
    world.connect(one)
    world.run(12 * EPOCH_NS, one)  # the reports of epoch 11 have come
    world.demand = {E1: {WEB: 100}}
    world.run(14 * EPOCH_NS + 600 * MS, one)
    assert given([plan for _, plan in world.plans])[E2] == {WEB: 100}
    world.run(15 * EPOCH_NS + 600 * MS, one)
    assert E2 not in given([plan for _, plan in world.plans])


def test_the_pool_is_split_by_the_demand_attached_to_each_replica() -> None:
    """Three quarters of the demand are attached to the second replica."""
    world = World(replicas={1: REPLICA, 2: 901}, edges={E1: REPLICA, E2: 901})
    plans = plans_until(world, 4, {E1: {WEB: 5000}, E2: {WEB: 15000}})
    assert given(plans)[REPLICA] == {WEB: 25}  # both count as 1000, the whole quota
    world = World(replicas={1: REPLICA, 2: 901}, edges={E1: REPLICA, E2: 901})
    plans = plans_until(world, 4, {E1: {WEB: 100}, E2: {WEB: 300}})
    assert {REPLICA: given(plans)[REPLICA], 901: given(plans)[901]} == {REPLICA: {WEB: 150}, 901: {WEB: 450}}


def test_a_new_edge_is_served_from_the_pool_until_its_demand_recurs() -> None:
    """Its past is known to be empty, so its base is 0 for seven ticks."""
    world, one = World(edges={E1: REPLICA}, demand={E1: {WEB: 100}}), leader()
    world.connect(one)
    world.run(12 * EPOCH_NS, one)
    world.edges[E2] = REPLICA
    world.demand[E2] = {WEB: 200}
    world.run(20 * EPOCH_NS + 600 * MS, one)  # reports of epochs 12 to 19 have come: eight
    by_epoch = {plan.epoch: plan for _, plan in world.plans}
    names = names_of(*by_epoch.values())
    assert units_of(by_epoch[20], E2, names) == {}
    assert units_of(by_epoch[21], E2, names) == {WEB: 200}


def test_edges_that_ran_before_the_allocator_are_sliced_from_their_first_report() -> None:
    """A cold start of the allocator costs one report interval, not eight."""
    world, one = World(edges={E1: REPLICA}), leader()
    world.connect(one)
    world.lead(one)
    world.report(one, E1, {WEB: 400})
    world.run(world.now_ns + EPOCH_NS, one)
    assert given([plan for _, plan in world.plans]) == {E1: {WEB: 400}, REPLICA: {WEB: 600}}


def test_a_standby_that_takes_over_divides_as_the_leader_did() -> None:
    """Same demand, same history, same slices."""
    world, one, two = World(edges={E1: REPLICA}, demand={E1: {WEB: 400}}), leader("one", 1), leader("two", 2)
    world.connect(one)
    world.connect(two)
    world.run(14 * EPOCH_NS + 600 * MS, one, two)
    before = given([plan for _, plan in world.plans])
    world.plans.clear()
    world.run(18 * EPOCH_NS, two)
    assert {plan.generation for _, plan in world.plans} == {2}
    assert given([plan for _, plan in world.plans]) == before


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_name_is_declared_once_on_each_link() -> None:
    """With the first plan that uses it, not again."""
    world = World(replicas={1: REPLICA, 2: REPLICA})
    plans_until(world, 12, {E1: {WEB: 5}})
    for link in (1, 2):
        declared = [name.quota for at, plan in world.plans if at == link for name in plan.names]
        assert declared == [WEB]


def test_each_link_calls_quotas_as_it_likes() -> None:
    """The same id means different quotas on two links."""
    world, one = World(edges={E1: REPLICA, E2: REPLICA}), leader()
    world.connect(one)
    world.connect(one, link=2)
    world.lead(one)
    column = (np.array([3], np.uint32), np.array([50], np.uint64))
    world.receive(one, Demand(E1, world.epoch - 1, (QuotaName(3, WEB),), *column), link=1)
    world.receive(one, Demand(E2, world.epoch - 1, (QuotaName(3, APP),), *column), link=2)
    world.run(world.now_ns + EPOCH_NS, one)
    plans = [plan for link, plan in world.plans if link == 1]
    assert (given(plans)[E1], given(plans)[E2]) == ({WEB: 50}, {APP: 50})


def test_an_id_declared_again_means_the_new_quota() -> None:
    """From that message on."""
    world, one = World(edges={E1: REPLICA}), leader()
    world.connect(one)
    world.lead(one)
    column = (np.array([3], np.uint32), np.array([50], np.uint64))
    world.receive(one, Demand(E1, world.epoch - 1, (QuotaName(3, WEB),), *column))
    world.run(world.now_ns + EPOCH_NS, one)
    world.receive(one, Demand(E1, world.epoch - 1, (QuotaName(3, APP),), *column))
    world.run(world.now_ns + EPOCH_NS, one)
    assert given([plan for _, plan in world.plans])[REPLICA] == {WEB: 1000, APP: 1000}


def test_an_id_that_was_never_declared_is_ignored() -> None:
    """So is one that no array should be made for."""
    world, one = World(edges={E1: REPLICA}), leader()
    world.connect(one)
    world.lead(one)
    ids = np.array([7, 2**32 - 1], np.uint32)
    names = (QuotaName(2**32 - 1, WEB),)
    world.receive(one, Demand(E1, world.epoch - 1, names, ids, np.array([50, 50], np.uint64)))
    world.run(world.now_ns + EPOCH_NS, one)
    assert given([plan for _, plan in world.plans]) == {}
    assert [event.fields["names"] for event in world.named("names_refused")] == [1]


def test_an_id_is_used_again_only_long_after_its_quota_went_idle() -> None:
    """And is then declared anew, so that no replica takes one quota for another."""
    world, one = World(edges={E1: REPLICA}, demand={E1: {WEB: 50}}), leader()
    world.connect(one)
    world.run(10 * EPOCH_NS, one)
    world.demand = {E1: {}}
    world.run((10 + 8 + EPOCHS_RESTED + 3) * EPOCH_NS, one)
    world.plans.clear()
    world.demand = {E1: {APP: 60}}
    world.run(world.now_ns + 10 * EPOCH_NS, one)
    plans = [plan for _, plan in world.plans]
    assert [name for plan in plans for name in plan.names] == [QuotaName(0, APP)]
    assert given(plans)[REPLICA].keys() == {APP}


def test_a_report_from_the_future_is_ignored() -> None:
    """It would push what is known out of the history."""
    world, one = World(edges={E1: REPLICA}), leader()
    world.connect(one)
    world.report(one, E1, {WEB: 50}, epoch=world.epoch + 2)
    assert len(world.named("demand_ignored")) == 1


# --- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [("rate: 1000/s", "rate: 2000/s"), ("enforce: lease", "enforce: region")])
def test_new_rules_decide_from_the_next_division_on(change: tuple[str, str]) -> None:
    """A new limit is divided; a rule that is not divided any more leaves the plan."""
    world, one = World(edges={E1: REPLICA}, demand={E1: {WEB: 100}}), leader()
    world.connect(one)
    world.run(12 * EPOCH_NS, one)
    world.receive(one, Rules(2, (("rules.yaml", RULES.replace(*change)),)))
    world.run(12 * EPOCH_NS + 600 * MS, one)
    plans = [plan for _, plan in world.plans]
    assert plans[-1].rules_version == 2
    expected = {E1: {WEB: 100}, REPLICA: {WEB: 1900}} if "2000" in change[1] else {}
    assert given(plans) == expected


def test_a_rule_that_becomes_divided_enters_the_plan() -> None:
    """Demand that was of no interest before is of interest now."""
    small = quota("t", "small")
    world, one = World(edges={E1: REPLICA}, demand={E1: {small: 7}}), leader()
    world.connect(one)
    world.run(12 * EPOCH_NS, one)
    world.receive(one, Rules(2, (("rules.yaml", RULES.replace("rate: 10/s", "rate: 100/s")),)))
    world.run(13 * EPOCH_NS + 600 * MS, one)
    assert given([plan for _, plan in world.plans])[REPLICA].keys() == {small}


def test_a_rate_beyond_what_a_plan_can_name_is_lent_directly() -> None:
    """2^53 units an epoch are not divided; one less is."""
    ruleset = parse_rules([("rules.yaml", RULES)])
    rule = ruleset.rule("api", "search")
    assert rule is not None
    for units, divides in ((2**53, False), (2**53 - 2, True)):
        huge = replace(rule, limit=RateLimit(units, EPOCH_NS, 5))
        limits = Limits(replace(ruleset, domains={"api": replace(ruleset.domains["api"], rules=(huge,))}))
        assert limits.divides(WEB) is divides
