"""The agent: what it decides from its own hand, what crosses, and that a request is charged everywhere or nowhere."""

import pytest

from apportion.core.decision import Scope
from apportion.core.messages import Acquire, GroupAnswer, Lent, Outcome, Report
from tests.edge.by_hand import EPOCH, MS, ByHand, attached, member, needs, over, quota


def test_a_request_that_no_rule_limits_is_allowed() -> None:
    """Nothing applies, or only an unlimited rule: allowed at once, nothing crosses, even at the largest cost."""
    edge = attached()
    assert edge.ask().allowed
    assert edge.ask(needs("free", 2**64 - 1)).allowed
    edge.poll(50)
    assert edge.said(Acquire) == []


def test_nothing_applies_even_before_any_region_was_heard() -> None:
    """An edge that was never attached has no reason to refuse what no rule limits."""
    assert ByHand().ask().allowed


def test_before_any_region_was_heard_rules_deny() -> None:
    """Nobody who may decide: refused as unavailable, marked degraded, retry in a second."""
    decision = ByHand().ask(needs("lease"))
    assert (decision.allowed, decision.reason, decision.degraded, decision.retry_after) == (
        False,
        "unavailable",
        True,
        1.0,
    )


def test_a_slice_is_spent_without_a_crossing() -> None:
    """40 units for the epoch, half of it gone: a request for 3 is answered here and charged under the slice's label."""
    edge = attached()
    edge.slices(lease=40)
    edge.poll(500)
    decision = edge.ask(needs("lease", 3))
    (verdict,) = decision.verdicts
    assert (verdict.allowed, verdict.charged, verdict.epoch, verdict.scope) == (True, True, EPOCH, Scope.EDGE)
    assert verdict.remaining == 17  # depth 40 x 50 / 100 = 20, full by now, less 3
    edge.poll()
    assert edge.said(Acquire) == []


def test_units_of_a_slice_are_void_once_its_epoch_has_passed() -> None:
    """A request of epoch 8 crosses although most of the slice of 7 is unspent."""
    edge = attached()
    edge.slices(lease=40)
    edge.poll(1001)
    edge.waits(needs("lease"))
    assert len(edge.said(Acquire)) == 1


def test_a_second_copy_of_slices_gives_nothing() -> None:
    """The first slice for (quota, epoch) wins; a copy after spending, even a larger one, changes nothing."""
    edge = attached()
    edge.slices(lease=10)
    edge.poll(990)
    for _ in range(5):
        assert edge.ask(needs("lease")).allowed
    edge.slices(lease=100)
    edge.poll(5)
    edge.waits(needs("lease", 5))  # depth 5 of a part of 10, now empty


def test_a_region_rule_crosses_each_time() -> None:
    """The region's answer is the decision, with its numbers and its label."""
    edge = attached()
    ticket = edge.waits(needs("exact", 2))
    edge.answer(GroupAnswer(1, (member(remaining=7, backlog=3_000_000, epoch=8),)))
    decision = edge.decisions()[ticket]
    (verdict,) = decision.verdicts
    assert (decision.allowed, decision.remaining, decision.remaining_scope) == (True, 7, "region")
    assert (verdict.charged, verdict.epoch) == (True, 8)
    assert decision.reset_after == pytest.approx(0.3)


def test_requests_that_are_alike_cross_as_one_group() -> None:
    """Three of one kind and one of another: two groups, in order of arrival."""
    edge = attached()
    for cost in (1, 1, 2, 1):
        edge.waits(needs("exact", cost), depart=False)
    edge.poll()
    (acquire,) = edge.said(Acquire)
    assert [(group.count, group.members[0].cost) for group in acquire.groups] == [(3, 1), (1, 2)]


def test_one_crossing_is_under_way_and_the_rest_goes_with_the_next() -> None:
    """What arrives while an answer is awaited leaves with the step that takes it."""
    edge = attached()
    edge.waits(needs("exact"))
    edge.waits(needs("exact"))
    assert len(edge.said(Acquire)) == 1
    edge.answer(GroupAnswer(1, (member(),)))
    assert [acquire.number for acquire in edge.said(Acquire)] == [2, 4]


def test_of_a_group_the_first_are_admitted() -> None:
    """2 of 3 passed: the last one is refused, and the remaining of the first counts the second's charge."""
    edge = attached()
    tickets = [edge.waits(needs("exact"), depart=False) for _ in range(3)]
    edge.poll()
    edge.answer(GroupAnswer(2, (over(70, backlog=10_000_000),)))
    decisions = edge.decisions()
    assert [decisions[ticket].allowed for ticket in tickets] == [True, True, False]
    assert [decisions[ticket].remaining for ticket in tickets[:2]] == [1, 0]
    assert decisions[tickets[2]].retry_after == 0.07


def test_peeks_that_are_alike_all_get_the_one_answer() -> None:
    """Three peeks with room for one unit: nothing is charged, so all three would pass."""
    edge = attached()
    tickets = [edge.waits(needs("exact"), peek=True, depart=False) for _ in range(3)]
    edge.poll()
    assert [(group.count, group.peek) for group in edge.last(Acquire).groups] == [(1, True)]
    edge.answer(GroupAnswer(1, (member(remaining=1, backlog=9_000_000),)))
    for ticket in tickets:
        decision = edge.decisions()[ticket]
        assert (decision.allowed, decision.remaining, decision.verdicts[0].charged) == (True, 1, False)


def test_a_peek_at_a_slice_takes_nothing() -> None:
    """Peeked, and asked with a cost of 0: allowed, not charged, no demand."""
    edge = attached()
    edge.slices(lease=10)
    edge.poll(900)
    assert edge.ask(needs("lease", 4), peek=True).remaining == 5
    assert edge.ask(needs("lease", 0)).verdicts[0].charged is False
    assert edge.ask(needs("lease", 5)).allowed
    edge.poll(101)
    assert edge.last(Report).demand.tolist() == [5]
    assert edge.last(Report).spent.tolist() == [5]


def test_a_refusal_by_one_rule_returns_what_another_had_reserved() -> None:
    """The lease's 5 units are back in hand when the region refuses the other rule, for the next request."""
    edge = attached()
    edge.slices(lease=10)
    edge.poll(900)
    ticket = edge.waits(needs("exact", 10), needs("lease", 5))
    edge.answer(GroupAnswer(0, (over(500, backlog=10_000_000),)))
    decision = edge.decisions()[ticket]
    assert (decision.allowed, decision.rule) == (False, "exact")
    assert [verdict.charged for verdict in decision.verdicts] == [False, False]
    assert edge.ask(needs("lease", 5)).allowed


def test_reserved_units_are_spent_when_the_region_admits() -> None:
    """Both rules are charged, the lease under the label of its slice although the answer comes in the next epoch."""
    edge = attached()
    edge.slices(lease=10)
    edge.poll(950)
    ticket = edge.waits(needs("exact"), needs("lease", 5))
    edge.poll(60)
    edge.answer(GroupAnswer(1, (member(epoch=EPOCH + 1),)))
    decision = edge.decisions()[ticket]
    assert [(verdict.charged, verdict.epoch) for verdict in decision.verdicts] == [(True, 8), (True, 7)]
    edge.poll(940)
    reported = [(report.spent_epoch.tolist(), report.spent.tolist()) for report in edge.said(Report)]
    assert ([7], [5]) in reported


def test_a_refusal_here_crosses_nothing() -> None:
    """A rule that refuses by what is known here: the other rule is not asked, and loses nothing."""
    edge = attached()
    edge.slices(lease=10)
    edge.poll(900)
    assert edge.ask(needs("exact", 11), needs("lease", 5)).reason == "impossible"
    edge.poll()
    assert edge.said(Acquire) == []
    assert edge.ask(needs("lease", 5)).allowed


def test_demand_is_what_no_other_rule_refused() -> None:
    """A sole refuser counts its own cost; the rule beside it does not."""
    edge = attached()
    ticket = edge.waits(needs("exact", 10), needs("lease", 5))
    edge.answer(GroupAnswer(0, (over(500, backlog=10_000_000), member(store=False))))
    assert not edge.decisions()[ticket].allowed
    edge.poll(1001)
    report = edge.last(Report)
    names = {name.id: name.quota.rule for message in edge.said(Acquire) for name in message.names}
    assert {names[at]: units for at, units in zip(report.demand_ids.tolist(), report.demand.tolist(), strict=True)} == {
        "exact": 10
    }


@pytest.mark.parametrize("name, cost", [("exact", 11), ("lease", 51), ("small", 6), ("exact", 2**64 - 1), ("zero", 1)])
def test_a_cost_above_the_burst_is_impossible(name: str, cost: int) -> None:
    """Refused at once without a promise, and nothing is counted, at any cost that the wire can carry."""
    edge = attached()
    decision = edge.ask(needs(name, cost))
    assert (decision.allowed, decision.reason, decision.retry_after) == (False, "impossible", None)
    edge.poll(1001)
    assert edge.last(Report).demand.tolist() == []


def test_units_lent_ahead_are_spent_without_a_crossing_and_reported() -> None:
    """4 units came with an answer: two requests for 2 are answered here, under the lent label, and reported with it.

    Asked for ahead is what the last 50 ms offered beyond what waits: nothing at first, then the request before.
    """
    edge = attached()
    edge.waits(needs("lease", 2))
    assert edge.last(Acquire).ahead == ()
    edge.answer(GroupAnswer(1, (member(store=False),)))
    edge.waits(needs("lease", 2))
    acquire = edge.last(Acquire)
    assert [units for _, units in acquire.ahead] == [2]
    held = acquire.groups[0].members[0].quota
    edge.answer(GroupAnswer(1, (member(store=False),)), lent=(Lent(held, EPOCH, 4),))
    assert edge.ask(needs("lease", 2)).verdicts[0].epoch == EPOCH
    assert edge.ask(needs("lease", 2)).allowed
    edge.poll(1001)
    report = edge.last(Report)
    assert (report.spent_epoch.tolist(), report.spent.tolist()) == ([7], [8])


def test_units_lent_ahead_arrive_although_the_request_has_given_up() -> None:
    """An answer after the deadline still brings what was lent; the requests it admitted are not spent."""
    edge = attached()
    ticket = edge.waits(needs("lease", 2))
    edge.poll(101)
    assert edge.decisions()[ticket].reason == "unavailable"
    held = edge.last(Acquire).groups[0].members[0].quota
    edge.answer(GroupAnswer(1, (member(store=False),)), lent=(Lent(held, EPOCH, 4),))
    assert edge.ask(needs("lease", 4)).allowed
    edge.poll(900)
    assert edge.last(Report).spent.tolist() == [4]


def test_an_answer_said_twice_changes_nothing() -> None:
    """A copy of an answer neither settles, lends nor spends again."""
    edge = attached()
    edge.waits(needs("lease", 2))
    held = edge.last(Acquire).groups[0].members[0].quota
    for _ in range(3):
        edge.answer(GroupAnswer(1, (member(store=False),)), number=2, lent=(Lent(held, EPOCH, 4),))
    assert edge.ask(needs("lease", 4)).allowed
    edge.waits(needs("lease", 1))
    edge.decisions()


def test_what_the_store_decided_is_not_reported() -> None:
    """It is rolled up where it was made (design 5.8)."""
    edge = attached()
    edge.waits(needs("exact"))
    edge.answer(GroupAnswer(1, (member(),)))
    edge.poll(1001)
    report = edge.last(Report)
    assert (report.demand.tolist(), report.spent.tolist(), report.crossings) == ([1], [], 1)


def test_no_plan_is_no_answer_until_the_deadline() -> None:
    """Asked again every 20 ms; after 100 ms the rule's `deny` answers, degraded."""
    edge = attached()
    ticket = edge.waits(needs("lease"))
    for _ in range(5):
        edge.answer(GroupAnswer(0, (member(Outcome.NO_PLAN),)))
        assert edge.decisions() == {}
        edge.poll(20)
    decision = edge.decisions()[ticket]
    assert (decision.reason, decision.degraded) == ("unavailable", True)
    assert len(edge.said(Acquire)) == 5
    edge.poll(1000)
    assert edge.last(Report).degraded == 1


def test_the_plan_may_come_before_the_deadline() -> None:
    """The second question is answered, and the request with it."""
    edge = attached()
    ticket = edge.waits(needs("lease"))
    edge.answer(GroupAnswer(0, (member(Outcome.NO_PLAN),)))
    edge.poll(20)
    edge.answer(GroupAnswer(1, (member(store=False),)))
    assert edge.decisions()[ticket].allowed


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN_QUOTA, Outcome.UNAVAILABLE])
def test_an_answer_that_decides_nothing_is_an_outage(outcome: Outcome) -> None:
    """The region does not know the quota, or its store failed: denied at once, degraded."""
    edge = attached()
    ticket = edge.waits(needs("exact"))
    edge.answer(GroupAnswer(0, (member(outcome),)))
    decision = edge.decisions()[ticket]
    assert (decision.allowed, decision.reason, decision.degraded) == (False, "unavailable", True)


def test_a_quota_without_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More keys than are held: KEYS_FULL, never a fresh allowance."""
    monkeypatch.setattr("apportion.edge.holdings.HOLDINGS_MAX", 1)
    edge = attached()
    edge.waits(needs("exact"))
    assert edge.ask(needs("exact", key="other")).reason == "keys_full"


def test_wake_comes_with_the_deadline_and_not_each_millisecond() -> None:
    """A request that waits for an answer costs no polling."""
    edge = attached()
    edge.waits(needs("exact"))
    assert edge.agent.wake_ns(edge.now_ns) == edge.now_ns + 100 * MS
    edge.answer(GroupAnswer(0, (member(Outcome.NO_PLAN),)))
    assert edge.agent.wake_ns(edge.now_ns) == edge.now_ns + 20 * MS


def test_names_are_declared_once_on_a_stream_and_again_on_the_next() -> None:
    """The region forgets names with the stream."""
    edge = attached()
    edge.waits(needs("exact"))
    edge.answer(GroupAnswer(1, (member(),)))
    edge.waits(needs("exact"))
    edge.lose()
    edge.attach()
    edge.waits(needs("exact"))
    assert [[name.quota for name in each.names] for each in edge.said(Acquire)] == [
        [quota("exact")],
        [],
        [quota("exact")],
    ]
