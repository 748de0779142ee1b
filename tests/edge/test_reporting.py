"""Reports: everything once, under its own label, kept until the region has it."""

import pytest

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import GroupAnswer, Report
from apportion.core.space_saving import Counted
from apportion.edge.holding import Holding
from apportion.edge.ids import Ids
from apportion.edge.reporting import UNACKNOWLEDGED_MAX, Reports, encode
from tests.edge.by_hand import attached, needs, over, quota, rule


def holding(key: str = "k", ids: Ids | None = None) -> Holding:
    """A holding of the rule `lease`."""
    limit = rule("lease").limit
    assert isinstance(limit, RateLimit)
    return Holding(ids or Ids(), rule("lease"), limit, quota("lease", key))


def test_demand_and_spending_are_summed_by_quota_and_label() -> None:
    """Two requests of one quota make one row; what settled late is a row of its own."""
    reports, held = Reports(), holding()
    reports.demand(7, held, 3)
    reports.demand(7, held, 4)
    reports.spend(held, 6, 1)
    reports.spend(held, 7, 3)
    reports.spend(held, 7, 4)
    reports.close(7)
    (pending,) = reports.to_send(0)
    assert pending.demand == ((held, 7),)
    assert pending.spent == ((held, 6, 1, 0), (held, 7, 7, 0))


def test_what_belongs_to_a_later_epoch_stays_open() -> None:
    """Closing 7 leaves demand and spending of 8 for the next report."""
    reports, held = Reports(), holding()
    reports.demand(7, held, 1)
    reports.demand(8, held, 2)
    reports.spend(held, 8, 2)
    reports.close(7)
    reports.close(8)
    first, second = reports.to_send(0)
    assert (first.demand, first.spent) == (((held, 1),), ())
    assert (second.demand, second.spent) == (((held, 2),), ((held, 8, 2, 0),))


def test_what_settles_after_the_report_goes_with_the_next_under_its_own_label() -> None:
    """Demand of a reported epoch counts in the open one; spending keeps its label."""
    reports, held = Reports(), holding()
    reports.started(7)
    reports.close(7)
    reports.demand(7, held, 2)
    reports.spend(held, 7, 2)
    reports.close(8)
    late = reports.to_send(0)[1]
    assert (late.epoch, late.demand, late.spent) == (8, ((held, 2),), ((held, 7, 2, 0),))


def test_reports_are_numbered_in_a_row_and_counts_start_anew() -> None:
    """Crossings and degraded answers belong to one report."""
    reports = Reports()
    reports.started(7)
    reports.cross()
    reports.degrade([("api", "lease")])
    reports.degrade([("api", "exact"), ("api", "lease")])
    reports.close(7)
    reports.close(8)
    first, second = reports.to_send(0)
    assert (first.number, first.crossings, first.degraded) == (1, 1, 2)
    assert first.degraded_rules == (("api", "lease", 2), ("api", "exact", 1))
    assert (second.number, second.crossings, second.degraded, second.degraded_rules) == (2, 0, 0, ())


def test_a_report_is_sent_again_after_a_second_and_at_once_on_a_new_stream() -> None:
    """Until it is acknowledged."""
    reports = Reports()
    reports.started(7)
    reports.close(7)
    assert len(reports.to_send(0)) == 1
    assert reports.to_send(EPOCH_NS - 1) == []
    assert len(reports.to_send(EPOCH_NS)) == 1
    reports.new_stream()
    assert len(reports.to_send(EPOCH_NS + 1)) == 1
    reports.acknowledge(1)
    reports.new_stream()
    assert reports.to_send(2 * EPOCH_NS) == []


def test_of_many_that_the_region_cannot_take_few_are_sent_again_the_next_as_those_are_taken() -> None:
    """Else what an outage of the store costs would grow with its length: 100 epochs, 10 reports a second."""
    reports = Reports()
    for epoch in range(1, 101):
        reports.started(epoch)
        reports.close(epoch)
        reports.to_send(0)
    assert [each.number for each in reports.to_send(EPOCH_NS)] == list(range(1, 11))
    assert reports.to_send(EPOCH_NS) == []
    for number in range(1, 8):
        reports.acknowledge(number)
    assert [each.number for each in reports.to_send(EPOCH_NS)] == list(range(11, 18))


def test_an_acknowledgement_of_nothing_is_nothing() -> None:
    """A copy of one, or one for a number never given."""
    reports = Reports()
    reports.acknowledge(5)
    assert reports.to_send(0) == []


def test_so_many_are_kept_for_a_region_that_is_away() -> None:
    """120; the oldest is given up."""
    reports = Reports()
    reports.started(1)
    for epoch in range(1, UNACKNOWLEDGED_MAX + 3):
        reports.close(epoch)
    assert [each.epoch for each in reports.to_send(0)] == list(range(3, UNACKNOWLEDGED_MAX + 3))


def test_so_many_rows_are_kept_and_the_latest_report_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more the oldest reports are given up, and counted."""
    monkeypatch.setattr("apportion.edge.reporting.PENDING_ROWS_MAX", 10)
    reports, held = Reports(), [holding(str(number)) for number in range(11)]
    for epoch, count in enumerate((4, 3, 2, 2, 11), 1):
        for each in held[:count]:
            reports.demand(epoch, each, 1)
        reports.close(epoch)
        kept = [pending.epoch for pending in reports.to_send(epoch * EPOCH_NS)]
        assert (kept, reports.given_up) == {
            1: ([1], 0),
            2: ([1, 2], 0),
            3: ([1, 2, 3], 0),
            4: ([2, 3, 4], 1),
            5: ([5], 4),
        }[epoch]


def test_an_epoch_is_closed_once() -> None:
    """Closing an earlier one than the open one is a mistake of the caller."""
    reports = Reports()
    reports.started(7)
    reports.close(7)
    with pytest.raises(AssertionError):
        reports.close(7)


def test_an_encoded_report_declares_each_quota_once_on_a_stream() -> None:
    """Again on the next one; the largest amounts fit."""
    reports, ids = Reports(), Ids()
    one, other = holding("k", ids), holding("other", ids)
    reports.demand(7, one, 2**53 - 1)
    reports.spend(one, 7, 2**53 - 1)
    reports.spend(other, 7, 1)
    reports.close(7)
    (pending,) = reports.to_send(0)
    first, second, third = encode(pending, 1), encode(pending, 1), encode(pending, 2)
    assert [name.id for name in first.names] == [0, 1]
    assert second.names == ()
    assert third.names == first.names
    assert (first.demand_ids.tolist(), first.demand.tolist()) == ([0], [2**53 - 1])
    assert (first.spent_ids.tolist(), first.spent_epoch.tolist(), first.spent.tolist()) == (
        [0, 1],
        [7, 7],
        [2**53 - 1, 1],
    )


def test_a_report_says_of_which_quotas_most_was_refused_and_the_next_starts_anew() -> None:
    """The heaviest first; a cost that could never pass counts as the largest that could, one of a blocked key as 1."""
    reports = Reports()
    reports.started(7)
    for application in (
        needs("lease", 5),
        needs("zero", 9),
        needs("lease", 2**60, "b"),
        needs("lease", 2),
        needs("zero"),
    ):
        reports.refuse(application)
    reports.close(7)
    reports.close(8)
    first, second = (encode(pending, 1) for pending in reports.to_send(0))
    assert first.most_refused == (
        Counted(quota("lease", "b"), 50, 0),
        Counted(quota("lease"), 7, 0),
        Counted(quota("zero"), 2, 0),
    )
    assert second.most_refused == ()


def test_of_more_quotas_than_can_be_counted_the_heaviest_are_told() -> None:
    """A thousand keys refused once each do not hide the one that was refused a hundred times."""
    reports = Reports()
    reports.started(7)
    for number in range(1_000):
        reports.refuse(needs("zero", 1, str(number)))
        if number % 10 == 0:
            reports.refuse(needs("zero", 1, "heavy"))
    reports.close(7)
    (pending,) = reports.to_send(0)
    assert len(pending.most_refused) == 20
    heavy = pending.most_refused[0]
    assert heavy.key == quota("zero", "heavy")
    assert heavy.units - heavy.error <= 100 <= heavy.units
    assert heavy.error <= 1_100 // 256


def test_an_agent_counts_what_each_rule_refused_and_no_peek() -> None:
    """Here or in the region, also of a quota of which nothing is ever admitted; not what another rule let pass."""
    edge = attached()
    for _ in range(3):
        assert not edge.ask(needs("zero"), needs("lease")).allowed
    edge.ask(needs("zero"), peek=True)
    ticket = edge.waits(needs("exact", 4))
    edge.answer(GroupAnswer(0, (over(100),)))
    assert not edge.decisions()[ticket].allowed
    edge.poll(1001)
    told = edge.last(Report).most_refused
    assert told == (Counted(quota("exact"), 4, 0), Counted(quota("zero"), 3, 0))
