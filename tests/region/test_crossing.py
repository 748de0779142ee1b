"""A crossing at the region: pools and store together, all or nothing, whatever the order and whatever fails."""

import pytest

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Acquire, Lent, MemberAnswer, Outcome
from apportion.region.events import Consume
from tests.region.by_hand import EPOCH, MS, ByHand, declared, group, store_key


def attached() -> ByHand:
    """A region with one edge that has named its quotas, in epoch 7, which is direct."""
    region = ByHand()
    region.attach()
    region.ask(group(("exact", 0), ("lease", 0)))
    return region


def planned(after_ms: float = 500, **units: int) -> ByHand:
    """The same in the planned epoch 8, so long after its start; the pool is worth 60 unless given."""
    region = attached()
    region.planned(**(units or {"e1": 40, "pool": 60}))
    region.pass_ms(after_ms)
    return region


def outcomes(members: tuple[MemberAnswer, ...]) -> list[Outcome]:
    """Outcomes of a group's members."""
    return [member.outcome for member in members]


def pool_units(region: ByHand) -> int:
    """What is left of the pool."""
    known = region.authority.table.by_id(1)
    assert known is not None and known.pool is not None
    return known.pool.units


def test_a_region_rule_is_decided_by_the_store() -> None:
    """10/s, burst 10: 10 of 12 pass; the rest may in 100 ms; the label is that of the store's time."""
    (answer,) = attached().ask(group(("exact", 1), count=12))
    assert answer.admitted == 10
    (member,) = answer.members
    assert (member.outcome, member.epoch, member.remaining, member.wait_ns, member.store) == (
        Outcome.OVER_LIMIT,
        EPOCH,
        0,
        100 * MS,
        True,
    )
    assert member.backlog == 10_000_000


def test_a_pool_lends_what_its_level_holds() -> None:
    """A part of 60 with depth 30, half an epoch old: 30 of 40 pass, marked as lent; 5 more, a 20th of the limit's 100,
    are worth another question.
    """
    region = planned()
    (answer,) = region.ask(group(("lease", 1), count=40))
    assert answer.admitted == 30
    (member,) = answer.members
    assert (member.outcome, member.epoch, member.store, member.backlog) == (
        Outcome.OVER_LIMIT,
        EPOCH + 1,
        False,
        None,
    )
    assert member.wait_ns == 1000 * MS * 5 // 60
    assert pool_units(region) == 30


def test_a_pool_that_is_spent_says_exhausted_until_the_epochs_end() -> None:
    """Nothing of this label comes any more."""
    region = planned(after_ms=900, e1=90, pool=10)
    region.ask(group(("lease", 1), count=9))
    (answer,) = region.ask(group(("lease", 2)))
    assert (answer.admitted, answer.members[0].wait_ns) == (0, 200 * MS)


def test_a_cost_above_the_depth_is_told_when_the_part_has_filled_it() -> None:
    """40 units a second of pool, smoothed to 10: a cost of 30 is let in once, and again after 0.75 s, not never."""
    region = planned(after_ms=0, e1=60, pool=40)
    region.ask(group(("lease", 30)))
    region.pass_ms(250)
    (early,) = region.ask(group(("lease", 30)))
    assert (early.admitted, early.members[0].wait_ns) == (0, 500 * MS)
    region.pass_ms(500)
    (answer,) = region.ask(group(("lease", 30)))
    assert answer.admitted == 1


def test_a_pool_never_lends_more_than_its_part() -> None:
    """Asked for 5 each millisecond of an epoch: all but the unit whose time comes with its end, and it is on record."""
    region = planned(after_ms=0)
    lent = 0
    for number in range(999):
        lent += region.ask(group(("lease", 1), count=5), number=number + 2)[0].admitted
        region.now_ns += MS
    assert lent == 59
    assert region.authority.ledger.issued_to(EPOCH + 1, 11, 1) == 40 + 59


def test_units_ahead_come_from_the_same_pool_after_what_waits() -> None:
    """30 in hand: 20 wait, 10 of 25 are lent ahead."""
    region = planned()
    region.ask(group(("lease", 20)), ahead=((1, 25),))
    assert region.answers()[-1].lent == (Lent(1, EPOCH + 1, 10),)
    assert pool_units(region) == 30


@pytest.mark.parametrize("name", ["exact", "small", "free"])
def test_nothing_is_lent_ahead_of_what_is_not_divided(name: str) -> None:
    """Only a pool lends ahead."""
    region = planned()
    region.ask(group(("lease", 1)), ahead=((("exact", "lease", "small", "free").index(name), 5),))
    assert region.answers()[-1].lent == ()


def test_nothing_is_lent_ahead_in_a_direct_epoch() -> None:
    """The store decides each request."""
    region = attached()
    region.ask(group(("lease", 1)), ahead=((1, 5),))
    assert region.answers()[-1].lent == ()


def test_a_refusal_by_the_store_gives_the_pool_its_units_back() -> None:
    """10 pass both; the 20 units reserved for the others are in the pool again."""
    region = planned()
    (answer,) = region.ask(group(("exact", 1), ("lease", 2), count=15))
    assert answer.admitted == 10
    assert outcomes(answer.members) == [Outcome.OVER_LIMIT, Outcome.ADMITTED]
    assert pool_units(region) == 40


def test_a_refusal_by_the_pool_charges_the_store_nothing() -> None:
    """The store is only asked how it stands."""
    region = planned(e1=100, pool=0)
    (answer,) = region.ask(group(("exact", 3), ("lease", 1)))
    assert answer.admitted == 0
    assert outcomes(answer.members) == [Outcome.ADMITTED, Outcome.OVER_LIMIT]
    assert answer.members[0].remaining == 10
    assert region.ask(group(("exact", 10)))[0].admitted == 1


def test_the_store_charges_no_more_than_the_pool_can_serve() -> None:
    """The pool has 4 at once: of 8 requests 4 pass, and the store has charged 4."""
    region = planned(e1=96, pool=4, after_ms=999)
    (answer,) = region.ask(group(("exact", 1), ("lease", 1), count=8))
    assert answer.admitted == 3  # the fourth unit's time comes with the end of the epoch
    assert region.ask(group(("exact", 7)))[0].admitted == 1
    assert region.ask(group(("exact", 1)))[0].admitted == 0


def test_a_peek_takes_nothing_anywhere() -> None:
    """Of pool and store alike."""
    region = planned()
    (answer,) = region.ask(group(("exact", 5), ("lease", 20), peek=True))
    assert answer.admitted == 1
    assert [member.remaining for member in answer.members] == [10, 30]
    assert pool_units(region) == 60
    assert region.ask(group(("exact", 10)))[0].admitted == 1


def test_a_cost_of_zero_is_a_look_beside_what_is_charged() -> None:
    """The lease is charged, the other rule is not."""
    region = planned()
    (answer,) = region.ask(group(("exact", 0), ("lease", 3)))
    assert answer.admitted == 1
    assert answer.members[0].remaining == 10
    assert pool_units(region) == 57


def test_a_member_without_answer_leaves_the_others_alone() -> None:
    """An unknown quota in the group: nothing is charged, nothing is asked of the store, and no member decides."""
    region = planned()
    (answer,) = region.ask(group(("exact", 1), ("free", 1), ("lease", 1)))
    assert answer.admitted == 0
    assert outcomes(answer.members) == [Outcome.NO_PLAN, Outcome.UNKNOWN_QUOTA, Outcome.ADMITTED]
    assert pool_units(region) == 60
    assert region.ask(group(("exact", 10)))[0].admitted == 1


def test_a_store_that_fails_is_no_answer_and_keeps_no_units() -> None:
    """Unknown outcome for its member; the pool has its units back."""
    region = planned()
    region.failing = True
    (answer,) = region.ask(group(("exact", 1), ("lease", 5)))
    assert answer.admitted == 0
    assert outcomes(answer.members)[0] is Outcome.UNAVAILABLE
    assert pool_units(region) == 60


def test_a_cost_above_the_burst_is_impossible() -> None:
    """Also beside others, and at the largest cost there is."""
    for cost in (11, 2**64 - 1):
        (answer,) = attached().ask(group(("exact", cost)))
        assert (answer.admitted, answer.members[0].outcome, answer.members[0].wait_ns) == (
            0,
            Outcome.IMPOSSIBLE,
            None,
        )


def test_groups_are_decided_in_order() -> None:
    """The first takes 8 of 10; the second finds 2."""
    first, second = attached().ask(group(("exact", 8)), group(("exact", 1), count=5))
    assert (first.admitted, second.admitted) == (1, 2)


def test_what_the_store_answers_in_the_next_epoch_does_not_touch_its_pool() -> None:
    """Reserved under 8, refused in 9: the units of 8 are void, the pool of 9 has what its plan says."""
    region = planned(after_ms=990)
    region.claim(EPOCH + 2)
    region.plan(EPOCH + 2, e1=40, pool=60)
    region.ask(group(("exact", 10)))
    region.store_waits = True
    before = len(region.answers())
    region.edge(1, Acquire(50, declared(), (group(("exact", 10), ("lease", 5)),)))
    region.pass_ms(20)
    region.store_answers()
    assert len(region.answers()) == before + 1
    (answer,) = region.answers()[-1].groups
    assert answer.admitted == 0
    region.pass_ms(10)
    region.ask(group(("lease", 0)))
    assert pool_units(region) == 60


def test_an_answer_for_a_stream_that_ended_goes_nowhere() -> None:
    """What was charged stays charged, and the region lives."""
    region = planned()
    region.store_waits = True
    before = len(region.answers())
    region.edge(1, Acquire(50, declared(), (group(("exact", 4)),)))
    region.close(1)
    region.store_answers()
    assert len(region.answers()) == before
    region.attach(2, 22)
    assert region.ask(group(("exact", 7)), session=2)[0].admitted == 0
    assert region.ask(group(("exact", 6)), session=2)[0].admitted == 1


def test_the_store_is_given_the_epochs_anchor() -> None:
    """It labels by its own time."""
    region = attached()
    consumed = [each for each in region.commands if isinstance(each, Consume)][-1]
    assert (consumed.anchor.epoch, consumed.anchor.at_ns) == (EPOCH, 100 * EPOCH_NS)
    assert consumed.groups[0].members[0].store_key == store_key("exact")
