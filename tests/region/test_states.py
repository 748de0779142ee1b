"""What state a rule is in, from what happened: exact, bounded, degraded, advisory; and what its counters lost."""

import numpy as np

from apportion.core.limit import RateLimit
from apportion.core.messages import Hello, Leave, Register, Report
from apportion.core.rule import Rule
from apportion.region.remembering import MUTE_EPOCHS
from apportion.region.states import DEGRADED_EPOCHS, State, States, losses_of
from apportion.region.sums import SAID_EVERY, RuleSum
from tests.region.by_hand import EPOCH, NAMES, REGISTER, T0, ByHand, attached, declared, group


def rule(region: ByHand, name: str) -> Rule:
    """A rule in force."""
    return region.authority.versions.effective.rules["api", name]


def state(region: ByHand, name: str = "exact", bound: int | None = 0) -> tuple[State, str]:
    """What is said of a rule."""
    return States(region.authority, {}).of(rule(region, name), bound)


def degraded_report(region: ByHand, number: int, epoch: int, name: str, units: int) -> None:
    """An edge says that it spent units that nothing covered."""
    spent = np.array([units], np.uint64)
    ids, label = np.array([NAMES.index(name)], np.uint32), np.array([epoch], np.uint64)
    region.edge(
        1, Report(number, epoch, declared(), spent_ids=ids, spent_epoch=label, spent=spent, spent_degraded=spent)
    )


def test_a_rule_is_as_its_bound_says_while_all_is_well() -> None:
    """Never over, or over by something; where nothing bounds it, nothing is exact."""
    region = attached()
    assert [state(region, bound=bound) for bound in (0, 5, None)] == [
        (State.EXACT, ""),
        (State.BOUNDED, ""),
        (State.BOUNDED, ""),
    ]


def test_a_rule_is_degraded_while_edges_report_that_they_answered_by_stages() -> None:
    """This rule and no other, until reports without it have had the time to come."""
    region = attached()
    degraded_report(region, 1, EPOCH, "exact", 3)
    assert state(region) == (State.DEGRADED, "edges answered by when_unavailable")
    assert state(region, "lease") == (State.EXACT, "")
    region.pass_ms(1000 * DEGRADED_EPOCHS)
    assert state(region)[0] is State.DEGRADED
    region.pass_ms(1000)
    assert state(region) == (State.EXACT, "")


def test_a_rule_is_degraded_also_where_its_stages_refused_and_each_report_counts_once() -> None:
    """Late answers of an edge that is heard; sent again they are no more. A rule that nobody has is no one's name."""
    region = attached()
    for _ in range(2):
        told = (("api", "exact", 4), ("api", "made-up", 9))
        region.edge(1, Report(1, EPOCH, declared(), degraded=4, degraded_rules=told))
    assert state(region) == (State.DEGRADED, "edges answered by when_unavailable")
    assert state(region, "lease") == (State.EXACT, "")
    assert region.authority.desk.totals["api", "exact"].degraded_requests == 4
    assert ("api", "made-up") not in region.authority.desk.totals


def test_a_rule_is_degraded_while_an_edge_is_away_that_did_not_leave() -> None:
    """It may answer by stages, or may be dead: nobody knows. Back, or gone for long enough, all is well."""
    region = attached()
    region.close(1)
    assert state(region) == (State.DEGRADED, "not heard, and may answer by when_unavailable: edge-11")
    region.attach(2)
    assert state(region) == (State.EXACT, "")
    region.close(2)
    region.pass_ms(1000 * (MUTE_EPOCHS + 1))
    assert state(region) == (State.EXACT, "")
    region.attach(3)
    region.edge(3, Leave())
    assert state(region) == (State.EXACT, "")


def test_a_rule_is_degraded_while_the_store_does_not_answer() -> None:
    """Those that were asked for."""
    region = attached()
    region.failing = True
    region.ask(group(("exact", 1)))
    assert state(region) == (State.DEGRADED, "the store failed, and edges answered by when_unavailable")
    assert state(region, "small") == (State.EXACT, "")


def test_a_sum_above_the_bound_is_advisory_for_a_minute() -> None:
    """The bound did not hold, so something was lost that nobody counted on."""
    region = attached()
    sums = {("api", "exact"): RuleSum(worst=9, over=9, over_label=EPOCH)}
    why = (State.ADVISORY, "label 7 was 9 over, more than the bound of 5")
    assert States(region.authority, sums).of(rule(region, "exact"), 5) == why
    assert States(region.authority, sums).of(rule(region, "exact"), 9) == (State.BOUNDED, "")
    region.pass_ms(1000 * (SAID_EVERY + 1))
    assert States(region.authority, sums).of(rule(region, "exact"), 5) == (State.BOUNDED, "")


def test_an_edge_that_knows_an_earlier_life_shows_that_the_store_lost_what_it_had() -> None:
    """For as long as what was used then would still count: 10/s with a burst of 10 drains in a second."""
    region = ByHand()
    region.attach()
    limit = rule(region, "exact").limit
    assert isinstance(limit, RateLimit)
    assert losses_of(region.authority, rule(region, "exact"), limit) == []
    region.edge(2, Hello("edge-22", "here", 22, EPOCH - 1, 1))
    (lost,) = losses_of(region.authority, rule(region, "exact"), limit)
    assert lost.startswith(
        "restart: the store began anew in epoch 7, and what was used before is not counted: at most 10"
    )
    region.pass_ms(2000)
    assert losses_of(region.authority, rule(region, "exact"), limit) == []


def test_a_store_that_kept_its_register_lost_nothing() -> None:
    """However long the edge has been there."""
    region = ByHand(Register(anchor_epoch=EPOCH, anchor_ns=T0, last_ns=T0, run_id="run", highest=EPOCH - 1))
    region.edge(1, Hello("edge-22", "here", 22, EPOCH - 1, 1))
    assert region.authority.lost_epoch is None
    assert REGISTER.highest == 0
