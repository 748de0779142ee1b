"""What must hold of every run, whatever fails: checked against the event log alone (algorithms 6, design 4.1).

Each checker is pure: the sums of a log in, violations in words out. `violations` runs all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.bounds_edge import together_units
from apportion.core.limit import PeriodLimit, RateLimit
from apportion.core.meter import Meter
from apportion.core.rule import Enforce, Fallback, Rule, RuleSet
from apportion.core.stages import fair_share
from apportion.region.store import ROLLUP_EPOCHS_KEPT
from apportion.simulations.checkers_window import over_in_a_second, over_in_the_store
from apportion.simulations.in_force import InForce
from apportion.simulations.log import NO_EPOCH, Flags, Log, Numbers
from apportion.simulations.sums import Name, Right, Sums, named
from apportion.simulations.violation import Violation

ANSWER_LATE_NS = 1_000_000
"""An answer comes by its deadline, or at the poll that it is due for."""


def violations(log: Log, rules: RuleSet) -> tuple[Violation, ...]:
    """Everything that is wrong with a run of `rules`, in no meaningful order; empty when all holds."""
    return judge(Sums(log), InForce(rules, log.rows))


def judge(sums: Sums, limits: InForce) -> tuple[Violation, ...]:
    """The same, of sums that were made before."""
    found: list[Violation] = []
    for check in (over_entitlement, spent_without_right, over_in_the_store, over_in_a_second):
        found += check(sums, limits)
    for simple in (divided_twice, miscounted, out_of_order, charged_and_refused, unanswered, failures):
        found += simple(sums)
    return tuple(found)


# --- S1: no label beyond the entitlement and the printed bound


def over_entitlement(sums: Sums, limits: InForce) -> Iterable[Violation]:
    """S1: the meter of each quota stays within the printed bound, stages included, by the largest limit in force."""
    spenders: dict[tuple[bytes, int], int] = defaultdict(int)
    for _, quota, epoch in sums.spent_here:
        spenders[quota, epoch] += 1
    for quota, (name, key) in sums.quotas.items():
        labels = sums.spent.get((name, key))
        if not labels:
            continue
        if any(rule.local for rule in limits.rules(name, min(labels), key)):
            yield from _over_at_edges(name, key, sums, limits, {at: spenders[quota, at] for at in labels})
        else:
            yield from _over_meter((name, key), sums, limits)


def _over_meter(quota: Name, sums: Sums, limits: InForce) -> Iterable[Violation]:
    name, key = quota
    meter: Meter | None = None
    for epoch, units in sorted(sums.spent[quota].items()):
        limit, rules = limits.limit(name, epoch, key), limits.rules(name, epoch, key)
        bound = _bound(rules)
        if limit is None or bound is None:
            continue
        meter = meter or Meter(limit, rules[0].divided)
        meter.divided = all(rule.divided for rule in rules)
        meter.become(limit)
        if (over := meter.record(epoch, units)) > bound:
            said = f"over by {over} by label, the bound is {bound}; {units} were admitted, Q_k is {limit.per_second:g}"
            yield Violation("S1", name, key, epoch, said)
        elif meter.divided and units - limit.units_in_epoch(epoch) > bound:
            said = f"{units} were admitted of {limit.units_in_epoch(epoch)} whole units, the bound is {bound} above"
            yield Violation("S1", name, key, epoch, said)


def _bound(rules: Sequence[Rule]) -> int | None:
    """The largest printed bound of the rules, on a store that keeps what it decided; None: one has none."""
    found = [bound_of(rule, StoreKind.SQLITE).units for rule in rules]
    return None if None in found else max(units or 0 for units in found)


def _over_at_edges(
    name: str, key: tuple[str, ...], sums: Sums, limits: InForce, spenders: dict[int, int]
) -> Iterable[Violation]:
    """Of an `edge` rule each label by itself: what so many processes may admit of one. A process counts as an edge."""
    for epoch, units in sorted(sums.spent[name, key].items()):
        rules = [rule for rule in limits.rules(name, epoch, key) if isinstance(rule.limit, RateLimit)]
        most = max((together_units(rule, spenders[epoch]) for rule in rules), default=units)
        if units > most:
            said = f"{spenders[epoch]} edges admitted {units} of one label, together they may {most}"
            yield Violation("S1", name, key, epoch, said)


# --- S2, S3, S4: divided once, counted once, spent by those who were given


def divided_twice(sums: Sums) -> Iterable[Violation]:
    """S2: slices of one epoch come from one generation."""
    for epoch, generations in sums.generations.items():
        if len(generations) > 1:
            yield Violation("S2", "", (), epoch, f"divided under the generations {sorted(generations)}")


def miscounted(sums: Sums) -> Iterable[Violation]:
    """S3: the rollup is what the store decided and what was reported first, which is no more than what was given."""
    if sums.counted is None:
        return
    given = {
        (quota, epoch): units
        for quota, name in sums.quotas.items()
        for epoch, units in sums.spent.get(name, {}).items()
    }
    newest = max((epoch for _, epoch in sums.counted), default=0)
    for at in sorted(sums.counted.keys() | sums.in_store.keys() | sums.reported.keys()):
        quota, epoch = at
        counted, store, reported = sums.counted.get(at, 0), sums.in_store[at], sums.reported[at]
        if epoch > newest - ROLLUP_EPOCHS_KEPT and counted != store + reported:
            said = f"the rollup has {counted}, the store decided {store} and was first told of {reported}"
            yield Violation("S3", *named(quota), epoch, said)
        if reported > given.get(at, 0):
            said = f"{reported} were reported as spent, {given.get(at, 0)} were given"
            yield Violation("S3", *named(quota), epoch, said)


def spent_without_right(sums: Sums, limits: InForce) -> Iterable[Violation]:
    """S4: an incarnation spends of a label what it was itself given and, cut off, what the stage of its rule says."""
    quotas = sums.quotas
    for right, units in sums.spent_here.items():
        _, quota, epoch = right
        name, key = quotas[quota]
        rules = limits.rules(name, epoch, key)
        if any(isinstance(rule.limit, PeriodLimit) for rule in rules):
            continue  # a chunk may be spent under any label: `checkers_period`
        most = max((_right(rule, sums.issued[right]) for rule in rules), default=units)
        if units > most:
            yield Violation("S4", name, key, epoch, f"an edge spent {units} of its own, it had a right to {most}")
    slices: dict[tuple[int, bytes], int] = {}
    for (incarnation, quota, _), units in sums.slices.items():
        slices[incarnation, quota] = max(slices.get((incarnation, quota), 0), units)
    for right, units in sums.degraded.items():
        yield from _degraded(right, units, sums, limits.rules(*_named_epoch(quotas, right)), slices)


def _named_epoch(quotas: dict[bytes, Name], right: Right) -> tuple[str, int, tuple[str, ...]]:
    name, key = quotas[right[1]]
    return name, right[2], key


def _degraded(
    right: Right, units: int, sums: Sums, rules: Sequence[Rule], slices: dict[tuple[int, bytes], int]
) -> Iterable[Violation]:
    incarnation, quota, epoch = right
    shares = [_shares(rule, slices.get((incarnation, quota), 0)) for rule in rules]
    if None in shares:
        return
    most = max([sums.issued[right], *(share or 0 for share in shares)])
    if units > most:
        yield Violation("S4", *named(quota), epoch, f"cut off, an edge spent {units}, its stages let it have {most}")


def _shares(rule: Rule, largest_slice: int) -> int | None:
    """The most that any stage of the rule lets one edge spend of a label; None: anything."""
    most = 0
    for stage in rule.when_unavailable:
        match stage.fallback:
            case Fallback.ALLOW:
                return None
            case Fallback.KEEP_SHARE:
                most = max(most, largest_slice)
            case Fallback.FAIR_SHARE:
                most = max(most, fair_share(rule))
    return most


def _right(rule: Rule, issued: int) -> int:
    if rule.enforce is not Enforce.EDGE or not isinstance(rule.limit, RateLimit):
        return issued
    return together_units(rule, 1) if rule.at_each_edge is not None else max(issued, rule.share())


# --- S8, S12, answers


def out_of_order(sums: Sums) -> Iterable[Violation]:
    """S12: no process goes back to a label that has passed, whatever its clock does; nor does the store."""
    spent = sums.charged
    spent = spent.where(spent.at_edge & spent.alone & ~spent.shadow)
    for process, mine in spent.by(spent.process):
        edge, latest = sums.processes[process][0], np.maximum.accumulate(mine.epoch)
        for quota, epoch, passed in _lines(mine.epoch < latest, mine.quota, mine.epoch, latest):
            name, key = sums.names[quota]
            yield Violation("S12", name, key, epoch, f"{edge} spent a label that had passed: it was in {passed}")
    epoch = 0
    for stored in sums.stores:
        if stored.epoch < epoch:
            yield Violation("S12", *named(stored.quota), stored.epoch, f"the store was in {epoch} already")
        epoch = max(epoch, stored.epoch)


def charged_and_refused(sums: Sums) -> Iterable[Violation]:
    """S8: a refused request charges nothing anywhere; and a shadow refuses nobody."""
    answers = sums.answers
    for quota, epoch, cost in _lines(answers.charged & ~answers.decided, answers.quota, answers.epoch, answers.cost):
        label = None if epoch == NO_EPOCH else epoch
        yield Violation("S8", *sums.names[quota], label, f"a refused request was charged {cost}")
    for quota, epoch in _lines(answers.shadow & answers.alone & ~answers.decided, answers.quota, answers.epoch):
        label = None if epoch == NO_EPOCH else epoch
        yield Violation("S8", *sums.names[quota], label, "a shadow rule refused a request")


def _lines(which: Flags, *columns: Numbers) -> Iterable[tuple[int, ...]]:
    """Some lines of columns."""
    return zip(*(column[which].tolist() for column in columns), strict=True)


def unanswered(sums: Sums) -> Iterable[Violation]:
    """Every request is answered by its deadline, if its process lives."""
    at, came, deadline = sums.waited
    for at_ns, came_ns, deadline_ns in _lines(at > came + deadline + ANSWER_LATE_NS, at, came, deadline):
        late = (at_ns - came_ns) / 1e6
        yield Violation("answer", "", (), None, f"came after {late:.1f} ms, due in {deadline_ns / 1e6:g} ms")
    for each in sums.open:
        if each.at_ns > each.came_ns + each.deadline_ns + ANSWER_LATE_NS:
            yield Violation("answer", "", (), None, f"never came at {each.edge} to a request of {each.came_ns} ns")


def failures(sums: Sums) -> Iterable[Violation]:
    """No core writes an error into its log."""
    for each in sums.failed:
        yield Violation("error", "", (), None, f"{each.who}: {each.event} {each.fields}")
