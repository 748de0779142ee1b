"""Nanoseconds of `Agent.ask`, what the doors of an attached edge ask, beside the in-process engine in the same run.

    python bench/agent.py [--rounds 100] [--calls 500]

The agent is attached to nothing: rules, time and slices that never run out are fed in once, so that no call crosses.
The engine, which `Limiter` has behind it, does the same job by the whole limit: one key for each rule, cost 1. It finds
its rules by the dimensions, which a door does before it asks the agent; its verdicts are read, for an agent's are
always made. Rounds are interleaved, so that a busy machine is busy for all; the best round counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from itertools import count

import numpy as np

from apportion.core.decision import Decision
from apportion.core.engine import Engine
from apportion.core.key import encode_key
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Quota, QuotaName, Rules, Slices, Tick, Welcome
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Received

RULE = "\n  - {{name: rule-{at}, match: {{tenant: '*', api: '*'}}, key: {key}, limit: {limit}, {mode}}}"
KEYS = ("[tenant, api]", "[tenant]", "[api]")
REQUEST = {"tenant": "contoso", "api": "search"}
LEASE = "enforce: lease, when_unavailable: [deny]"
EDGE = "enforce: edge, wrong_costs: noise, at_each_edge: "
PASSING, REFUSING = "10000000/s", "1/hour"
EPOCH, BEGAN_NS = 7, 7 * EPOCH_NS

Ask = Callable[[], bool]
"""Whether one request was allowed."""


def rules_of(rules: int, mode: str, rate: str) -> Rules:
    """That many rules of one mode, each with a key of its own."""
    texts = [RULE.format(at=at, key=KEYS[at], limit=f"{{rate: {rate}}}", mode=mode) for at in range(rules)]
    return Rules(1, (("bench.yaml", "version: 1\ndomain: api\nedges_max: 1\nrules:" + "".join(texts)),))


def clock() -> Callable[[], int]:
    """Each reading is a nanosecond after the one before it, from the middle of the epoch on."""
    return count(BEGAN_NS + EPOCH_NS // 2).__next__


def engine(rules: Rules) -> Ask:
    """The engine's decision, with its verdicts."""
    decide, now = Engine(parse_rules(rules.texts).domains["api"]).decide, clock()

    def ask() -> bool:
        decision = decide(REQUEST, None, now())
        return bool(decision.verdicts) and decision.allowed

    return ask


def agent(rules: Rules) -> Ask:
    """The agent's decision, from what it holds."""
    fresh = Agent("edge-1", "here", 1, lambda told: parse_rules(told.texts))
    for event in (Connected(), Received(Welcome(rules, Tick(EPOCH, EPOCH_NS), 1))):
        fresh.step(event, BEGAN_NS)
    matcher = fresh.matchers["api"]
    applications = tuple(
        Application(rule, matcher.key(rule, REQUEST), 1) for rule in matcher.match(REQUEST, whole=False)
    )
    quotas = [Quota("api", each.rule.name, encode_key(each.key)) for each in applications]
    names = tuple(QuotaName(at, quota) for at, quota in enumerate(quotas))
    ids, units = np.arange(len(names), dtype=np.uint32), np.full(len(names), 10_000_000, np.uint64)
    fresh.step(Received(Slices(EPOCH, 1, 1, names, ids, units)), BEGAN_NS)
    now = clock()

    def ask() -> bool:
        decision = fresh.ask(applications, now())
        assert isinstance(decision, Decision), "nothing crosses"
        return decision.allowed

    return ask


def contenders() -> dict[str, tuple[Ask, str]]:
    """Each job: who does it, and whom it is compared with."""
    found: dict[str, tuple[Ask, str]] = {}
    for rules, words in enumerate(("1 rule", "2 rules", "3 rules"), 1):
        base = f"engine, {words}"
        found[base] = engine(rules_of(rules, LEASE, PASSING)), base
        found[f"agent, lease, {words}"] = agent(rules_of(rules, LEASE, PASSING)), base
        found[f"agent, edge, {words}"] = agent(rules_of(rules, EDGE + PASSING, PASSING)), base
    base = "engine, refusing"
    found[base] = engine(rules_of(1, LEASE, REFUSING)), base
    found["agent, edge, refusing"] = agent(rules_of(1, EDGE + REFUSING, REFUSING)), base
    for name, (ask, _) in found.items():
        ask()  # uses up the one that a refusing limit has
        assert ask() is not name.endswith("refusing"), f"{name}: not the job that was meant"
    return found


def measure(found: dict[str, tuple[Ask, str]], rounds: int, calls: int) -> dict[str, float]:
    """Nanoseconds of one call of each, in its best round."""
    best = dict.fromkeys(found, float("inf"))
    for _ in range(rounds):
        for name, (ask, _) in found.items():
            start = time.perf_counter_ns()
            for _ in range(calls):
                ask()
            best[name] = min(best[name], (time.perf_counter_ns() - start) / calls)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--calls", type=int, default=500)
    arguments = parser.parse_args()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    found = contenders()
    best = measure(found, arguments.rounds, arguments.calls)
    print(f"{'':28}{'ns':>8}{'x engine':>10}")
    for name, (_, base) in found.items():
        print(f"{name:28}{best[name]:8.0f}{best[name] / best[base]:10.2f}")


if __name__ == "__main__":
    main()
