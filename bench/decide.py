"""Nanoseconds of one decision in process, beside other limiters for Python in the same run.

    python bench/decide.py [--rounds 200] [--calls 500]

The public `Limiter.decide` with the real clock; the others by the call their documentation shows, with memory for a
store. The job is the same for all: one key of two values, cost 1, once under a limit that never refuses and once under
one that always does. Rounds are interleaved, so that a busy machine is busy for all; the best round counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import limits
import pyrate_limiter
import throttled

from apportion import Limiter

RULE = """
  - name: rule-{number}
    match: {{tenant: "*", api: "*"}}
    key: {key}
    limit: {{rate: {rate}, burst: {burst}}}
    enforce: region
    when_unavailable: [deny]
"""
KEYS = ("[tenant, api]", "[tenant]", "[api]")
REQUEST = {"tenant": "contoso", "api": "search"}
TARGET_NS = {1: 1000, 2: 1500, 3: 2000}
"""Design 11."""

Decide = Callable[[], object]


def ours(rules: int, rate: str, burst: int, folder: Path) -> Decide:
    """Apportion with that many rules, each with a key of its own."""
    path = folder / f"{rules}.yaml"
    texts = [RULE.format(number=number, key=KEYS[number], rate=rate, burst=burst) for number in range(rules)]
    path.write_text("version: 1\ndomain: api\nrules:" + "".join(texts))
    limiter = Limiter.from_rules(path)
    return lambda: limiter.decide(REQUEST).allowed


def by_limits(strategy: str, rate: str) -> Decide:
    """alisaifee/limits in memory."""
    limiter = getattr(limits.strategies, strategy)(limits.storage.MemoryStorage())
    item = limits.parse(rate)
    return lambda: limiter.hit(item, "contoso", "search")


def by_throttled(units: int, hours: bool) -> Decide:
    """ZhuoZhuoCrayon/throttled-py in memory, its token bucket."""
    quota = throttled.rate_limiter.per_hour(units) if hours else throttled.rate_limiter.per_sec(units)
    limiter = throttled.Throttled(using="token_bucket", quota=quota, store=throttled.store.MemoryStore())
    return lambda: not limiter.limit("contoso/search").limited


def by_pyrate(units: int, milliseconds: int) -> Decide:
    """vutran1710/PyrateLimiter in memory: one bucket, which is one key."""
    limiter = pyrate_limiter.Limiter(pyrate_limiter.InMemoryBucket([pyrate_limiter.Rate(units, milliseconds)]))
    return lambda: limiter.try_acquire("contoso/search", blocking=False)


def contenders(refusing: bool, folder: Path) -> dict[str, Decide]:
    """All of one job, by name."""
    folder.mkdir()
    rate, burst = ("1/hour", 1) if refusing else ("10000000/s", 2_500_000)
    found = {f"apportion, {rules} rule{'s' * (rules > 1)}": ours(rules, rate, burst, folder) for rules in TARGET_NS}
    words = "1/hour" if refusing else "10000000/second"
    for strategy in ("FixedWindowRateLimiter", "MovingWindowRateLimiter"):
        found[f"limits {version('limits')}, {strategy.removesuffix('RateLimiter')}"] = by_limits(strategy, words)
    units = 1 if refusing else 10_000_000
    found[f"throttled-py {version('throttled-py')}, token bucket"] = by_throttled(units, refusing)
    found[f"pyrate-limiter {version('pyrate-limiter')}"] = by_pyrate(units, 3_600_000 if refusing else 1000)
    for decide in found.values():
        decide()  # uses up the one that a refusing limit has
        assert bool(decide()) is not refusing, "not the job that was meant"
    return found


def _nothing() -> None:
    """What the loop itself costs."""


def measure(found: dict[str, Decide], rounds: int, calls: int) -> dict[str, float]:
    """Nanoseconds of one call of each, in its best round; the loop and an empty call are taken off."""
    best = dict.fromkeys([*found, ""], float("inf"))
    for _ in range(rounds):
        for name, decide in {**found, "": _nothing}.items():
            start = time.perf_counter_ns()
            for _ in range(calls):
                decide()
            best[name] = min(best[name], (time.perf_counter_ns() - start) / calls)
    empty = best.pop("")
    return {name: nanoseconds - empty for name, nanoseconds in best.items()}


def main() -> int:
    """Print both tables; 1 if a target of design 11 is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--calls", type=int, default=500)
    arguments = parser.parse_args()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for refusing in (False, True):
            found = contenders(refusing, Path(folder) / f"refusing-{refusing}")
            best = measure(found, arguments.rounds, arguments.calls)
            first = next(iter(best.values()))
            print(f"\n{'every call refused' if refusing else 'no call refused':44}{'ns':>8}{'x ours':>9}{'target':>9}")
            for rank, (name, nanoseconds) in enumerate(best.items(), 1):
                target = TARGET_NS.get(rank)
                missed |= target is not None and nanoseconds > target
                print(f"{name:44}{nanoseconds:8.0f}{nanoseconds / first:9.2f}{target or '':>9}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
