"""C03: an edge whose clock is ahead does not spend the next window early: windows are the region's."""

from apportion.simulations.node import Clock
from tests.cases.quota_world import MIDNIGHT_NS, QuotaWorld
from tests.faults.world import SECOND
from tests.in_process import rule_text, rules_text

TEN = rules_text(rule_text("ten", "quota: 10/min, anchor: calendar"))


def test_an_edge_two_seconds_ahead_is_refused_with_the_others_reset() -> None:
    """At 58.5 E2 uses all ten; at 58.6 E1, which believes it is 60.6, is refused until 60; at 60.1 E2 has ten again."""
    world = QuotaWorld(TEN, t=50)
    ahead, right = world.world.edges
    shown = MIDNIGHT_NS + world.t_ns - world.world.now_ns
    ahead.clock, right.clock = Clock(shown + 2 * SECOND, 0), Clock(shown, 0)
    world.world.restart(ahead, 0.1)
    world.world.restart(right, 0.1)
    world.until(58.5)
    assert [world.call(1).allowed for _ in range(10)] == [True] * 10
    used_up = world.reset_t(world.answered[-1])
    world.until(58.6 + 0.1)
    refused = world.call(0)
    assert (refused.allowed, refused.reason, refused.remaining) == (False, "over_limit", 0)
    assert 60.0 <= world.reset_t(refused) <= 60.1
    assert abs(world.reset_t(refused) - used_up) <= 0.1
    world.until(60.1)
    assert [world.call(1).allowed for _ in range(10)] == [True] * 10
    assert not world.call(0).allowed
