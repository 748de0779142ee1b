"""How long a division takes: 10,000 quotas x 50 edges, all or 10 % of them contended; and the leader's whole tick.

    python bench/divide.py [--quotas N] [--edges N] [--rounds N]

Three lines for each load:
- `division`: base demand to slices and pool, exact and in whole units (allocator.division);
- `peer`: the dense fill by sorting of algorithms.md, appendix A, rounded by running sums: same job, same machine;
- `tick`: everything the leader does in a second: take every edge's report, claim, divide, build the plan's columns.
Prints the median and the least of the rounds, in milliseconds, and the division's share of the peer's time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from apportion.allocator.division import divide
from apportion.allocator.events import Command, Connected, Polled, Received, Send
from apportion.allocator.fill import Floats, Integers
from apportion.allocator.leader import Leader
from apportion.core.allocator_messages import Claim, Demand, Governance, Holder, Lead, Plan, RegisterAnswer, ToAllocator
from apportion.core.key import encode_key
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import EpochKind, EpochMark, Quota, QuotaName, Register, Rules, Tick
from apportion.core.rules_file import parse_rules

LIMIT = 1000
RULES = (
    "version: 1\ndomain: api\nrules:\n  - name: search\n    match: {tenant: '*'}\n    key: [tenant]\n"
    f"    limit: {{rate: {LIMIT}/s}}\n    enforce: lease\n    when_unavailable: [deny]\n"
)
NS_PER_MS = 1e6


def demand_table(quotas: int, edges: int, contended: float, seed: int = 1) -> Integers:
    """Heavy-tailed demand [quota, edge]; of `contended` of the quotas twice the limit, of the others half of it."""
    random = np.random.default_rng(seed)
    raw = random.pareto(1.2, (quotas, edges)) + 0.05
    target = np.where(np.arange(quotas) < contended * quotas, 2.0 * LIMIT, 0.5 * LIMIT)
    demand: Integers = np.floor(raw / raw.sum(axis=1, keepdims=True) * target[:, np.newaxis]).astype(np.int64)
    return demand


def peer_fill(quota: Floats, demand: Floats) -> Integers:
    """The fill of algorithms.md, appendix A, as it stands there, with weights of 1 and floors of 0; then rounded.

    Rows whose demand fits are left out, as the appendix' timings do.
    """
    short = demand.sum(1) > quota
    amounts = demand.copy()
    if short.any():
        amounts[short] = _appendix_a(quota[short], demand[short])
    return np.diff(np.floor(np.cumsum(amounts, 1) + 1e-6), axis=1, prepend=0).astype(np.int64)


def _appendix_a(quota: Floats, demand: Floats) -> Floats:
    weights, floors = np.ones_like(demand), np.zeros_like(demand)
    rows, cells = demand.shape
    points = np.concatenate([floors / weights, demand / weights], 1)
    slopes = np.concatenate([weights, -weights], 1)
    order = np.argsort(points, 1)
    ordered = np.take_along_axis(points, order, 1)
    slope = np.cumsum(np.take_along_axis(slopes, order, 1), 1)
    start = floors.sum(1, keepdims=True)
    filled = np.concatenate([start, start + np.cumsum(slope[:, :-1] * np.diff(ordered, axis=1), 1)], 1)
    at = np.clip((filled <= quota[:, None]).sum(1) - 1, 0, 2 * cells - 1)
    row = np.arange(rows)
    steep = slope[row, at]
    level = ordered[row, at] + np.where(steep > 1e-12, (quota - filled[row, at]) / np.maximum(steep, 1e-12), 0)
    amounts: Floats = np.clip(level[:, None] * weights, floors, demand)
    return amounts


def measure(work: Callable[[], object], rounds: int) -> list[float]:
    """Milliseconds of each round; one more goes before them and is not counted."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / NS_PER_MS)
    return times


class Region:
    """One replica that says yes to everything, so that a tick measures the leader alone."""

    def __init__(self, demand: Integers) -> None:
        self.leader = Leader("bench", 1, parse_rules)
        self.now_ns = EPOCH_NS
        self.register = Register(anchor_epoch=1, anchor_ns=EPOCH_NS, run_id="bench")
        self.plans: list[Plan] = []
        quotas, edges = demand.shape
        self.ids = np.arange(quotas, dtype=np.uint32)
        self.columns = [demand[:, edge].astype(np.uint64) for edge in range(edges)]
        self.names = tuple(QuotaName(q, Quota("api", "search", encode_key([f"tenant-{q}"]))) for q in range(quotas))
        self.holders = (*(Holder(edge + 1, f"edge-{edge}", "", False) for edge in range(edges)),)
        self.perform(self.leader.step(Connected(1), self.now_ns))
        self.say(Rules(1, (("bench.yaml", RULES),)))
        while self.leader.generation is None:
            self.say(self.governance())
            self.now_ns += EPOCH_NS

    @property
    def epoch(self) -> int:
        """The epoch now."""
        return self.now_ns // EPOCH_NS

    def governance(self) -> Governance:
        """Who is attached, and the register."""
        replica = Holder(1000, "", "", True)
        return Governance(Tick(self.epoch, EPOCH_NS), self.register, 1000, (*self.holders, replica), 1)

    def say(self, message: ToAllocator) -> None:
        """Tell the leader."""
        self.perform(self.leader.step(Received(1, message), self.now_ns))

    def perform(self, commands: list[Command]) -> None:
        """Grant what is asked, keep what is planned."""
        for command in commands:
            match command:
                case Send(_, Lead(generation)):
                    self.register = replace(self.register, generation=generation)
                    self.say(RegisterAnswer(True, self.register))
                case Send(_, Claim(generation, epoch)):
                    marks = (*self.register.marks[-7:], EpochMark(epoch, EpochKind.PLANNED, generation))
                    self.register = replace(self.register, highest=epoch, marks=marks)
                    self.say(RegisterAnswer(True, self.register))
                case Send(_, Plan() as plan):
                    self.plans = [plan]

    def tick(self) -> None:
        """One second: governance, every edge's report, and at half of it the claim and the plan."""
        self.now_ns = (self.epoch + 1) * EPOCH_NS
        self.say(self.governance())
        for edge, column in enumerate(self.columns):
            names, self.names = self.names, ()
            self.say(Demand(edge + 1, self.epoch - 1, names, self.ids, column))
        self.now_ns += EPOCH_NS // 2
        self.perform(self.leader.step(Polled(), self.now_ns))


def bench(quotas: int, edges: int, contended: float, rounds: int) -> None:
    """Measure one load and print it."""
    demand = demand_table(quotas, edges, contended)
    units = np.full(quotas, LIMIT, np.int64)
    starts = np.arange(quotas + 1, dtype=np.int64) * edges
    flat: npt.NDArray[np.int64] = demand.ravel()
    base = flat.astype(np.float64)
    want = np.where(base > 0, base + 1.0, 0.0)  # what the leader asks for where demand does not move
    region = Region(demand)
    for _ in range(9):  # until every base is known
        region.tick()
    print(f"{quotas} quotas x {edges} edges, {contended:.0%} contended, {rounds} rounds: median (least) ms")
    ours = measure(lambda: divide(units, starts, flat, want), rounds)
    sliceable = np.full(quotas, LIMIT * 0.95)
    peers = measure(lambda: peer_fill(sliceable, demand.astype(np.float64)), rounds)
    ticks = measure(region.tick, rounds)
    # The peer knows base demand only, so where nobody wants more than that.
    slices, peer_slices = (
        divide(units, starts, flat, base).slices,
        peer_fill(sliceable, demand.astype(np.float64)).ravel(),
    )
    assert np.abs(slices - peer_slices).max() <= 1, "both divide alike, but for which edge gets an odd unit"
    planned = sum(int(column.units.sum()) for column in region.plans[0].columns)
    assert planned == quotas * LIMIT, "the plan gives away every unit once"
    for name, times in (("division", ours), ("peer", peers), ("tick", ticks)):
        print(f"  {name:9s}{statistics.median(times):8.1f} ({min(times):.1f})")
    print(f"  division / peer {statistics.median(ours) / statistics.median(peers):.2f}")


def main() -> None:
    """Read the options and measure both loads."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quotas", type=int, default=10_000)
    options.add_argument("--edges", type=int, default=50)
    options.add_argument("--rounds", type=int, default=15)
    chosen = options.parse_args()
    for contended in (1.0, 0.1):
        bench(chosen.quotas, chosen.edges, contended, chosen.rounds)


if __name__ == "__main__":
    main()
