"""What an edge gives back early: once, of what it will not use, its own right lowered first."""

import numpy as np
import pytest

from apportion.core.messages import GroupAnswer, QuotaName, Return, Slices
from tests.edge.by_hand import EPOCH, MS, ByHand, attached, member, needs, over, quota

K = EPOCH + 1
"""The first epoch with slices."""


def sliced(units: int = 100) -> ByHand:
    """An edge that the region knows `lease` of, at the start of epoch K with a slice of it."""
    edge = attached()
    edge.waits(needs("lease"))
    edge.answer(GroupAnswer(1, (member(store=False),)))
    edge.slices(K, lease=units)
    edge.poll(1000)
    return edge


def returned(edge: ByHand) -> list[tuple[int, list[int]]]:
    """Epoch and units of each return."""
    return [(each.epoch, each.units.tolist()) for each in edge.said(Return)]


def test_at_a_fifth_of_the_epoch_what_exceeds_the_projected_use_and_half_goes_back() -> None:
    """4 of 100 in 200 ms, 6 at most as likely: 30 by the end, 45 are kept, 55 go back, and not a moment earlier."""
    edge = sliced()
    edge.poll(199)
    for _ in range(4):
        edge.ask(needs("lease"))
    assert returned(edge) == []
    edge.poll(1)
    assert returned(edge) == [(K, [55])]
    assert edge.last(Return).number == 1


def test_the_edge_wakes_at_that_instant() -> None:
    """Nobody has to ask for it."""
    edge = sliced()
    edge.poll(150)
    assert edge.agent.wake_ns(edge.now_ns) == edge.now_ns + 50 * MS


def test_many_slices_are_judged_a_thousand_at_a_time() -> None:
    """Each once; in between, requests are answered, and the edge is called again at once."""
    edge, total = attached(), 2_300
    for at in range(total):
        assert edge.agent.ask((needs("lease", key=f"k{at}"),), edge.now_ns)
    edge.poll()
    names = tuple(QuotaName(at, quota("lease", f"k{at}")) for at in range(total))
    edge.hear(Slices(K, 1, 1, names, np.arange(total, dtype=np.uint32), np.full(total, 20, np.uint64)))
    edge.poll(1000)
    edge.poll(200)
    counts = [len(each.ids) for each in edge.said(Return)]
    while edge.agent.wake_ns(edge.now_ns) == edge.now_ns:
        edge.poll(0.001)
        counts.append(len(edge.last(Return).ids))
    assert counts == [1000, 1000, 300]
    assert len({identity for each in edge.said(Return) for identity in each.ids.tolist()}) == total


def test_the_right_is_lowered_before_anything_is_said() -> None:
    """Of what went back nothing can be spent any more: of 100, 45 in all."""
    edge = sliced()
    edge.poll(199)
    for _ in range(4):
        edge.ask(needs("lease"))
    edge.poll(1)
    spent = 4
    for _ in range(790):
        edge.poll(1)
        while next(iter(edge.agent._holdings)).in_hand(K, edge.now_ns):
            spent += edge.ask(needs("lease")).allowed
    assert spent <= 45


def test_what_is_used_stays() -> None:
    """14 of 100 in 200 ms: 85 by the end, and half as much again is all of it."""
    edge = sliced()
    edge.poll(199)
    for _ in range(14):
        edge.ask(needs("lease"))
    edge.poll(1)
    assert returned(edge) == []


def test_an_unused_slice_goes_back_whole_once_and_again_in_the_next_epoch() -> None:
    """With the level that had filled: a fifth of it."""
    edge = sliced()
    for _ in range(7):
        edge.hear(edge.tick())
        edge.poll(100)
    assert (returned(edge), edge.last(Return).ready.tolist()) == ([(K, [100])], [20])
    edge.slices(K + 1, lease=100)
    for _ in range(13):
        edge.hear(edge.tick())
        edge.poll(100)
    assert returned(edge) == [(K, [100]), (K + 1, [100])]
    assert edge.last(Return).number == 2


def test_a_use_that_no_request_can_make_is_none() -> None:
    """Requests of 45 units find a slice of 40 useless, so others get it."""
    edge = sliced(40)
    edge.poll(100)
    edge.waits(needs("lease", 45))
    edge.poll(100)
    assert returned(edge) == [(K, [40])]


def test_an_edge_that_was_held_up_returns_nothing() -> None:
    """It heard no requests because it did not listen."""
    edge = sliced()
    edge.poll(100)
    edge.poll(400)
    edge.poll(10)
    assert returned(edge) == []


def small(units: int) -> ByHand:
    """An edge at the start of epoch K + 1, of which it has `units` on purpose: more than its base demand."""
    edge = sliced()
    edge.hear(
        Slices(K + 1, 1, 1, (), np.zeros(1, np.uint32), np.array([units], np.uint64), kept=np.zeros(1, np.uint32))
    )
    for _ in range(10):
        edge.hear(edge.tick())
        edge.poll(100)
    edge.commands.clear()
    return edge


def later(edge: ByHand, until_ms: int, asks: tuple[int, ...] = (), cost: int = 1) -> ByHand:
    """Let the epoch go on until then, with a request at each of those tenths."""
    for at in range(0, until_ms, 100):
        if at // 100 in asks:
            edge.ask(needs("lease", cost))
        edge.hear(edge.tick())
        edge.poll(100)
    return edge


def test_what_is_more_than_base_demand_on_purpose_is_kept_until_late() -> None:
    """A small edge in overload was given room for its spread (design 5.9). At four fifths 3 of 20 were used; one root
    of them and one more are as likely, and a quarter of that is kept. Of 15 its level had no room for 3.
    """
    edge = small(20)
    assert returned(later(edge, 700, asks=(2, 4, 6))) == []
    assert returned(later(edge, 100)) == [(K + 1, [12])]
    assert returned(later(edge, 200)) == [(K + 1, [12])]


def test_a_small_edge_that_was_asked_for_nothing_yet_keeps_a_unit() -> None:
    """One that is asked once an epoch may be asked at its end."""
    edge = later(small(5), 800)
    assert returned(edge) == [(K + 1, [4])]
    assert edge.ask(needs("lease")).allowed


def test_a_small_edge_keeps_the_largest_cost_it_was_asked_for() -> None:
    """Of 28, 20 in one request an epoch; its level had no room for 3 of the others."""
    edge = small(28)
    edge.waits(needs("lease", 20))
    assert returned(later(edge, 800)) == [(K + 1, [5])]


def test_a_slice_that_came_late_is_not_judged() -> None:
    """It has not been there for a fifth of the epoch."""
    edge = attached()
    edge.waits(needs("lease"))
    edge.answer(GroupAnswer(1, (member(store=False),)))
    edge.poll(100)
    edge.slices(EPOCH, lease=100)
    edge.poll(150)
    assert returned(edge) == []


def test_nothing_goes_back_on_another_stream_than_the_slice_came_by() -> None:
    """Neither early nor on leaving, though the region sends the column again."""
    edge = sliced()
    edge.poll(100)
    edge.lose()
    edge.attach(left_ms=900, epoch=K)
    edge.slices(K, lease=100)
    edge.poll(100)
    edge.commands += edge.agent.leave(edge.now_ns)
    assert returned(edge) == []


def test_what_went_back_is_no_share_either() -> None:
    """The region goes away just then: others may have spent what came back, so of 20 units 5 are left for the stage."""
    edge = sliced(20)
    edge.poll(200)
    holding = next(iter(edge.agent._holdings))
    assert returned(edge) == [(K, [20])]
    assert holding.room(K, 20) == 0
    assert holding.room(K + 1, 20) == 20


@pytest.mark.parametrize("at_ms, again_ms", [(100, 250), (300, 500), (600, 850), (900, 1000)])
def test_a_spent_pool_is_asked_again_when_returns_have_come(at_ms: int, again_ms: int) -> None:
    """Callers are told 20 ms into the next epoch, when a unit has come for sure; one at the quarter asks anyhow."""
    edge = attached()
    edge.poll(at_ms)
    ticket = edge.waits(needs("lease"))
    edge.answer(GroupAnswer(0, (over(1000 - at_ms, store=False),)))
    assert edge.decisions()[ticket].retry_after == (1020 - at_ms) / 1000
    edge.poll(again_ms - at_ms - 1)
    assert edge.ask(needs("lease")).retry_after == (1020 - again_ms + 1) / 1000
    edge.poll(1)
    edge.waits(needs("lease"))


def test_a_bucket_in_the_store_is_not_asked_earlier() -> None:
    """Only time drains it."""
    edge = attached()
    edge.poll(100)
    edge.waits(needs("exact"))
    edge.answer(GroupAnswer(0, (over(600),)))
    edge.poll(400)
    assert not edge.ask(needs("exact")).allowed
