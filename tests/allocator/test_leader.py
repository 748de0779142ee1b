"""Who leads, what is claimed, and that no epoch is divided twice (design 5.1-5.5, algorithms 6: S2)."""

from dataclasses import replace

from apportion.allocator.events import Connected, Received, Send
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    AllocatorHello,
    Claim,
    EpochKind,
    EpochMark,
    Lead,
    RegisterAnswer,
    Rules,
    Tick,
)
from tests.allocator.world import MS, REPLICA, RULES, World, content, generation, leader, quota

T1 = EPOCH_NS


def test_the_first_word_on_a_link_is_hello() -> None:
    """Name and incarnation, as soon as the link is open."""
    assert leader("one", 7).step(Connected(1), 0) == [Send(1, AllocatorHello("one", 7))]


def test_without_a_region_there_is_nothing_to_wait_for() -> None:
    """No link, no clock: no poll."""
    assert leader().wake_ns(0) is None


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


# --- claiming and dividing -------------------------------------------------------------------------------------------


def test_the_next_epoch_is_claimed_at_half_of_this_one_and_then_divided() -> None:
    """Not before half a second, and the plan only after the claim is in the register."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    world.asked.clear()
    assert one.wake_ns(world.now_ns) == 9 * EPOCH_NS + 500 * MS
    world.run(9 * EPOCH_NS + 500 * MS, one)
    assert world.asked == [Claim(1, 10)]
    assert [(link, plan.generation, plan.epoch) for link, plan in world.plans] == [(1, 1, 10)]


def test_nothing_is_sent_before_the_claim_is_answered() -> None:
    """Claims are durable before any slice leaves."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    world.lose_answers = True
    world.run(9 * EPOCH_NS + 999 * MS, one)
    assert world.plans == []


def test_a_claim_found_under_ones_own_generation_is_ones_own() -> None:
    """The answer was lost, the register tells: divide."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    world.lose_answers = True
    world.run(9 * EPOCH_NS + 600 * MS, one)
    world.receive(one, world.governance())
    assert [plan.epoch for _, plan in world.plans] == [10]


def test_no_epoch_is_divided_twice() -> None:
    """Whatever is heard again: the answer, the governance, on any link."""
    world, one = World(), leader()
    world.connect(one)
    world.connect(one, link=2)
    world.lead(one)
    world.run(9 * EPOCH_NS + 600 * MS, one)
    divided = [event.fields["epoch"] for event in world.named("epoch_divided")]
    for link in (1, 2, 1):
        world.receive(one, world.governance(link), link)
        world.receive(one, RegisterAnswer(True, world.register), link)
    assert [event.fields["epoch"] for event in world.named("epoch_divided")] == divided
    assert len(divided) == len(set(divided))


def test_an_epoch_claimed_by_another_generation_is_not_divided() -> None:
    """The mark is there, but it is not ours."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    foreign = EpochMark(10, EpochKind.PLANNED, 99)
    world.register = replace(world.register, highest=10, marks=(*world.register.marks, foreign))
    world.receive(one, world.governance())
    world.run(9 * EPOCH_NS + 900 * MS, one)
    assert world.plans == []


def test_nothing_up_to_the_highest_epoch_at_taking_the_lead_is_divided() -> None:
    """Even if the register shows it under a generation of the same number."""
    world, one = World(), leader()
    world.connect(one)
    world.run(T1 + 1499 * MS, one)
    claimed = EpochMark(3, EpochKind.PLANNED, 1)
    world.register = replace(world.register, highest=3, marks=(*world.register.marks, claimed))
    world.run(T1 + 1500 * MS, one)
    assert generation(one) == 1
    assert world.plans == []


def test_a_refused_claim_is_followed_by_the_next_epochs() -> None:
    """The region has marked 10 direct: go on with 11."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    direct = EpochMark(10, EpochKind.DIRECT)
    world.register = replace(world.register, highest=10, marks=(*world.register.marks, direct))
    world.run(10 * EPOCH_NS + 500 * MS, one)
    assert world.asked[-2:] == [Claim(1, 10), Claim(1, 11)]
    assert [plan.epoch for _, plan in world.plans] == [11]
    assert [event.fields["epoch"] for event in world.named("claim_refused")] == [10]


def test_a_claim_unanswered_is_tried_over_another_link() -> None:
    """A replica that hangs does not cost the epoch."""
    world, one = World(), leader()
    world.connect(one)
    world.connect(one, link=2)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    world.asked.clear()
    world.lose_answers = True
    world.run(9 * EPOCH_NS + 500 * MS, one)
    world.lose_answers = False
    world.run(9 * EPOCH_NS + 750 * MS, one)
    assert world.asked == [Claim(1, 10), Claim(1, 10)]
    assert sorted((link, plan.epoch) for link, plan in world.plans) == [(1, 10), (2, 10)]


def test_a_claim_on_a_link_that_broke_is_asked_again_on_the_next() -> None:
    """At once, and found to be one's own if it had arrived."""
    world, one = World(), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 499 * MS, one)
    world.plans.clear()
    world.lose_answers = True
    world.run(9 * EPOCH_NS + 500 * MS, one)
    world.lose_answers = False
    world.lose(one)
    world.connect(one, link=2)
    assert [(link, plan.epoch) for link, plan in world.plans] == [(2, 9), (2, 10)]


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


# --- plans again -----------------------------------------------------------------------------------------------------


def test_a_link_that_comes_back_gets_the_same_plans_again() -> None:
    """Of this epoch and the next, unit for unit, with the names declared anew; nothing is divided for it."""
    world, one = World(edges={1: REPLICA}, demand={1: {quota(): 400}}), leader()
    world.connect(one)
    world.lead(one)
    world.run(9 * EPOCH_NS + 600 * MS, one)
    before = {plan.epoch: plan for _, plan in world.plans}
    divided = len(world.named("epoch_divided"))
    world.lose(one)
    world.plans.clear()
    world.connect(one, link=2)
    assert [plan.epoch for _, plan in world.plans] == [9, 10]
    assert all(content(plan) == content(before[plan.epoch]) for _, plan in world.plans)
    assert [[name.quota for name in plan.names] for _, plan in world.plans] == [[quota()], []]
    assert len(world.named("epoch_divided")) == divided


def test_every_link_gets_the_complete_plan() -> None:
    """Each replica hears all columns, not only its own."""
    world, one = World(replicas={1: REPLICA, 2: 901}), leader()
    world.connect(one)
    world.connect(one, link=2)
    world.lead(one)
    latest = {link: content(plan) for link, plan in world.plans}
    assert set(latest) == {1, 2}
    assert latest[1] == latest[2]


# --- rules -----------------------------------------------------------------------------------------------------------


def test_rules_that_cannot_be_read_leave_the_old_ones_in_force() -> None:
    """And say why."""
    world, one = World(), leader()
    world.connect(one)
    world.receive(one, Rules(2, (("broken.yaml", "rules: ["),)))
    assert one.rules_version == 1
    assert [event.level for event in world.named("rules_refused")] == ["error"]


def test_an_older_version_of_the_rules_is_ignored() -> None:
    """Versions only rise."""
    world, one = World(), leader()
    world.connect(one)
    world.receive(one, Rules(3, (("rules.yaml", RULES),)))
    world.receive(one, Rules(2, (("rules.yaml", RULES),)))
    assert one.rules_version == 3


def test_time_comes_from_the_region_only() -> None:
    """The first tick of the region starts the clock, wherever the local one stands."""
    world, one = World(), leader()
    one.step(Connected(1), 10**18)
    one.step(Received(1, replace(world.governance(), tick=Tick(40, 300 * MS))), 10**18)
    assert one.wake_ns(10**18) == 10**18 + 300 * MS + 500 * MS
