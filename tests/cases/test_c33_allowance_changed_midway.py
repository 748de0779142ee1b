"""C33: raising or lowering an allowance within its period keeps what was used, at edges that remember it as used up."""

from tests.cases.quota_world import QuotaWorld
from tests.in_process import rule_text, rules_text

OTHER = rule_text("other", "rate: 5/s", match="api")


def rules(allowance: int, other: str = OTHER, first: bool = True) -> str:
    """One quota an hour, and a rule that has nothing to do with it, before or after it."""
    quota = rule_text("calls", f"quota: {allowance}/hour, anchor: calendar")
    return rules_text(quota, other) if first else rules_text(other, quota)


def test_what_was_used_stays_used_and_what_is_left_follows_the_rules() -> None:
    """8 of 10; of 20, 12 are left; of 5 none, and a call is refused; of 10 two more pass, at once."""
    world = QuotaWorld(rules(10))
    assert [world.call().allowed for _ in range(8)] == [True] * 8
    world.change(rules(20))
    assert world.call(cost=0).remaining == 12
    world.change(rules(20, OTHER.replace("5/s", "6/s")))
    world.change(rules(20, first=False))
    assert world.call(cost=0).remaining == 12
    world.change(rules(5))
    lowered = world.call()
    assert (lowered.allowed, lowered.remaining, lowered.reason) == (False, 0, "over_limit")
    assert world.call(cost=0).remaining == 0
    assert not world.call(1).allowed  # both edges now remember it as used up for an hour
    world.change(rules(10))
    assert [world.call(edge).allowed for edge in (0, 1, 0)] == [True, True, False]


def test_another_period_is_another_counter() -> None:
    """As the docs say: ten an hour used up say nothing of the hundred a day."""
    world = QuotaWorld(rules(10))
    assert [world.call().allowed for _ in range(11)] == [True] * 10 + [False]
    world.change(rules(100).replace("/hour", "/day"))
    assert world.call().remaining == 99


def test_a_leased_allowance_that_is_lowered_admits_what_is_left_of_the_new_one() -> None:
    """Sixty of a thousand were used and a chunk is out: of a hundred forty are left, the chunk's among them."""
    leased = rules_text(rule_text("calls", "quota: 1000/min, anchor: calendar").replace("region", "lease"))
    world = QuotaWorld(leased, edges=1, t=1)
    assert all(world.call().allowed for _ in range(60))
    world.change(leased.replace("1000/min", "100/min"))
    admitted = 0
    for step in range(80):
        world.until(5 + step / 4)
        admitted += world.call().allowed
    assert admitted == 40


def test_a_leased_quota_of_another_period_begins_with_all_of_it() -> None:
    """What a chunk of the minute has left comes back to the minute: the hour has used what it admitted."""
    leased = rules_text(rule_text("calls", "quota: 1000/min, anchor: calendar").replace("region", "lease"))
    world = QuotaWorld(leased, edges=1, t=1)
    assert all(world.call().allowed for _ in range(60))
    world.change(leased.replace("1000/min", "1000/30min"))
    assert all(world.call().allowed for _ in range(60))
    world.until(20)
    assert world.call(peek=True).remaining == 940
