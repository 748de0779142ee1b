"""Who may lend a divided quota under which label (design 5.5, 5.6): pool, store, or no answer."""

from dataclasses import replace

import pytest

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Acquire, EpochKind, EpochMark, Group, GroupAnswer, Member, Outcome
from tests.region.by_hand import E1, E2, EPOCH, REGISTER, ByHand, group


def attached(region: ByHand) -> ByHand:
    """With one edge."""
    region.attach()
    return region


def answer(region: ByHand, cost: int = 1, count: int = 1) -> GroupAnswer:
    """A request for the divided lease."""
    return region.ask(group(("lease", cost), count=count))[0]


def test_an_epoch_that_nobody_claimed_is_marked_direct_and_lent_from_the_store() -> None:
    """Bucket and label together: burst 50 at once, and under the label no more than Q_k = 100."""
    region = attached(ByHand())
    assert region.register.mark(EPOCH) == EpochMark(EPOCH, EpochKind.DIRECT)
    admitted = 0
    for _ in range(99):
        admitted += answer(region, count=50).admitted
        region.now_ns += EPOCH_NS // 100
    assert admitted == 100
    refused = answer(region).members[0]
    assert (refused.outcome, refused.store, refused.epoch, refused.remaining) == (
        Outcome.OVER_LIMIT,
        True,
        EPOCH,
        0,
    )
    assert refused.wait_ns == EPOCH_NS // 100


def test_until_the_mark_is_written_there_is_no_answer() -> None:
    """The store has not said yes yet."""
    region = ByHand()
    region.store_waits = True
    region.pass_ms(1000)
    region.attach()
    region.store_waits = False
    assert answer(region).members[0].outcome is Outcome.NO_PLAN
    region.store_answers()
    assert answer(region).admitted == 1


def test_a_claimed_epoch_has_no_answer_until_its_plan_is_here() -> None:
    """Then the pool lends."""
    region = attached(ByHand())
    answer(region)
    region.lead()
    region.claim(EPOCH + 1)
    region.pass_ms(1500)
    assert answer(region).members[0].outcome is Outcome.NO_PLAN
    region.plan(e1=40, pool=60)
    late = answer(region)
    assert (late.admitted, late.members[0].store) == (1, False)


def test_what_the_plan_does_not_name_is_lent_directly() -> None:
    """With the whole plan in hand and the quota not in it."""
    region = attached(ByHand())
    answer(region)
    region.planned()
    direct = answer(region)
    assert (direct.admitted, direct.members[0].store, direct.members[0].epoch) == (1, True, EPOCH + 1)


def test_a_quota_of_the_plan_without_a_part_for_this_replica_lends_nothing() -> None:
    """All of it is held elsewhere: exhausted, and never direct."""
    region = attached(ByHand())
    answer(region)
    region.planned(e1=50, e2=50)
    assert (answer(region).admitted, answer(region).members[0].store) == (0, False)


def test_a_void_epoch_lends_nothing() -> None:
    """It was passed over."""
    marks = (EpochMark(EPOCH, EpochKind.VOID),)
    region = attached(ByHand(replace(REGISTER, highest=EPOCH, marks=marks)))
    assert answer(region).members[0].outcome is Outcome.NO_PLAN


@pytest.mark.parametrize("kind", [EpochKind.DIRECT, EpochKind.PLANNED])
def test_a_region_lends_nothing_directly_under_a_label_of_its_former_life(kind: EpochKind) -> None:
    """The counters of that label were in memory; the next epoch is lent as ever."""
    marks = (EpochMark(EPOCH, kind, generation=1 if kind is EpochKind.PLANNED else 0),)
    region = attached(ByHand(replace(REGISTER, generation=1, highest=EPOCH, marks=marks)))
    assert answer(region).members[0].outcome is Outcome.NO_PLAN
    region.pass_ms(1000)
    assert answer(region).admitted == 1


def test_a_label_that_was_claimed_ahead_before_the_restart_is_of_the_former_life_too() -> None:
    """Epoch 8 was claimed in 7: with its plan in hand, what that does not name has no answer in 8."""
    marks = (EpochMark(EPOCH, EpochKind.DIRECT), EpochMark(EPOCH + 1, EpochKind.PLANNED, 1))
    region = attached(ByHand(replace(REGISTER, generation=1, highest=EPOCH + 1, marks=marks)))
    region.lead(2)
    region.plan(EPOCH + 1)
    region.pass_ms(1000)
    assert region.authority.lending.plans[EPOCH + 1].named == frozenset()
    assert answer(region).members[0].outcome is Outcome.NO_PLAN


def test_the_plan_of_a_former_life_gives_the_region_no_part_but_edges_their_slices() -> None:
    """The leader sends it again: its columns hold, the part was another incarnation's."""
    marks = (EpochMark(EPOCH, EpochKind.PLANNED, 1),)
    region = attached(ByHand(replace(REGISTER, generation=1, highest=EPOCH, marks=marks)))
    region.lead(2)
    region.plan(EPOCH, e1=40, e2=60)
    assert region.authority.lending.plans[EPOCH].column(E1)[1].tolist() == [40]
    assert region.authority.lending.plans[EPOCH].column(E2)[1].tolist() == [60]
    assert (answer(region).admitted, answer(region).members[0].store) == (0, False)


def test_an_undivided_quota_needs_no_plan_and_no_leader() -> None:
    """5/s is below 20: the bucket alone decides, in a claimed epoch without plan as in any other."""
    region = attached(ByHand())
    region.lead()
    region.claim(EPOCH + 1)
    region.pass_ms(1000)
    small = region.ask(group(("small", 1), count=6))[0]
    assert (small.admitted, small.members[0].store, small.members[0].epoch) == (5, True, EPOCH + 1)


def test_a_quota_never_declared_or_without_a_limit_is_unknown() -> None:
    """The edge has other rules than the region."""
    region = attached(ByHand())
    region.edge(1, Acquire(1, (), (Group(1, (Member(77, 1),)),)))
    assert region.answers()[-1].groups[0].members[0].outcome is Outcome.UNKNOWN_QUOTA
    assert region.ask(group(("free", 1)))[0].members[0].outcome is Outcome.UNKNOWN_QUOTA


def test_a_store_that_could_not_mark_leaves_the_epoch_without_answers() -> None:
    """And the next epoch is tried anew."""
    region = attached(ByHand())
    region.failing = True
    region.pass_ms(1000)
    region.failing = False
    assert answer(region).members[0].outcome is Outcome.NO_PLAN
    region.pass_ms(1000)
    assert answer(region).admitted == 1
