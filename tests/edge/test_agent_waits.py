"""What the agent refuses by itself after the region refused, and that waiting as told is enough (design 4.1, 7)."""

from apportion.core.messages import Acquire, GroupAnswer
from tests.edge.by_hand import MS, attached, member, needs, over

FULL = 10_000_000
"""Backlog of `exact` (10/s, burst 10) without any room: 10 units of a period of a million ticks."""


def test_the_backlog_lets_the_edge_refuse_exactly() -> None:
    """The bucket is full: one unit fits after 100 ms, so the edge refuses it until then and asks again afterwards."""
    edge = attached()
    edge.waits(needs("exact"))
    edge.answer(GroupAnswer(0, (over(100, FULL),)))
    edge.poll(99)
    assert edge.ask(needs("exact")).reason == "over_limit"
    edge.poll(1)
    edge.waits(needs("exact"))


def test_a_smaller_cost_may_fit_earlier() -> None:
    """5 units do not fit for 500 ms; one unit is refused for 100 ms only, and 3 for 300."""
    edge = attached()
    edge.waits(needs("exact", 5))
    edge.answer(GroupAnswer(0, (over(500, FULL),)))
    edge.poll(100)
    edge.waits(needs("exact", 1))
    assert edge.ask(needs("exact", 3)).retry_after == 0.2
    assert edge.ask(needs("exact", 5)).retry_after == 0.4


def test_a_larger_cost_does_not_extend_what_a_smaller_one_was_told() -> None:
    """A pool refused 1 unit until the next quarter and then 40 units until the epoch's end: 1 unit waits as told."""
    edge = attached()
    edge.waits(needs("lease", 1), depart=False)
    edge.waits(needs("lease", 40), depart=False)
    edge.poll()
    edge.answer(GroupAnswer(0, (over(150, store=False),)), GroupAnswer(0, (over(900, store=False),)))
    assert edge.ask(needs("lease", 1)).retry_after == 0.15
    edge.poll(150)
    edge.waits(needs("lease", 1))


def test_a_refusal_holds_for_20_ms_at_least() -> None:
    """The region says 1 ms: refused here until 20 ms, and told so, or every request in overload would cross."""
    edge = attached()
    ticket = edge.waits(needs("exact"))
    edge.answer(GroupAnswer(0, (over(1, 9_010_000),)))
    assert edge.decisions()[ticket].retry_after == 0.02
    edge.poll(19)
    assert edge.ask(needs("exact")).retry_after == 0.001
    edge.poll(1)
    edge.waits(needs("exact"))


def test_waiting_as_told_here_is_enough_whatever_the_way_took() -> None:
    """The answer came 30 ms after the question; the region may have decided at its very end. Until 100 ms after the
    question one unit is surely impossible; who is refused meanwhile is told 100 ms after the answer.
    """
    edge = attached()
    edge.waits(needs("exact"))
    edge.poll(30)
    edge.answer(GroupAnswer(0, (over(100, FULL),)))
    edge.poll(10)
    assert edge.ask(needs("exact")).retry_after == 0.09
    edge.poll(60)
    edge.waits(needs("exact"))


def test_exhausted_stops_crossings_until_the_time_named() -> None:
    """A pool that is spent when late returns have come: no request crosses until the epoch's end."""
    edge = attached()
    edge.poll(860)
    edge.waits(needs("lease"))
    edge.answer(GroupAnswer(0, (over(140, store=False),)))
    for _ in range(4):
        edge.poll(30)
        assert not edge.ask(needs("lease")).allowed
    edge.poll(20)
    edge.waits(needs("lease"))
    assert len(edge.said(Acquire)) == 2


def test_a_slice_is_spent_although_the_pool_refused() -> None:
    """What the edge holds itself is not held back by what the region said of its pool."""
    edge = attached()
    edge.slices(lease=20)
    edge.waits(needs("lease", 20))
    edge.answer(GroupAnswer(0, (over(900, store=False),)))
    edge.poll(200)
    assert edge.ask(needs("lease", 2)).allowed


def test_an_admission_teaches_the_backlog_too() -> None:
    """After the last unit was admitted the edge knows that the next one needs 100 ms."""
    edge = attached()
    edge.waits(needs("exact", 10))
    edge.answer(GroupAnswer(1, (member(remaining=0, wait_ns=1000 * MS, backlog=FULL),)))
    assert edge.ask(needs("exact")).retry_after == 0.1


def test_a_peek_is_answered_by_the_region_even_in_overload() -> None:
    """A peek at cost 0 is never refused by what was said of charges."""
    edge = attached()
    edge.waits(needs("exact"))
    edge.answer(GroupAnswer(0, (over(100, FULL),)))
    edge.waits(needs("exact", 0))


def test_an_answer_that_came_too_late_still_teaches() -> None:
    """The request gave up after 100 ms; the answer at 150 ms says that the bucket is full."""
    edge = attached()
    edge.waits(needs("exact", 10))
    edge.poll(150)
    edge.answer(GroupAnswer(1, (member(backlog=FULL),)))
    assert edge.ask(needs("exact", 2)).retry_after == 0.2
