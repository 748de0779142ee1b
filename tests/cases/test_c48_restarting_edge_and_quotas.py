"""C48 of quotas: an edge that is killed again and again has nothing fresh, for it holds nothing."""

from tests.cases.quota_world import QuotaWorld
from tests.in_process import rule_text, rules_text

THOUSAND = rules_text(rule_text("calls", "quota: 1000/min, anchor: calendar"))


def test_ten_restarts_in_a_minute_admit_the_allowance_and_no_more() -> None:
    """Full demand: 250 of each life until the thousand are used; later lives are refused by the region."""
    world = QuotaWorld(THOUSAND, edges=1, t=1)
    admitted = []
    for life in range(10):
        world.until(2 + 5 * life)
        admitted.append(sum(world.call(cost=25).allowed for _ in range(10)) * 25)
        world.world.restart(world.world.edges[0], 0.05)
    assert admitted == [250] * 4 + [0] * 6
    world.until(61)
    assert world.call().remaining == 999
