"""The authority's books: reports, what they charge and who has not sent one, and units that come back."""

import numpy as np

from apportion.core.allocator_messages import Demand
from apportion.core.messages import Report, ReportAck, Return
from tests.region.by_hand import (
    ALLOCATOR,
    E1,
    EPOCH,
    ByHand,
    attached,
    group,
    refusals,
    store_key,
)

# --- reports


def test_a_report_is_acknowledged_once_it_is_in_the_rollup() -> None:
    """Not before the store has it; never when the store failed."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.store_waits = True
    region.report(1, 1, EPOCH + 1, ("lease", EPOCH + 1, 30))
    assert region.sent(ReportAck, 1) == []
    region.store_answers()
    assert region.sent(ReportAck, 1) == [ReportAck(1)]
    region.failing = True
    region.report(1, 2, EPOCH + 2)
    assert region.sent(ReportAck, 1) == [ReportAck(1)]


def test_a_report_resent_is_acknowledged_again_and_counted_once() -> None:
    """30 units, three times said, are 30 units; the allocators hear of its demand once."""
    region = attached()
    region.planned(e1=40, pool=60)
    for _ in range(3):
        region.report(1, 1, EPOCH + 1, ("lease", EPOCH + 1, 30), demand=70)
    assert region.rolled == {(store_key("lease"), EPOCH + 1): 30}
    assert region.sent(ReportAck, 1) == [ReportAck(1)] * 3
    assert [each.demand.tolist() for each in region.sent(Demand, ALLOCATOR)] == [[70]]


def test_more_reported_than_issued_is_charged_in_full_and_alarmed() -> None:
    """41 of a slice of 40."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.report(1, 1, EPOCH + 1, ("lease", EPOCH + 1, 41))
    assert region.rolled == {(store_key("lease"), EPOCH + 1): 41}
    assert "report_above_issued" in region.notes()


def test_a_report_of_a_rule_no_longer_in_force_is_taken_without_that_row() -> None:
    """It is acknowledged, or the edge would be refused with it for ever; its other rows count."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.report(1, 1, EPOCH + 1, ("free", EPOCH + 1, 5), ("lease", EPOCH + 1, 30))
    assert region.rolled == {(store_key("lease"), EPOCH + 1): 30}
    assert region.sent(ReportAck, 1) == [ReportAck(1)]
    assert "report_row_left_out" in region.notes()


def test_a_label_that_is_far_ahead_is_not_rolled_up() -> None:
    """Or one wrong report would push all labels out of a store that keeps the newest."""
    region = attached()
    region.report(1, 1, EPOCH, ("lease", 2**52, 5))
    assert region.rolled == {}
    assert region.sent(ReportAck, 1) == [ReportAck(1)]


def test_a_report_that_names_nothing_declared_is_refused() -> None:
    """A broken peer; it may come back."""
    region = attached()
    columns = (np.array([40], np.uint32), np.array([EPOCH], np.uint64), np.array([1], np.uint64))
    region.edge(1, Report(1, EPOCH, (), np.empty(0, np.uint32), np.empty(0, np.uint64), *columns))
    assert refusals(region) == [("report 1 names a quota never declared", True)]
    assert region.rolled == {}


def test_a_holder_that_did_not_report_counts_as_having_spent_what_it_was_issued() -> None:
    """40 units until its report of that epoch came, then none."""
    region = attached()
    region.planned(e1=40, pool=60)
    assert region.authority.ledger.unreported(EPOCH + 1, 1) == 40
    region.report(1, 1, EPOCH + 1, ("lease", EPOCH + 1, 30))
    assert region.authority.ledger.unreported(EPOCH + 1, 1) == 0


def test_the_report_of_the_last_epoch_counts_on_a_new_stream() -> None:
    """An edge that attached anew resends it; the allocators need its demand."""
    region = attached()
    region.lead()
    region.pass_ms(1000)
    region.close(1)
    region.attach(2, E1)
    region.report(2, 1, EPOCH, demand=70)
    assert [each.demand.tolist() for each in region.sent(Demand, ALLOCATOR)] == [[70]]


# --- what comes back


def give_back(region: ByHand, units: int, epoch: int = EPOCH + 1, number: int = 1, ready: int = 0) -> None:
    """The edge returns units of `lease`."""
    columns = np.array([1], np.uint32), np.array([units], np.uint64)
    region.edge(1, Return(epoch, *columns, number, np.array([ready], np.uint64)))


def test_returned_units_are_lent_again() -> None:
    """20 of 40 come back: at the epoch's end the pool has lent 80, not one more."""
    region = attached()
    region.planned(e1=40, pool=60)
    give_back(region, 20)
    lent = 0
    for number in range(100):
        region.pass_ms(9.9)
        lent += region.ask(group(("lease", 1), count=3), number=number + 2)[0].admitted
    assert lent in range(59, 81)
    pool = region.authority.lending.plans[EPOCH + 1]
    assert pool.parts == {1: 60}


def test_units_of_the_next_epoch_come_back_to_its_pool() -> None:
    """Before it has begun."""
    region = attached()
    region.lead()
    region.claim(EPOCH + 1)
    region.plan(e1=40, pool=60)
    give_back(region, 40)
    assert region.authority.lending.plans[EPOCH + 1].parts == {1: 100}
    assert region.authority.ledger.issued_to(EPOCH + 1, E1, 1) == 0


def test_more_cannot_be_returned_than_was_issued() -> None:
    """41 of 40, or the same 40 twice: refused, and the pool has what it had."""
    region = attached()
    region.planned(e1=40, pool=60)
    give_back(region, 41)
    assert refusals(region) == [("more was returned than was issued", True)]
    give_back(region, 40, number=2)
    give_back(region, 40, number=3)
    assert len(refusals(region)) == 2
    pool = region.authority.table.by_id(1)
    assert pool is not None and pool.pool is not None
    assert pool.pool.units == 100


def test_a_copy_of_a_return_changes_nothing() -> None:
    """20 of 40 come back once, whatever arrives twice."""
    region = attached()
    region.planned(e1=40, pool=60)
    give_back(region, 20)
    give_back(region, 20)
    pool = region.authority.table.by_id(1)
    assert pool is not None and pool.pool is not None
    assert pool.pool.units == 80
    assert region.authority.ledger.issued_to(EPOCH + 1, E1, 1) == 20
    assert refusals(region) == []


def test_the_level_comes_back_with_the_units() -> None:
    """A fresh pool of 60 has nothing yet; of the 40 that come back 10 can be lent at once, and are."""
    region = attached()
    region.planned(e1=40, pool=60)
    give_back(region, 40, ready=10)
    assert region.ask(group(("lease", 1), count=30), number=2)[0].admitted == 10


def test_allocators_hear_at_once_what_an_edge_kept() -> None:
    """The next epoch is divided before this one is reported. What comes back of a past label tells nothing."""
    region = attached()
    region.planned(e1=40, pool=60)
    give_back(region, 25)
    told = region.sent(Demand, ALLOCATOR)[-1]
    assert (told.holder, told.epoch, told.demand.tolist(), told.early) == (E1, EPOCH + 1, [15], True)
    region.pass_ms(1000)
    give_back(region, 1, number=2)
    assert sum(each.early for each in region.sent(Demand, ALLOCATOR)) == 1


def test_units_of_a_past_epoch_are_void() -> None:
    """They come too late to be lent."""
    region = attached()
    region.planned(e1=40, pool=60)
    region.pass_ms(1000)
    give_back(region, 40)
    assert refusals(region) == []
    assert region.authority.lending.plans[EPOCH + 1].parts == {1: 60}
