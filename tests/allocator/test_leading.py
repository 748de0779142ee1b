"""Who leads: taking the lead, standing by, stepping down (design 5.3, algorithms 6: S2)."""

from dataclasses import replace

from apportion.core.allocator_messages import Lead, RegisterAnswer
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import EpochKind, EpochMark
from tests.allocator.world import MS, World, generation, leader

T1 = EPOCH_NS


# --- taking the lead -------------------------------------------------------------------------------------------------


def test_an_allocator_leads_after_a_second_and_a_half_without_a_claim() -> None:
    """It takes the generation after the register's; not a nanosecond earlier."""
    world, one = World(), leader()
    world.connect(one)
    world.run(T1 + 1500 * MS - 1, one)
    assert world.asked == []
    assert one.wake_ns(world.now_ns) == T1 + 1500 * MS
    world.run(T1 + 1500 * MS, one)
    assert world.asked[0] == Lead(1)
    assert generation(one) == 1


def test_a_standby_does_not_lead_while_claims_come() -> None:
    """The leader's claims are its heartbeat."""
    world, one, two = World(), leader("one", 1), leader("two", 2)
    world.connect(one)
    world.lead(one)
    world.connect(two)
    world.run(20 * EPOCH_NS, one, two)
    assert [question for question in world.asked if isinstance(question, Lead)] == [Lead(1)]
    assert generation(two) is None


def test_a_standby_takes_over_a_second_and_a_half_after_the_last_claim() -> None:
    """Counted from when it saw that claim."""
    world, one, two = World(), leader("one", 1), leader("two", 2)
    world.connect(one)
    world.lead(one)
    world.connect(two)
    world.run(10 * EPOCH_NS + 600 * MS, one, two)  # one claims 11 at 10.5 s and dies; two sees it at 11.0 s
    world.run(12 * EPOCH_NS + 499 * MS, two)
    assert generation(two) is None
    world.run(12 * EPOCH_NS + 500 * MS, two)
    assert generation(two) == 2
    assert world.register.mark(12) == EpochMark(12, EpochKind.DIRECT)
    assert world.register.mark(13) == EpochMark(13, EpochKind.PLANNED, 2)


def test_direct_marks_are_no_heartbeat() -> None:
    """Replicas mark epochs direct because nobody leads."""
    world, one = World(), leader()
    world.connect(one)
    world.run(3 * EPOCH_NS, one)
    assert generation(one) == 1


def test_nobody_leads_who_has_not_heard_from_the_region() -> None:
    """A region that hangs shows no claims, and that says nothing about the leader."""
    world, one = World(), leader()
    world.connect(one)
    world.now_ns += 5 * EPOCH_NS
    world.poll(one)
    assert world.asked == []


def test_after_being_cut_off_the_wait_starts_anew() -> None:
    """Leader and standby come back together when the region does; the leader gets its chance to claim."""
    world, one = World(), leader()
    world.connect(one)
    world.lose(one)
    world.now_ns += 10 * EPOCH_NS
    world.connect(one, link=2)
    assert world.asked == []


def test_of_two_that_try_at_once_one_leads() -> None:
    """The register decides; the other one waits for the winner's claims."""
    world, one, two = World(), leader("one", 1), leader("two", 2)
    world.connect(one)
    world.connect(two)
    world.run(8 * EPOCH_NS, one, two)
    assert (generation(one), generation(two)) == (1, None)
    assert world.asked.count(Lead(1)) == 2
    assert {plan.generation for _, plan in world.plans} == {1}


def test_a_refused_lead_is_not_asked_again_at_once() -> None:
    """A store that fails is left alone for a quarter second."""
    world, one = World(lose_answers=True), leader()
    world.connect(one)
    world.run(T1 + 1500 * MS, one)
    world.asked.clear()
    world.receive(one, RegisterAnswer(False, replace(world.register, generation=0)))
    world.poll(one)
    assert world.asked == []
    world.run(world.now_ns + 250 * MS, one)
    assert len(world.asked) == 1


def test_a_lead_whose_answer_was_lost_is_never_taken_for_won() -> None:
    """The register shows the generation, but another allocator may have taken it."""
    world, one = World(lose_answers=True), leader()
    world.connect(one)
    world.run(T1 + 1500 * MS, one)
    assert world.register.generation == 1
    world.receive(one, world.governance())
    assert generation(one) is None
    world.lose_answers = False
    world.lose(one)
    world.connect(one, link=2)
    world.run(world.now_ns + 3 * EPOCH_NS, one, link=2)
    assert generation(one) == 2


def test_a_lead_that_was_overtaken_is_not_taken() -> None:
    """Its answer comes after news of a higher generation."""
    world, one = World(lose_answers=True), leader()
    world.connect(one)
    world.run(T1 + 1500 * MS, one)
    won = RegisterAnswer(True, world.register)
    world.register = replace(world.register, generation=2)
    world.receive(one, world.governance())
    world.receive(one, won)
    assert generation(one) is None


def test_an_answer_to_nothing_is_reported_and_ignored() -> None:
    """A peer that answers what was not asked makes nobody a leader."""
    world, one = World(), leader()
    world.connect(one)
    world.receive(one, RegisterAnswer(True, replace(world.register, generation=1)))
    assert generation(one) is None
    assert len(world.named("answer_unasked")) == 1


# --- losing it -------------------------------------------------------------------------------------------------------


def test_a_zombie_leader_steps_down_when_it_sees_a_higher_generation() -> None:
    """It wakes after a long pause and divides nothing any more."""
    world, one, two = World(), leader("one", 1), leader("two", 2)
    world.connect(one)
    world.lead(one)
    world.connect(two)
    world.run(10 * EPOCH_NS + 600 * MS, one, two)
    world.run(15 * EPOCH_NS + 600 * MS, two)
    assert generation(two) == 2
    world.plans.clear()
    world.poll(one)  # it still thinks it leads, and claims
    assert generation(one) is None
    assert world.plans == []
    assert [event.fields for event in world.named("lead_lost")] == [{"generation": 1, "register_generation": 2}]


def test_a_former_leader_sends_no_plan_again() -> None:
    """Not to a link that comes up after it stepped down."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.register = replace(world.register, generation=5)
    world.receive(one, world.governance())
    world.plans.clear()
    world.connect(one, link=2)
    assert world.plans == []


def test_a_leader_that_lost_the_lead_may_take_it_again() -> None:
    """With a higher generation, and never an epoch it divided before."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.register = replace(world.register, generation=5)
    world.run(world.now_ns + 6 * EPOCH_NS, one)
    assert generation(one) == 6
    epochs = [event.fields["epoch"] for event in world.named("epoch_divided")]
    assert len(epochs) == len(set(epochs))


def test_old_news_does_not_bring_a_leader_down() -> None:
    """Governance of a slow replica shows an earlier register."""
    world, one = World(), leader()
    world.connect(one)
    earlier = world.governance()
    world.lead(one)
    world.connect(one, link=2)
    world.receive(one, earlier, link=2)
    assert generation(one) == 1


def test_another_store_ends_the_lead_and_divided_epochs_stay_divided() -> None:
    """A store that lost its memory counts again from 1; what was divided under those labels is not divided again."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 600 * MS, one)
    highest = one.divided
    fresh = World(now_ns=T1)
    fresh.register = replace(fresh.register, run_id="other")
    world.lose(one)
    fresh.now_ns = world.now_ns
    fresh.register = replace(fresh.register, anchor_ns=fresh.now_ns, last_ns=fresh.now_ns)
    fresh.connect(one, link=2)
    assert generation(one) is None
    assert len(fresh.named("store_changed")) == 1
    fresh.run(fresh.now_ns + 20 * EPOCH_NS, one, link=2)
    assert generation(one) == 1
    divided = [event.fields["epoch"] for event in fresh.named("epoch_divided")]
    assert divided[0] == highest + 1
    assert divided == list(range(highest + 1, highest + 1 + len(divided)))
