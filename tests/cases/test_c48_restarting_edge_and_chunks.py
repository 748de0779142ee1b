"""C48 of leased quotas: what an edge held when it was killed stays charged, and a new life begins with nothing."""

from tests.cases.quota_world import QuotaWorld
from tests.in_process import rule_text, rules_text

LEASED = rules_text(rule_text("calls", "quota: 1000/min, anchor: calendar").replace("region", "lease"))


def test_ten_restarts_in_a_minute_cost_chunks_and_admit_nothing_extra() -> None:
    """Each life asks 60 times for one and is killed with its chunk, never reported; then the minute is used up."""
    world = QuotaWorld(LEASED, edges=1, t=1)
    admitted = []
    for life in range(10):
        world.until(2 + 4 * life)
        admitted.append(sum(world.call().allowed for _ in range(60)))
        world.world.restart(world.world.edges[0], 0.05)
    assert admitted[:3] == [60, 60, 60]
    world.until(45)
    used = 1000 - world.call(peek=True).remaining  # type: ignore[operator]
    assert sum(admitted) < used <= 1000, "each life left a chunk that stays charged"
    rest = sum(world.call().allowed for _ in range(1000))
    assert sum(admitted) + rest < 1000
    world.until(56)
    rest += sum(world.call().allowed for _ in range(1000))
    assert rest == 1000 - used
    world.until(61)
    assert world.call().remaining == 999
