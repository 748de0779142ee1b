"""C50 of cases.md at each mode, through all cores: one of two edges is cut off from 12 to 22 s, full demand at both.

What the edge may still spend is nobody else's from the third label on; before, the printed bound holds.
"""

from __future__ import annotations

from functools import cache, partial

import pytest

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.limit import RateLimit
from apportion.core.messages import Rules
from apportion.core.meter import Meter
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from tests.faults.rules import load
from tests.faults.world import SECOND, Options, World

CUT_S, HEALED_S, END_S = 12, 22, 29
TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {{name: exact, match: {{a: x}}, key: [a], limit: {{rate: 100/s}}, {fields}}}
"""

FIELDS = {
    "lease, keep_share": "enforce: lease, when_unavailable: [keep_share for 30s, deny]",
    "lease, fair_share": "enforce: lease, when_unavailable: [fair_share for 30s, deny]",
    "lease, deny": "enforce: lease, when_unavailable: [deny]",
    "edge+region, keep_share": "enforce: edge+region, when_unavailable: [keep_share for 30s, deny]",
    "edge+region, fair_share": "enforce: edge+region, when_unavailable: [fair_share for 30s, deny]",
    "region, fair_share": "enforce: region, when_unavailable: [fair_share for 30s, deny]",
    "region, deny": "enforce: region, when_unavailable: [deny]",
    "edge": "enforce: edge, slack: 20%, wrong_costs: noise",
}


def authority(rules: Rules, _: Rules, __: RuleSet, *rest: object) -> Authority:
    """A region with these rules."""
    return Authority(rules, load(rules), *rest)  # type: ignore[arg-type]


class Run:
    """The world of one rule; `labels` has what both edges admitted, `mine` what the one that is cut off did."""

    def __init__(self, mode: str) -> None:
        rules = Rules(1, (("r", TEXT.format(fields=FIELDS[mode])),))
        self.rule = load(rules).domains["api"].rules[0]
        self.world = World(
            50, Options(edges=2, allocators=1, delay_ns=5 * MS, make_authority=partial(authority, rules))
        )
        self.world.start()
        asked = (Application(self.rule, ("x",), 1),)
        for edge in self.world.edges:
            for at in range(110 * END_S):
                self.world.at(at * SECOND // 110 + 3 * MS, partial(edge.ask, asked))
        self.world.run(CUT_S)
        self.cut = self.world.region.authority.epoch
        self.world.partition(self.world.edges[0], HEALED_S - CUT_S)
        self.world.run(HEALED_S - CUT_S)
        self.healed = self.world.region.authority.epoch
        self.world.run(END_S - HEALED_S + 1)
        self.labels = self.world.sums.spent["exact", ("x",)]

    def degraded(self) -> list[int]:
        """What the edge that was cut off spent by a stage, by label."""
        mine = self.world.edges[0].incarnation
        spent = self.world.sums.degraded
        return [
            units for (who, _, epoch), units in spent.items() if who == mine and self.cut + 2 <= epoch < self.healed
        ]


@cache
def run_of(mode: str) -> Run:
    """Each once."""
    return Run(mode)


@pytest.mark.parametrize(
    "mode, share, whole",
    [
        ("lease, keep_share", 60, 100),
        ("lease, fair_share", 25, 100),
        ("lease, deny", 0, 100),
        ("edge+region, keep_share", 60, 100),
        ("edge+region, fair_share", 25, 100),
        ("region, fair_share", 25, 100),
        ("region, deny", 0, 100),
        ("edge", 0, 120 + 30),
    ],
)
def test_nobody_spends_more_than_the_stages_allow(mode: str, share: int, whole: int) -> None:
    """By label at most 100 (and slack of 20 %, with the share of 30 that the cut-off edge has beside all slices); of
    it the cut-off edge's stage has its share, about half or floor(100 / 4), and the other one the rest.
    """
    run = run_of(mode)
    limit = run.rule.limit
    assert isinstance(limit, RateLimit)
    degraded = run.degraded()
    assert max(degraded, default=0) <= share
    assert share == 0 or min(degraded) >= 0.5 * share
    settled = [run.labels[epoch] for epoch in range(run.cut + 3, run.healed)]
    burst = 0 if run.rule.divided or run.rule.local else limit.burst
    assert max(settled) <= whole + burst
    assert sum(settled) <= whole * len(settled) + burst
    assert sum(settled) >= 0.9 * 100 * len(settled)
    meter = Meter(limit, run.rule.divided)
    over = max(meter.record(epoch, run.labels[epoch]) for epoch in sorted(run.labels))
    assert over <= (bound_of(run.rule, StoreKind.SQLITE).units or 0)


@pytest.mark.parametrize("mode", [mode for mode in FIELDS if mode != "edge"])
def test_after_healing_everything_is_counted_once(mode: str) -> None:
    """The region's sum of each label is what was admitted under it."""
    run = run_of(mode)
    counted = {epoch: units for (_, epoch), units in run.world.rollup().items()}
    labels = range(run.cut - 2, run.healed + 5)
    assert {epoch: counted.get(epoch, 0) for epoch in labels} == {epoch: run.labels[epoch] for epoch in labels}
