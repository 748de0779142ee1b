"""Requests as they arrive: from flows and a seed, in the order of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from apportion.simulations.scenario import Flow
from apportion.simulations.shapes import Heavy, Step, Uniform
from apportion.simulations.traffic import arrivals, streams_of
from apportion.simulations.world import SECOND, Arrival
from tests.simulations.written import rules

EVEN = Flow("search", "k", Uniform(), load=2.0)
"""Twice 100/s: of 20 seconds 4,000 units, and the square root of it is 63."""


def drawn(*flows: Flow, edges: int = 4, seconds: int = 20, seed: int = 1, rate: str = "100/s") -> list[Arrival]:
    """All requests of some flows."""
    return list(arrivals(streams_of(flows, rules(rate)), edges, seconds, seed))


def test_they_come_in_the_order_of_time() -> None:
    """Also those of several flows; all of them within the run."""
    found = drawn(EVEN, replace(EVEN, key="other"))
    times = [at_ns for at_ns, _, _ in found]
    assert all(one <= other for one, other in pairwise(times))
    assert (times[0] >= 0, times[-1] < 20 * SECOND) == (True, True)
    assert {application.key for _, _, (application,) in found[:100]} == {("k",), ("other",)}


def test_a_seed_says_all_of_them() -> None:
    """The same again, and others by another seed."""
    assert drawn(EVEN, seed=3) == drawn(EVEN, seed=3)
    assert drawn(EVEN, seed=3) != drawn(EVEN, seed=4)


def test_as_many_as_the_load_says() -> None:
    """To four deviations, at each edge its part: a quarter of 4,000, or 90 % at the first."""
    even = Counter(edge for _, edge, _ in drawn(EVEN))
    assert sorted(even) == [0, 1, 2, 3]
    assert all(abs(count - 1_000) < 4 * 32 for count in even.values())
    heavy = Counter(edge for _, edge, _ in drawn(replace(EVEN, shape=Heavy(0.9))))
    assert abs(heavy[0] - 3_600) < 4 * 60
    assert abs(heavy.total() - 4_000) < 4 * 63


def test_they_are_poisson() -> None:
    """The variance of a tenth of a second is its mean, 20; were they evenly spaced, it would be 0."""
    tenths = Counter(at_ns // (SECOND // 10) for at_ns, _, _ in drawn(EVEN, seconds=100))
    counts = [tenths[at] for at in range(1_000)]
    mean = sum(counts) / 1_000
    variance = sum((count - mean) ** 2 for count in counts) / 1_000
    assert abs(mean - 20) < 0.6
    assert abs(variance - 20) < 4  # its deviation is 0.9


def test_a_flow_has_its_time() -> None:
    """From 2 s until 5 s: 600 units, and nothing before or after."""
    found = drawn(replace(EVEN, from_ns=2 * SECOND, until_ns=5 * SECOND))
    assert {at_ns // SECOND for at_ns, _, _ in found} == {2, 3, 4}
    assert abs(len(found) - 600) < 4 * 25
    assert drawn(replace(EVEN, from_ns=20 * SECOND)) == []


def test_the_load_is_in_units_of_cost() -> None:
    """400 requests of 10 units are as much as 4,000 of one."""
    found = drawn(replace(EVEN, cost=10))
    assert {application.cost for _, _, (application,) in found} == {10}
    assert abs(len(found) - 400) < 4 * 20


def test_the_load_is_of_the_rules_limit() -> None:
    """By whatever period it is written: 600/min is 10/s, of 20 seconds 400."""
    assert abs(len(drawn(EVEN, rate="600/min")) - 400) < 4 * 20


def test_what_a_shape_changes() -> None:
    """Half the load until 10 s, then twice: 1,000 and 4,000."""
    found = Counter(at_ns // (10 * SECOND) for at_ns, _, _ in drawn(replace(EVEN, shape=Step(10 * SECOND, 0.5, 2.0))))
    assert abs(found[0] - 1_000) < 4 * 32
    assert abs(found[1] - 4_000) < 4 * 63
