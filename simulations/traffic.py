"""Requests as they arrive: Poisson by edge and slot, from the flows of a scenario and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from apportion.core.limit import Limit, PeriodLimit, RateLimit
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.simulations.scenario import Flow
from apportion.simulations.world import SECOND, Arrival

Counts = npt.NDArray[np.int64]

SLOT_NS = 50_000_000
"""Demand is even within a slot; what a shape changes, it changes from one slot to the next."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One flow with the rule it asks, ready to be drawn: a request asks one of the `choices`, by chance;
    `units_per_second` at load 1 of the shape.
    """

    flow: Flow
    choices: tuple[tuple[Application, ...], ...]
    units_per_second: float


def streams_of(flows: Sequence[Flow], rules: RuleSet) -> list[Stream]:
    """The flows with their rules. A flow's key stands for each dimension of the rule's key."""
    return [_stream(flow, rule_named(rules, flow.rule)) for flow in flows]


def rule_named(rules: RuleSet, name: str) -> Rule:
    """The rule of that name, in whichever domain; the reader of the scenario has checked that there is one."""
    return next(rule for rule in rules.rules if rule.name == name)


def _stream(flow: Flow, rule: Rule) -> Stream:
    asked = []
    for name in names_of(flow):
        key = (name,) * len(rule.key)
        asked.append(Application(rule.for_key(key), key, flow.cost))
    rate = sum(_rate(each.rule.limit) for each in asked)
    return Stream(flow, tuple((each,) for each in asked), rate * flow.load)


def names_of(flow: Flow) -> list[str]:
    """The values of its keys."""
    return [flow.key] if flow.keys == 1 else [f"{flow.key}-{at}" for at in range(flow.keys)]


def _rate(limit: Limit) -> float:
    """Units a second of one key; where nothing limits it 1,000."""
    if isinstance(limit, RateLimit):
        return limit.units * 1e9 / limit.period_ns
    return limit.per_second if isinstance(limit, PeriodLimit) else 1000.0


def arrivals(streams: Sequence[Stream], edges: int, seconds: int, seed: int, begun_ns: int = 0) -> Iterator[Arrival]:
    """All requests in the order of time, the first slot beginning at `begun_ns`."""
    return chain.from_iterable(_by_second(streams, edges, seconds, seed, begun_ns))


def _by_second(
    streams: Sequence[Stream], edges: int, seconds: int, seed: int, begun_ns: int
) -> Iterator[Iterable[Arrival]]:
    """The requests of each second."""
    random = np.random.default_rng([seed, 0])
    several = any(len(stream.choices) > 1 for stream in streams)
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
            asked = [streams[number].choices[0] for number in which.tolist()]
            if several:
                asked = _chosen([streams[number].choices for number in which.tolist()], random)
            yield zip((when[order] + begun_ns).tolist(), where.tolist(), asked, strict=True)


def _chosen(
    choices: Sequence[tuple[tuple[Application, ...], ...]], random: np.random.Generator
) -> list[tuple[Application, ...]]:
    """One of the choices of each request."""
    parts = random.random(len(choices)).tolist()
    return [each[int(part * len(each))] for each, part in zip(choices, parts, strict=True)]


def _comes(flow: Flow, at_ns: int) -> bool:
    """Whether it is the flow's time."""
    return flow.from_ns <= at_ns and (flow.until_ns is None or at_ns < flow.until_ns)


def _counts(stream: Stream, edges: int, start_ns: int, seed: int, random: np.random.Generator) -> Counts:
    """How many requests of a stream come to each edge in a slot."""
    parts = stream.flow.shape.parts(edges, start_ns, seed)
    counts: Counts = random.poisson(parts * (stream.units_per_second / stream.flow.cost * SLOT_NS / 1e9))
    return counts
