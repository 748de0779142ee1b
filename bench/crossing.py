"""Microseconds of one crossing through the cores of edge, region and store, by who does what.

    python bench/crossing.py [--rounds 500]

A rule of `region` is asked of an agent by so many callers at once; its crossing is taken in, decided and answered.
There is no network, no codec and no event loop: what is left is what each core takes. `nothing due` is a step of the
edge that finds nothing to do. The fifth of the rounds that was fastest is left out as luck, and the next one counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from apportion.core.messages import Acquire, Rules
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Polled, Received
from apportion.edge.events import Send as SendUp
from apportion.region.authority import Authority
from apportion.region.events import Consume, Consumed, EdgeSpoke, Send
from apportion.region.events import Polled as RegionPolled
from apportion.simulations.disk import Disk, DiskStore

TEXT = """
version: 1
domain: api
rules:
  - {name: one, match: {tenant: "*"}, key: [tenant], limit: {rate: 10000/s}, enforce: region, when_unavailable: [deny]}
"""
RULES = Rules(1, (("bench.yaml", TEXT),))
PARSED = parse_rules(RULES.texts)
APPLICATIONS = (Application(PARSED.rules[0], ("contoso",), 1),)
NS_BETWEEN = 2_000_000

T = TypeVar("T")


class Bench:
    """One edge, one region, one store; `took` has the nanoseconds of each round by step."""

    def __init__(self) -> None:
        self.now_ns = 10**18
        self.store = DiskStore(Disk(), self.now_ns)
        self.region = Authority(RULES, PARSED, self.store.register, 77)
        self.edge = Agent("edge-1", "here", 1, lambda _: PARSED)
        self.took: dict[str, list[int]] = defaultdict(list)
        self.region.step(RegionPolled(), self.now_ns)
        for hello in self.edge.step(Connected(), self.now_ns):
            assert isinstance(hello, SendUp)
            self.hear(EdgeSpoke(1, hello.message))

    def timed(self, name: str, work: Callable[[], T]) -> T:
        """Do it, and note how long it took."""
        start = time.perf_counter_ns()
        done = work()
        self.took[name].append(time.perf_counter_ns() - start)
        return done

    def hear(self, event: EdgeSpoke) -> None:
        """Take a message of the edge's in at the region, and what it says to it back, but for crossings."""
        for command in self.region.step(event, self.now_ns):
            if isinstance(command, Send) and not isinstance(event.message, Acquire):
                self.edge.step(Received(command.message), self.now_ns)  # type: ignore[arg-type]

    def round(self, callers: int) -> None:
        """So many callers ask at once, and are answered."""
        edge, region, now_ns = self.edge, self.region, self.now_ns
        self.timed("edge: ask", lambda: [edge.ask(APPLICATIONS, now_ns) for _ in range(callers)])
        sent = self.timed("edge: send", lambda: edge.step(Polled(), now_ns))
        (acquire,) = [each.message for each in sent if isinstance(each, SendUp) and isinstance(each.message, Acquire)]
        taken = self.timed("region: take in", lambda: region.step(EdgeSpoke(1, acquire), now_ns))
        (consume,) = [each for each in taken if isinstance(each, Consume)]
        decided = self.timed("store: decide", lambda: self.store.consume(consume, now_ns))
        told = self.timed("region: answer", lambda: region.step(Consumed(consume.request, decided), now_ns))
        (answer,) = [each.message for each in told if isinstance(each, Send)]
        settled = self.timed("edge: settle", lambda: edge.step(Received(answer), now_ns))  # type: ignore[arg-type]
        assert len(settled) == callers
        self.timed("edge: nothing due", lambda: edge.step(Polled(), now_ns))
        self.now_ns += NS_BETWEEN


def measured(callers: int, rounds: int) -> dict[str, float]:
    """Microseconds of each step."""
    bench = Bench()
    for _ in range(rounds):
        bench.round(callers)
    return {name: sorted(took)[len(took) // 5] / 1000 for name, took in bench.took.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    arguments = parser.parse_args()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    one, many = measured(1, arguments.rounds), measured(20, arguments.rounds)
    print(f"{'':20}{'1 request':>12}{'20 requests':>13}")
    for name, took in one.items():
        print(f"{name:20}{took:12.1f}{many[name]:13.1f}")
    totals = [sum(took for name, took in each.items() if not name.endswith("due")) for each in (one, many)]
    print(f"{'a crossing':20}{totals[0]:12.1f}{totals[1]:13.1f}")


if __name__ == "__main__":
    main()
