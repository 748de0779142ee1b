"""C43 of cases.md, scaled down to 1,000/s: one enormous tenant at twenty edges, and a small one beside it."""

from __future__ import annotations

from functools import cache, partial

from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from tests.faults.rules import load
from tests.faults.world import SECOND, Options, World

TEXT = """
version: 1
domain: api
edges_max: 20
rules:
  - {name: hundred, match: {h: "*"}, key: [h], limit: {rate: 1000/s}, enforce: lease, when_unavailable: [deny]}
  - {name: pair, match: {p: "*"}, key: [p], limit: {rate: 10/s}, enforce: lease, when_unavailable: [deny],
     deadline: 90ms}
"""
RULES = Rules(1, (("rules.yaml", TEXT),))

WEIGHTS = [50, 10, 10, 5, 5, *[2] * 5, *[1] * 10]
"""What share of the hot tenant's requests comes to each of twenty edges."""

OFFERED, LIMIT = 1250, 1000
WARM, END = 12, 20
"""Ten epochs after everything is attached."""


def authority(_: Rules, __: RuleSet, *rest: object) -> Authority:
    """A region with these rules."""
    return Authority(RULES, load(RULES), *rest)  # type: ignore[arg-type]


class Waits:
    """How long each request of the small tenant waited, in nanoseconds; it has a deadline of its own."""

    def __init__(self, world: World) -> None:
        self.ns: list[int] = []
        world.journal.settled = self.settled  # type: ignore[method-assign]

    def settled(self, now_ns: int, came_ns: int, deadline_ns: int) -> None:
        """A request that waited has its answer."""
        if deadline_ns == 90 * MS and came_ns >= WARM * SECOND:
            self.ns.append(now_ns - came_ns)

    def p99_ms(self) -> float:
        """The 99th percentile."""
        return sorted(self.ns)[len(self.ns) * 99 // 100] / MS


@cache
def run(hot: bool) -> tuple[World, Waits]:
    """Both tenants at all edges, or only the small one."""
    world = World(43, Options(edges=20, allocators=1, delay_ns=5 * MS, make_authority=authority))
    waits = Waits(world)
    world.start()
    big, small = (Application(rule, ("k",), 1) for rule in load(RULES).domains["api"].rules)
    if hot:
        for edge, weight in enumerate(WEIGHTS):
            rate = OFFERED * weight // sum(WEIGHTS)
            for at in range(rate * END):
                world.at(at * SECOND // rate + edge * 7, partial(world.edges[edge].ask, (big,)))
    for at in range(8 * END):
        world.at(at * SECOND // 8 + 3 * MS, partial(world.edges[at % 20].ask, (small,)))
    world.run(END + 0.5)
    return world, waits


def admitted(world: World, name: str, second: int) -> int:
    """Units of a rule in one true second."""
    return world.admitted(second, second + 1, name)


def test_the_hot_key_is_decided_at_the_edges() -> None:
    """At most 10 crossings an edge and second on average, never more than 40, whatever is offered."""
    world, _ = run(True)
    crossings = [
        world.sums.crossings.get((f"edge{edge}", second), 0) for edge in range(20) for second in range(WARM, END)
    ]
    assert sum(crossings) / len(crossings) <= 10
    assert max(crossings) <= 40


def test_it_has_its_limit_and_nearly_all_of_it() -> None:
    """No label above 1,000; 95 % of it in each second."""
    world, _ = run(True)
    assert max(world.sums.spent["hundred", ("k",)].values()) <= LIMIT
    assert min(admitted(world, "hundred", second) for second in range(WARM, END)) >= 0.95 * LIMIT


def test_the_small_tenant_notices_nothing() -> None:
    """All of its 8/s are admitted, and 99 of 100 answers come as soon as without the big one: within one crossing."""
    (world, beside), (_, alone) = run(True), run(False)
    assert sum(admitted(world, "pair", second) for second in range(WARM, END)) == 8 * (END - WARM)
    assert len(beside.ns) == len(alone.ns) == 8 * (END - WARM)
    assert beside.p99_ms() <= 2 * alone.p99_ms()
