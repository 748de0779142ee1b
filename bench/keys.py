"""Memory of an agent that is offered a million distinct keys, for each way to enforce a rule.

    python bench/keys.py [--keys 1000000] [--rate 20000]

Each line is a process of its own. An attached agent is driven by hand, its clock going on by 1/rate for each key; the
region admits what crosses, acknowledges reports, and gives no slices. `kept` is the most that were known at once, MiB
how far the process grew at its largest, and bytes what that is for each of them.
"""

from __future__ import annotations

import argparse
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from apportion.core.engine import KEYS_MAX, Engine
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    GroupAnswer,
    MemberAnswer,
    Outcome,
    Quota,
    Report,
    ReportAck,
    Rules,
    Tick,
    Welcome,
)
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Polled, Received, Send
from apportion.edge.holdings import HOLDINGS_MAX
from apportion.region.buckets import BUCKETS_MAX, Buckets
from apportion.region.quotas import QUOTAS_MAX, QuotaTable
from apportion.region.store import Anchor, Charge, Charges
from apportion.region.versions import Lookup

MODES = {
    "at_each_edge": "limit: {rate: 5/min}, enforce: edge, at_each_edge: 5/min, wrong_costs: noise",
    "slack": "limit: {rate: 1000/s}, enforce: edge, slack: 10%, wrong_costs: noise",
    "edge+region": "limit: {rate: 5/min}, enforce: edge+region, when_unavailable: [deny]",
    "lease": "limit: {rate: 1000/s}, enforce: lease, when_unavailable: [deny]",
    "region": "limit: {rate: 5/min}, enforce: region, when_unavailable: [deny]",
}
"""Small keys that live for a minute, where the mode has such."""

EXCHANGE = 100
"""Keys between two exchanges with the region."""

Kept = tuple[int, int]
"""The most keys that were known at once, and how many requests were refused because there was no room."""


def rules_of(mode: str) -> Rules:
    """One rule, its key a tenant."""
    text = "version: 1\ndomain: api\nedges_max: 40\nrules:\n"
    return Rules(1, (("rules.yaml", f'{text}  - {{name: r, match: {{tenant: "*"}}, key: [tenant], {MODES[mode]}}}\n'),))


def attached(mode: str) -> Callable[[int, int], Kept]:
    """An agent with a region."""

    def offer(keys: int, rate: int) -> Kept:
        rules = rules_of(mode)
        rule = parse_rules(rules.texts).domains["api"].rules[0]
        agent = Agent("edge-1", "here", 1, lambda each: parse_rules(each.texts))
        agent.step(Connected(), 0)
        agent.step(Received(Welcome(rules, Tick(1, EPOCH_NS), 2)), 0)
        most = full = 0
        for number in range(keys):
            now_ns = number * EPOCH_NS // rate
            answer: Any = agent.ask((Application(rule, (f"tenant-{number}",), 1),), now_ns)
            full += getattr(answer, "reason", None) == "keys_full"
            if number % EXCHANGE == 0:
                tick = Tick(1 + now_ns // EPOCH_NS, EPOCH_NS - now_ns % EPOCH_NS)
                _answer(agent, agent.step(Received(tick), now_ns), tick, now_ns)
                most = max(most, agent.holdings)
        return max(most, agent.holdings), full

    return offer


def _answer(agent: Agent, commands: Iterable[object], tick: Tick, now_ns: int) -> None:
    for message in [command.message for command in commands if isinstance(command, Send)]:
        if isinstance(message, Report):
            agent.step(Received(ReportAck(message.number)), now_ns)
        elif isinstance(message, Acquire):
            member = MemberAnswer(Outcome.ADMITTED, tick.epoch, 4, 0, 1, True)
            groups = tuple(GroupAnswer(group.count, (member,) * len(group.members)) for group in message.groups)
            after = agent.step(Received(AcquireAnswer(message.number, tick, groups)), now_ns)
            _answer(agent, [*after, *agent.step(Polled(), now_ns)], tick, now_ns)


def in_process(keys: int, rate: int) -> Kept:
    """The engine of `Limiter.from_rules` and of `apportion edge --alone`."""
    engine = Engine(parse_rules(rules_of("region").texts).domains["api"])
    most = 0
    for number in range(keys):
        engine.decide({"tenant": f"tenant-{number}"}, None, number * EPOCH_NS // rate)
        most = max(most, engine.keys)
    return most, engine.keys_full


def store(keys: int, rate: int) -> Kept:
    """The region's buckets, in memory."""
    limit, anchor, buckets, most = RateLimit(5, 60 * EPOCH_NS, 5), Anchor(1, 0), Buckets(), 0
    for number in range(keys):
        charge = Charge(b"\0\3api\0\1r\0\x10tenant-%09d" % number, limit, 1)
        buckets.decide((Charges(1, (charge,)),), anchor, number * EPOCH_NS // rate)
        most = max(most, len(buckets))
    return most, buckets.counters().refused_full


def quotas(keys: int, rate: int) -> Kept:
    """The region's names of quotas."""
    table = QuotaTable(Lookup(parse_rules(rules_of("region").texts)))
    most = full = 0
    for number in range(keys):
        epoch = 1 + number // rate
        if number % rate == 0:
            table.forget_idle(epoch)
        full += table.find(Quota("api", "r", b"\0\x10tenant-%09d" % number), epoch) is None
        most = max(most, len(table))
    return most, full


LINES: dict[str, tuple[Callable[[int, int], Kept], int]] = {
    "in process": (in_process, KEYS_MAX),
    **{f"attached, {mode}": (attached(mode), HOLDINGS_MAX) for mode in MODES},
    "region: buckets": (store, BUCKETS_MAX),
    "region: quotas": (quotas, QUOTAS_MAX),
}


def measure(name: str, keys: int, rate: int) -> None:
    """One line, by this process."""
    offer, bound = LINES[name]
    offer(1000, rate)  # what is imported and compiled at first use
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept, full = offer(keys, rate)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(f"{name:28}{bound:>12,}{kept:>12,}{full:>12,}{grown / 2**20:>8,.0f}{grown / kept:>8,.0f}")
    if kept > bound:
        sys.exit(1)


def main() -> int:
    """Print the table; 1 if more keys were kept than the bound says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=20_000, help="new keys a second by the agent's clock")
    parser.add_argument("--line", choices=LINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.line:
        measure(arguments.line, arguments.keys, arguments.rate)
        return 0
    print(f"CPython {platform.python_version()}, {arguments.keys:,} keys, {arguments.rate:,} a second")
    print(f"{'':28}{'bound':>12}{'kept':>12}{'keys_full':>12}{'MiB':>8}{'bytes':>8}", flush=True)
    failed = 0
    for name in LINES:
        rest = ["--keys", str(arguments.keys), "--rate", str(arguments.rate)]
        failed |= subprocess.run([sys.executable, __file__, "--line", name, *rest], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
