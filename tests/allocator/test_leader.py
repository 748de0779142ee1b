"""What a leader claims and divides, each epoch once, and what it sends again (design 5.1-5.5, algorithms 6: S2)."""

from dataclasses import replace

from apportion.allocator.events import Connected, Received, Send
from apportion.core.allocator_messages import AllocatorHello, Claim, RegisterAnswer
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import EpochKind, EpochMark, Rules, Tick
from tests.allocator.world import MS, REPLICA, RULES, World, content, generation, leader, quota

T1 = EPOCH_NS


def test_the_first_word_on_a_link_is_hello() -> None:
    """Name and incarnation, as soon as the link is open."""
    assert leader("one", 7).step(Connected(1), 0) == [Send(1, AllocatorHello("one", 7))]


def test_without_a_region_there_is_nothing_to_wait_for() -> None:
    """No link, no clock: no poll."""
    assert leader().wake_ns(0) is None


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
