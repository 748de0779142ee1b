"""Requests as they arrive: Poisson by edge and slot, from the flows of a scenario and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from apportion.core.limit import RateLimit
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.simulations.scenario import Flow
from apportion.simulations.world import SECOND, Arrival

Counts = npt.NDArray[np.int64]

SLOT_NS = 50_000_000
"""Demand is even within a slot; what a shape changes, it changes from one slot to the next."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One flow with the rule it asks, ready to be drawn: `units_per_second` at load 1 of the shape."""

    flow: Flow
    applications: tuple[Application, ...]
    units_per_second: float


def streams_of(flows: Sequence[Flow], rules: RuleSet) -> list[Stream]:
    """The flows with their rules. A flow's key stands for each dimension of the rule's key."""
    return [_stream(flow, rule_named(rules, flow.rule)) for flow in flows]


def rule_named(rules: RuleSet, name: str) -> Rule:
    """The rule of that name, in whichever domain; the reader of the scenario has checked that there is one."""
    return next(rule for rule in rules.rules if rule.name == name)


def _stream(flow: Flow, rule: Rule) -> Stream:
    key = (flow.key,) * len(rule.key)
    limited = rule.for_key(key)
    limit = limited.limit
    rate = limit.units * 1e9 / limit.period_ns if isinstance(limit, RateLimit) else 1000.0
    return Stream(flow, (Application(limited, key, flow.cost),), rate * flow.load)


def arrivals(streams: Sequence[Stream], edges: int, seconds: int, seed: int, begun_ns: int = 0) -> Iterator[Arrival]:
    """All requests in the order of time, the first slot beginning at `begun_ns`."""
    return chain.from_iterable(_by_second(streams, edges, seconds, seed, begun_ns))


def _by_second(
    streams: Sequence[Stream], edges: int, seconds: int, seed: int, begun_ns: int
) -> Iterator[Iterable[Arrival]]:
    """The requests of each second."""
    random = np.random.default_rng([seed, 0])
    for second_ns in range(0, seconds * SECOND, SECOND):
        numbers, counts, times = [], [], []  # of a stream in a slot: which, how many at each edge, when
        for start_ns in range(second_ns, second_ns + SECOND, SLOT_NS):
            for number, stream in enumerate(streams):
                if _comes(stream.flow, start_ns):
                    numbers.append(number)
                    counts.append(_counts(stream, edges, start_ns, seed, random))
                    times.append(random.integers(start_ns, start_ns + SLOT_NS, size=int(counts[-1].sum())))
        if times:
            when, many = np.concatenate(times), np.concatenate(counts)
            order = np.argsort(when, kind="stable")
            where = np.repeat(np.tile(np.arange(edges), len(counts)), many)[order]
            which = np.repeat(np.repeat(numbers, edges), many)[order]
            asked = [streams[number].applications for number in which.tolist()]
            yield zip((when[order] + begun_ns).tolist(), where.tolist(), asked, strict=True)


def _comes(flow: Flow, at_ns: int) -> bool:
    """Whether it is the flow's time."""
    return flow.from_ns <= at_ns and (flow.until_ns is None or at_ns < flow.until_ns)


def _counts(stream: Stream, edges: int, start_ns: int, seed: int, random: np.random.Generator) -> Counts:
    """How many requests of a stream come to each edge in a slot."""
    parts = stream.flow.shape.parts(edges, start_ns, seed)
    counts: Counts = random.poisson(parts * (stream.units_per_second / stream.flow.cost * SLOT_NS / 1e9))
    return counts
