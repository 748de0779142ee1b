"""What a calm run must achieve: liveness and fairness (algorithms 6, L1 to L7, F2, F5), from the log's figures.

A checker speaks only where its premises hold: a demand that stays, no faults but those it is about, a plain network.
Small limits are left out, since chance alone moves their figures by more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from apportion.allocator.fill import water_fill
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.rule import Rule
from apportion.simulations.in_force import InForce
from apportion.simulations.log import REASONS, Answers, Log
from apportion.simulations.measures import RuleFigures
from apportion.simulations.rows import Crossed, Issued, Row
from apportion.simulations.rule_log import RuleLog
from apportion.simulations.scenario import Network, Scenario
from apportion.simulations.shapes import Heavy, Step, Uniform, Zipf
from apportion.simulations.violation import Violation

CALM_UTILISATION = 0.98
"""L1: of min(demand, limit), after the warm-up, while demand stays and fits."""

OVERLOAD_UTILISATION = 0.96
"""L1 in overload: small edges get what they want in a bad second, and what they leave of it lies idle (design 5.9)."""

LEADERLESS_UTILISATION = 0.95
"""L4: the same while only allocators fail: an epoch that nobody divided is lent directly."""

RECOVERY_TICKS = 3
"""L2: seconds after demand has moved until 95 % is admitted again."""

STUCK_SHARE = 0.6
"""L5: of its max-min share an edge has at least this part, over the run."""

JAIN_MIN = 0.92
"""F2: with a pool that is first come, first served."""

CHURN_MAX = 0.10
"""F5: of the limit, each tick, while demand stays."""


SETTLING_S = 10
"""Seconds that slices have to follow a demand before L5 is judged, and for which it is judged at least."""

NEAR_NS = 40_000_000
"""One way to the region, and no more: farther away a second passes before a plan follows a demand."""

SLICE_MIN = 20
"""Units for each edge: what is less is not worth dividing (algorithms 1.2)."""

USUAL_BURST_DIVISOR = 4
"""A burst below a quarter second's worth, the default, is the wish to waste rather than to have bursts."""

LIMIT_MIN = 100
"""Units a second below which figures are not judged."""

ALLOCATORS = {"leader", "standby"}


def shortcomings(
    scenario: Scenario,
    figures: Sequence[RuleFigures],
    logs: Mapping[str, RuleLog],
    log: Log,
    limits: InForce,
) -> list[Violation]:
    """Everything that a run fell short of, in no meaningful order; empty when all holds."""
    found: list[Violation] = [*newcomer_refused(log, limits), *storms(scenario, logs, log.rows)]
    for each in figures:
        of = logs[each.rule]
        if of.rule.local or of.limit < max(LIMIT_MIN, SLICE_MIN * scenario.edges):
            continue
        if not isinstance(of.rule.limit, RateLimit) or of.rule.limit.burst < of.limit / USUAL_BURST_DIVISOR:
            continue
        found += [Violation(broken, each.rule, (), None, said) for broken, said in _short(scenario, each, of)]
    return found


def _short(scenario: Scenario, figures: RuleFigures, log: RuleLog) -> Iterable[tuple[str, str]]:
    if not plain(scenario.network):
        return
    if not scenario.faults:
        if figures.ticks_to_95_percent > RECOVERY_TICKS:
            yield "L2", f"back at 95 % after {figures.ticks_to_95_percent} s, {RECOVERY_TICKS} are allowed"
        due = CALM_UTILISATION if sum(flow.load for flow in scenario.flows) <= 1 else OVERLOAD_UTILISATION
        if stays(scenario) and figures.utilisation < due:
            yield "L1", f"{figures.utilisation:.3f} of what fits was admitted, {due} is due"
        if log.rule.divided and scenario.allocators:
            yield from _divided_well(scenario, figures, log)
        return
    leaderless = stays(scenario) and all(fault.target in ALLOCATORS for fault in scenario.faults)
    if leaderless and figures.utilisation < LEADERLESS_UTILISATION:
        yield "L4", f"{figures.utilisation:.3f} of what fits was admitted while only allocators failed"


def _divided_well(scenario: Scenario, figures: RuleFigures, log: RuleLog) -> Iterable[tuple[str, str]]:
    """What a leader owes edges while nothing fails: who is served first come, first served has no such right."""
    if (since_s := settled_s(scenario)) is not None:
        yield from _stuck(since_s, log)
    if not stays(scenario):
        return
    if figures.jain < JAIN_MIN:
        yield "F2", f"Jain index {figures.jain:.3f} of what edges were admitted, {JAIN_MIN} is due"
    if figures.churn > CHURN_MAX:
        yield "F5", f"{figures.churn:.3f} of the limit moves each tick, {CHURN_MAX} is allowed"


def _stuck(since_s: int, log: RuleLog) -> Iterable[tuple[str, str]]:
    """L5: an edge whose slice is far below its demand gets more until it has its share. The least of eight seconds of a
    small random demand is far below it.
    """
    offered, admitted = log.offered[since_s:].sum(axis=0), log.admitted[since_s:].sum(axis=0)
    whole = log.limits[since_s:].sum()
    shares = water_fill(np.array([0, len(offered)]), offered, np.array([whole])).amounts
    for edge, share, got in zip(log.edges, shares.tolist(), admitted.tolist(), strict=True):
        if share >= max(0.01 * whole, 2 * SLICE_MIN * (log.seconds - since_s)) and got < STUCK_SHARE * share:
            yield "L5", f"{edge} was admitted {got:.0f} units, its max-min share is {share:.0f}"


def settled_s(scenario: Scenario) -> int | None:
    """The second from which demand has been the same for SETTLING_S, until the end; None: there is none."""
    since_ns = 0
    for flow in scenario.flows:
        if not isinstance(flow.shape, Uniform | Zipf | Heavy | Step) or flow.retries:
            return None
        until_ns = flow.until_ns if flow.until_ns is not None else 0
        since_ns = max([since_ns, flow.from_ns, until_ns, *flow.shape.changes_ns(scenario.seconds * EPOCH_NS)])
    since = max(scenario.warm_up, -(-since_ns // EPOCH_NS) + SETTLING_S)
    return since if since + SETTLING_S <= scenario.seconds else None


def stays(scenario: Scenario) -> bool:
    """Whether demand is the same from the beginning to the end."""
    return all(
        isinstance(flow.shape, Uniform | Zipf | Heavy)
        and not flow.from_ns
        and flow.until_ns is None
        and not flow.retries
        for flow in scenario.flows
    )


def plain(network: Network) -> bool:
    """Whether messages come, once, and soon."""
    lossless = not (network.spikes or network.repeat or network.lost_answers)
    return lossless and network.latency_ns <= NEAR_NS and network.clock_drift <= 1000


# --- L3, L7: by single rows


def newcomer_refused(log: Log, limits: InForce) -> Iterable[Violation]:
    """L3: the first request of a new process for a quota that is not exhausted is not over the limit."""
    answers, quotas, processes = log.answers(), log.quotas, list(log.processes)
    _, first = np.unique(answers.process * len(quotas) + answers.quota, return_index=True)
    for at in np.sort(first[answers.reason[first] == REASONS.index("over_limit")]).tolist():
        (edge, _), (_, rule, key) = processes[answers.process[at]], quotas[answers.quota[at]]
        if limits.per_second(rule, int(answers.at_ns[at]), key) == np.inf:
            continue  # no rate
        epoch = _begun(log, answers, rule, at)
        limit = limits.limit(rule, epoch, key)
        if limit is None or answers.cost[at] > 1 or not _divided(limits.rules(rule, epoch, key)):
            continue
        # Which label it was refused under is not in the log: none near it is spent.
        same = answers.where(answers.quota == answers.quota[at])
        most = max(int(same.cost[same.epoch == label].sum()) for label in range(epoch - 2, epoch + 2))
        if most < 0.5 * limit.per_second:
            said = f"the first request at {edge} was over a limit of which {most} units were spent"
            yield Violation("L3", rule, key, epoch, said)


def _begun(log: Log, answers: Answers, rule: str, at: int) -> int:
    """The newest label of a rule of which anything had been given to an edge or spent, at the `at`-th answer."""
    rows = zip(log.rows, log.places, strict=True)
    given = [row.epoch for row, place in rows if isinstance(row, Issued) and row.rule == rule and place <= at]
    quotas = [number for number, (_, name, _) in enumerate(log.quotas) if name == rule]
    spent = answers.epoch[: at + 1][np.isin(answers.quota[: at + 1], quotas)]
    return max([0, *given, int(spent.max())])


def _divided(rules: Sequence[Rule]) -> bool:
    return bool(rules) and all(rule.divided for rule in rules)


def storms(scenario: Scenario, logs: Mapping[str, RuleLog], rows: Iterable[Row]) -> Iterable[Violation]:
    """L7: an edge has one crossing under way at a time, so not more in a second than there are round trips in it."""
    network = scenario.network
    trip_ns = 2 * max(int(network.latency_ns * (1 - network.spread)), 200_000)
    most = EPOCH_NS // trip_ns + 2
    crossings: Counter[tuple[str, str, int]] = Counter()
    for row in rows:
        if isinstance(row, Crossed):
            for rule in row.rules:
                crossings[row.edge, rule, row.at_ns // EPOCH_NS] += 1
    for (edge, rule, second), count in crossings.items():
        if count > most and not logs[rule].rule.shadow:
            yield Violation(
                "L7", rule, (), None, f"{edge} crossed {count} times in second {second}, at most {most} fit"
            )
