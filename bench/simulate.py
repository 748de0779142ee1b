"""Simulated requests a second and core, by mode, beside a bare loop over one bucket in the same run.

    python bench/simulate.py [--seconds 10] [--seed 1]

Each line is a whole run of a scenario: traffic, every process with its messages, the event log, the figures and all
checkers. The hotspot moves over the edges, so that slices are wrong and requests cross; those of `edge` never do.
Processes talk whether or not anybody asks: `idle` is the same run without requests, by seconds of virtual time, and `a
request more` what is left, by requests. The base does what cannot be less: the same arrivals, each decided by one
central bucket, nothing logged and nothing judged. Seconds are those of the process's own processor time.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import replace

from apportion.core.bucket import Bucket
from apportion.core.limit import RateLimit
from apportion.simulations.nodes import parsed
from apportion.simulations.run import run
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.traffic import arrivals, rule_named, streams_of

TEXT = """
about: The speed of the simulator.
edges: {edges}
seconds: {seconds}
limit: {limit}
enforce: {mode}
demand: [{{shape: hotspot, load: 100%, dwell: 9s, share: 60%}}]
"""
RUNS = (
    ("edge", 10, "1000/s"),
    ("edge", 10, "10000/s"),
    ("edge+region", 10, "1000/s"),
    ("lease", 10, "1000/s"),
    ("region", 10, "1000/s"),
    ("lease", 50, "1000/s"),
    ("lease", 10, "10000/s"),
)
"""Mode, edges, limit."""


def scenario(mode: str, edges: int, limit: str, seconds: int) -> Scenario:
    """One of the runs."""
    return parse_scenario("bench.yaml", TEXT.format(mode=mode, edges=edges, limit=limit, seconds=seconds))


def simulated(what: Scenario, seed: int) -> tuple[int, float]:
    """Requests of a run, and the seconds it took."""
    start = time.process_time()
    requests = run(what, seed).requests
    return requests, time.process_time() - start


def bare(what: Scenario, seed: int) -> tuple[int, float]:
    """The same arrivals at one bucket."""
    start = time.process_time()
    rules = parsed(what.rules)
    limit = rule_named(rules, what.flows[0].rule).limit
    assert isinstance(limit, RateLimit)
    bucket, requests = Bucket(limit, 0), 0
    for at_ns, _, applications in arrivals(streams_of(what.flows, rules), what.edges, what.seconds, seed):
        cost = applications[0].cost
        if bucket.admits(cost, at_ns):
            bucket.charge(cost)
        requests += 1
    return requests, time.process_time() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="of virtual time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        f"{'mode':12}{'edges':>6}{'limit':>9}{'requests':>9}{'a second and core':>18}{'of the bare loop':>17}"
        f"{'idle, a second':>15}{'a request more':>15}"
    )
    simulated(scenario("lease", 3, "100/s", 3), arguments.seed)  # what a process does once is no run's
    for mode, edges, limit in RUNS:
        what = scenario(mode, edges, limit, arguments.seconds)
        _, idle = simulated(replace(what, flows=()), arguments.seed)
        requests, seconds = simulated(what, arguments.seed)
        _, least = bare(what, arguments.seed)
        print(
            f"{mode:12}{edges:6}{limit:>9}{requests:9,}{requests / seconds:18,.0f}{least / seconds:17.3f}"
            f"{idle / arguments.seconds * 1e3:12.1f} ms{(seconds - idle) / requests * 1e6:12.1f} us",
            flush=True,
        )


if __name__ == "__main__":
    main()
