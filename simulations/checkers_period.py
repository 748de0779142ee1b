"""What must hold of quotas of a period, whatever fails (design 4.2): checked against the event log alone.

P1 no period and no window is over its allowance; P2 nobody is refused what there is room for, at the store never, at an
edge not for long after the reset; P3 a lone caller who waits as told is admitted; P4 what was charged is what the store
has counted, and covers what was admitted; P5 each lifetime that a fault took is counted as missing, and mended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

import numpy as np

from apportion.core.limit import EPOCH_NS
from apportion.simulations.log import REASONS, Log, Numbers
from apportion.simulations.period_log import PeriodLog, Use
from apportion.simulations.rows import Issued
from apportion.simulations.sums import Name
from apportion.simulations.violation import Violation

OVER_LIMIT = REASONS.index("over_limit")

LATE_NS = EPOCH_NS
"""An edge that was told of a reset knows it by its own clock, a message's way late: so long it may still refuse."""

ASKS_AGAIN_NS = 4 * EPOCH_NS
"""A leased quota may have room again before its reset, when a chunk comes back; an edge asks again after two seconds,
and an answer takes its time.
"""


def period_violations(log: Log, periods: PeriodLog) -> list[Violation]:
    """All that is wrong; empty where there are no quotas of a period."""
    if not periods.uses:
        return []
    found = [*over_allowance(periods), *refused_with_room(periods), *refused_at_edges(log, periods)]
    found += [*told_wrong(log, periods), *kept_wrong(periods), *admitted_uncharged(log, periods)]
    return [*found, *lifetimes_lost(periods)]


def over_allowance(periods: PeriodLog) -> Iterable[Violation]:
    """P1: by the store's clocks, each period by itself, and of a rolling quota each window that ends with a charge."""
    for use in periods.uses.values():
        most = use.most()
        if most > use.limit.units:
            what = "window" if use.rolling else "period"
            yield Violation("P1", use.rule, use.key, None, f"{most} in one {what}, the allowance is {use.limit.units}")


def refused_with_room(periods: PeriodLog) -> Iterable[Violation]:
    """P2 at the store, where clocks are its own: a refusal says that there is no room, and there is none."""
    for use in periods.uses.values():
        for each in use.refused:
            if each.used + each.cost <= each.allowance:
                said = f"the store refused {each.cost} at {each.at_ns} ns, {each.used} of {each.allowance} were used"
                yield Violation("P2", use.rule, use.key, None, said)


def refused_at_edges(log: Log, periods: PeriodLog) -> Iterable[Violation]:
    """P2 at edges: they hold a refusal until the reset, and no longer."""
    answers, names = log.answers(), [(rule, key) for _, rule, key in log.quotas]
    uses = {(use.rule, use.key): use for use in periods.uses.values()}
    steps = periods.clocks.steps
    refused = answers.where(answers.at_edge & (answers.reason == OVER_LIMIT) & ~answers.degraded)
    for number, mine in refused.by(refused.quota):
        use = uses.get(names[number])
        if use is None:
            continue
        late_ns = ASKS_AGAIN_NS if use.lent or use.returned_ns else LATE_NS
        # Edges were told how long to wait: after a step of the wall clock that is wrong by as much.
        unsettled = [(at, at + late_ns + by) for at, by in [*steps, *((back, 0) for back in use.returned_ns)]]
        moments = [_moments(periods, mine.at_ns - back) for back in (0, late_ns)]
        for now, before, cost in zip(*moments, mine.cost.tolist(), strict=True):
            if max(use.used_by(*now), use.used_by(*before)) + cost > use.least:
                continue
            if not any(since <= now[0] < until for since, until in unsettled):
                said = f"an edge refused {cost} at {now[0]} ns, {use.used_by(*now)} of {use.least} were used"
                yield Violation("P2", use.rule, use.key, None, said)


def _moments(periods: PeriodLog, at_ns: Numbers) -> list[tuple[int, int, int]]:
    """Instants by virtual time, store time and wall clock."""
    clocks = periods.clocks
    return list(zip(at_ns.tolist(), clocks.store_ns(at_ns).tolist(), clocks.wall_ns(at_ns).tolist(), strict=True))


def told_wrong(log: Log, periods: PeriodLog) -> Iterable[Violation]:
    """P3: of keys with one caller, who has no two requests under way. It was told to wait, did, and is admitted."""
    offers, answers, names = log.offers(), log.answers(), [(rule, key) for _, rule, key in log.quotas]
    came_to, said_of = offers.where(~offers.peek), dict(answers.by(answers.quota))
    for number, came in came_to.by(came_to.quota):
        name, said = names[number], said_of.get(number)
        told = periods.told.get(name, [])
        if said is None or not told or not _alternate(came.at_ns, said.at_ns):
            continue
        at_ns = came.at_ns.tolist()
        for each in told:
            next_ = bisect_left(at_ns, each.at_ns + each.wait_ns)
            if next_ >= min(len(at_ns), len(said.at_ns)) or came.cost[next_] > each.cost:
                continue
            between = said.charged[: next_ + 1][said.at_ns[: next_ + 1] > each.at_ns]
            if not said.allowed[next_] and not between.any() and said.reason[next_] == OVER_LIMIT:
                text = f"told at {each.at_ns} ns to wait {each.wait_ns} ns, and refused at {at_ns[next_]} ns"
                yield Violation("P3", *name, None, text)


def _alternate(came_ns: Numbers, said_ns: Numbers) -> bool:
    """Whether each request came after the answer to the one before it."""
    if not 0 <= len(came_ns) - len(said_ns) <= 1:
        return False
    both = len(said_ns)
    return bool((came_ns[:both] <= said_ns).all() and (said_ns[: len(came_ns) - 1] <= came_ns[1:]).all())


def kept_wrong(periods: PeriodLog) -> Iterable[Violation]:
    """P4: at the end a counter in the store has what was charged of its period, less what was given back."""
    for row in periods.kept:
        use = periods.uses.get(row.quota)
        span = use.spans.get(row.start_ns) if use is not None else None
        used = span.used if span is not None else 0
        if use is not None and used != row.used:
            said = f"the store has counted {row.used} from {row.start_ns} ns on, {used} were charged"
            yield Violation("P4", use.rule, use.key, None, said)


def admitted_uncharged(log: Log, periods: PeriodLog) -> Iterable[Violation]:
    """P4: what callers were given was charged before; and no edge spends more than it was lent."""
    answers, processes = log.answers(), list(log.processes)
    names = [(rule, key) for _, rule, key in log.quotas]
    lent: Counter[tuple[int, bytes]] = Counter()
    for row in log.rows:
        if isinstance(row, Issued):
            lent[row.incarnation, row.quota] += row.units
    quotas: dict[Name, tuple[bytes, Use]] = {(use.rule, use.key): (at, use) for at, use in periods.uses.items()}
    given = answers.where(answers.charged & ~answers.degraded)
    for number, mine in given.by(given.quota):
        if names[number] not in quotas:
            continue
        quota, use = quotas[names[number]]
        if (units := int(mine.cost.sum())) > use.net:
            yield Violation("P4", use.rule, use.key, None, f"{units} were admitted, {use.net} were charged")
        here = mine.where(mine.at_edge)
        for process in np.unique(here.process).tolist():
            edge, incarnation = processes[process]
            spent = int(here.cost[here.process == process].sum())
            if spent > lent[incarnation, quota]:
                said = f"{edge} spent {spent} by itself, it was lent {lent[incarnation, quota]}"
                yield Violation("P4", use.rule, use.key, None, said)


def lifetimes_lost(periods: PeriodLog) -> Iterable[Violation]:
    """P5: what a fault took is what the store found missing."""
    stripped, missing = periods.lifetimes
    if stripped != missing:
        yield Violation("P5", "", (), None, f"{stripped} lifetimes were lost, {missing} were counted as missing")
