"""The register: an epoch is marked once, marks only move forward, only the present generation claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import EpochKind, EpochMark, Register
from apportion.region.events import Swapped
from apportion.region.register import MARKS_KEPT, claim, created, epoch_at, lead, mark_direct, start_ns
from apportion.region.registrar import WAITING_MAX, Registrar, Transition

T0 = 100 * EPOCH_NS
REGISTER = Register(generation=1, anchor_epoch=7, anchor_ns=T0, last_ns=T0, run_id="run")


def test_epochs_follow_store_time_from_the_anchor() -> None:
    """Epoch 7 begins with the anchor and lasts a second; a time before it counts as it."""
    assert [epoch_at(REGISTER, T0 + at) for at in (-5, 0, EPOCH_NS - 1, EPOCH_NS, 3 * EPOCH_NS)] == [7, 7, 7, 8, 10]
    assert start_ns(REGISTER, 9) == T0 + 2 * EPOCH_NS


def test_a_new_register_is_at_its_anchor() -> None:
    """Nothing is claimed, nobody leads."""
    register = created(T0, "run")
    assert start_ns(register, epoch_at(register, T0)) == T0
    assert (register.generation, register.highest, register.marks, register.run_id) == (0, 0, (), "run")


def test_the_lead_is_taken_by_the_next_generation_only() -> None:
    """Two candidates for 2: the second one is refused."""
    taken = lead(REGISTER, T0, generation=2)
    assert taken is not None
    assert taken.generation == 2
    assert lead(taken, T0, generation=2) is None
    assert lead(REGISTER, T0, generation=3) is None
    assert lead(REGISTER, T0, generation=1) is None


def test_the_next_epoch_is_claimed_once() -> None:
    """By the present generation, and then by nobody."""
    claimed = claim(REGISTER, T0, generation=1, epoch=8)
    assert claimed is not None
    assert (claimed.highest, claimed.mark(8)) == (8, EpochMark(8, EpochKind.PLANNED, 1))
    assert claim(claimed, T0, generation=1, epoch=8) is None


@pytest.mark.parametrize("generation, epoch", [(0, 8), (2, 8), (1, 9), (1, 0)])
def test_a_claim_of_another_generation_or_too_far_ahead_is_refused(generation: int, epoch: int) -> None:
    """In epoch 7 only generation 1 claims, and at most epoch 8."""
    assert claim(REGISTER, T0, generation=generation, epoch=epoch) is None


def test_a_former_leader_claims_nothing_after_another_has_taken_the_lead() -> None:
    """The zombie's claim is refused whatever it knew."""
    taken = lead(REGISTER, T0, generation=2)
    assert taken is not None
    assert claim(taken, T0, generation=1, epoch=8) is None
    assert claim(taken, T0, generation=2, epoch=8) is not None


def test_an_epoch_that_began_unclaimed_may_be_direct_but_no_other() -> None:
    """Not one to come, and not a claimed one."""
    assert mark_direct(REGISTER, T0, epoch=8) is None
    direct = mark_direct(REGISTER, T0 + EPOCH_NS, epoch=8)
    assert direct is not None
    assert direct.mark(8) == EpochMark(8, EpochKind.DIRECT)
    assert claim(direct, T0 + EPOCH_NS, generation=1, epoch=8) is None
    claimed = claim(REGISTER, T0, generation=1, epoch=8)
    assert claimed is not None
    assert mark_direct(claimed, T0 + EPOCH_NS, epoch=8) is None


def test_epochs_passed_over_are_void() -> None:
    """From 8 to 12: 9, 10 and 11 are lent by nobody."""
    claimed = claim(REGISTER, T0, generation=1, epoch=8)
    assert claimed is not None
    direct = mark_direct(claimed, T0 + 5 * EPOCH_NS, epoch=12)
    assert direct is not None
    assert [mark.kind for mark in direct.marks[-4:]] == [EpochKind.VOID] * 3 + [EpochKind.DIRECT]
    assert direct.mark(11) == EpochMark(11, EpochKind.VOID)


def test_a_clock_that_went_back_goes_on_above_every_epoch_used() -> None:
    """The store's time fell by 50 s: epochs continue after the highest, no label comes again."""
    claimed = claim(REGISTER, T0 + 20 * EPOCH_NS, generation=1, epoch=28)
    assert claimed is not None
    back = lead(claimed, T0 - 30 * EPOCH_NS, generation=2)
    assert back is not None
    assert epoch_at(back, T0 - 30 * EPOCH_NS) == 29
    assert back.mark(28) == EpochMark(28, EpochKind.PLANNED, 1)


def changed(register: Register, now_ns: int, what: str, epoch: int) -> Register | None:
    """One of the three transitions."""
    if what == "lead":
        return lead(register, now_ns, generation=register.generation + 1)
    if what == "claim":
        return claim(register, now_ns, generation=register.generation, epoch=epoch)
    return mark_direct(register, now_ns, epoch=epoch)


@given(st.lists(st.tuples(st.sampled_from(["lead", "claim", "direct"]), st.integers(-2, 3), st.integers(-3, 3))))
def test_no_epoch_is_ever_marked_twice(asked: list[tuple[str, int, int]]) -> None:
    """Whatever is asked in whatever order, at times that go back and forth: marks are final and ascend."""
    register, now_ns = created(T0, "run"), T0
    known: dict[int, EpochMark] = {}
    for what, step, near in asked:
        now_ns = max(0, now_ns + step * EPOCH_NS // 2)
        epoch = epoch_at(register, now_ns) + near
        new = changed(register, now_ns, what, epoch)
        if new is None:
            continue
        assert new.highest >= register.highest and new.generation >= register.generation
        for mark in new.marks:
            assert known.setdefault(mark.epoch, mark) == mark
        assert len(new.marks) <= MARKS_KEPT
        register = new


def refused(register: Register, now_ns: int) -> Register | None:
    """A change that no register allows."""
    return None


def leading(generation: int) -> Transition:
    """The change of a candidate."""
    return lambda register, now_ns: lead(register, now_ns, generation=generation)


def test_changes_are_done_one_after_the_other() -> None:
    """The second is asked of the store when the first has been answered, on the register as it is then."""
    registrar = Registrar(REGISTER)
    settled, (first,) = registrar.ask(leading(2), 5, T0)
    assert settled == []
    assert registrar.ask(leading(3), 6, T0) == ([], [])
    settled, (second,) = registrar.swapped(Swapped(first.request, True, first.new), T0)
    assert [(each.change.session, each.done) for each in settled] == [(5, True)]
    assert (second.old, second.new.generation) == (first.new, 3)


def test_a_change_that_lost_is_tried_on_the_register_as_it_is_now() -> None:
    """Another replica wrote in between; the candidate for generation 2 is too late."""
    registrar = Registrar(REGISTER)
    _, (first,) = registrar.ask(leading(2), 5, T0)
    other = lead(REGISTER, T0 + 1, generation=2)
    assert other is not None
    settled, swaps = registrar.swapped(Swapped(first.request, False, other), T0)
    assert ([each.done for each in settled], swaps, registrar.register) == ([False], [], other)


def test_a_store_that_failed_settles_the_change_as_not_done() -> None:
    """Whether it took effect shows when the register is read again."""
    registrar = Registrar(REGISTER)
    _, (first,) = registrar.ask(leading(2), 5, T0)
    settled, swaps = registrar.swapped(Swapped(first.request, False, None), T0)
    assert ([each.done for each in settled], swaps, registrar.register) == ([False], [], REGISTER)
    _, (again,) = registrar.ask(leading(2), 5, T0)
    took_effect = first.new
    settled, _ = registrar.swapped(Swapped(again.request, False, took_effect), T0)
    assert ([each.done for each in settled], registrar.register) == ([False], took_effect)


def test_what_the_copy_at_hand_refuses_is_settled_at_once() -> None:
    """Nothing is asked of the store; an answer to nothing changes nothing."""
    registrar = Registrar(REGISTER)
    settled, swaps = registrar.ask(refused, 5, T0)
    assert ([each.done for each in settled], swaps) == ([False], [])
    assert registrar.swapped(Swapped(9, True, created(T0, "other")), T0) == ([], [])
    assert registrar.register == REGISTER


def test_no_more_changes_wait_than_there_is_room_for() -> None:
    """64 wait; one more is refused."""
    registrar = Registrar(REGISTER)
    for _ in range(WAITING_MAX):
        assert registrar.ask(leading(2), 5, T0)[0] == []
    assert [each.done for each in registrar.ask(leading(2), 6, T0)[0]] == [False]
