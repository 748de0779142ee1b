"""Requests as they arrive: Poisson by edge and slot, from the flows of a scenario and a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from apportion.core.limit import RateLimit
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.simulations.scenario import Flow
from apportion.simulations.world import Arrival

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


def arrivals(streams: Sequence[Stream], edges: int, seconds: int, seed: int) -> Iterator[Arrival]:
    """All requests in the order of time."""
    random = np.random.default_rng([seed, 0])
    for start_ns in range(0, seconds * 1_000_000_000, SLOT_NS):
        which, where, when = [], [], []
        for number, stream in enumerate(streams):
            flow = stream.flow
            if start_ns < flow.from_ns or (flow.until_ns is not None and start_ns >= flow.until_ns):
                continue
            parts = flow.shape.parts(edges, start_ns, seed)
            mean = parts * (stream.units_per_second / flow.cost * SLOT_NS / 1e9)
            counts = random.poisson(mean)
            total = int(counts.sum())
            where.append(np.repeat(np.arange(edges), counts))
            when.append(random.integers(start_ns, start_ns + SLOT_NS, size=total))
            which.append(np.full(total, number))
        if not when:
            continue
        times = np.concatenate(when)
        order = np.argsort(times, kind="stable")
        places, kinds = np.concatenate(where)[order], np.concatenate(which)[order]
        for at, edge, number in zip(times[order].tolist(), places.tolist(), kinds.tolist(), strict=True):
            yield at, edge, streams[number].applications
