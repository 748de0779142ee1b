"""What a world tells of itself, written into the event log of the run. Two runs of one seed write the same log, byte
for byte (`Log.digest`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from apportion.core.counter import Count
from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import PeriodLimit
from apportion.core.messages import Acquire, AcquireAnswer, Quota, Report, Rules, Slices
from apportion.core.request import Application
from apportion.region.authority import Authority
from apportion.region.events import Consume, RollUp
from apportion.region.store import ChargedPeriod, ChargesAnswer, RollupRow
from apportion.simulations.disk import Disk
from apportion.simulations.log import NO_EPOCH, Log
from apportion.simulations.rows import (
    Anchored,
    Clocked,
    Counted,
    Crossed,
    Failed,
    Filed,
    GaveBack,
    Issued,
    Kept,
    Lifetimes,
    Open,
    Returned,
    Ruled,
    Sliced,
    Stored,
    Tallied,
    Told,
)

AT_EDGE, PENDING, OVER_LIMIT = Scope.EDGE, Reason.PENDING, Reason.OVER_LIMIT
"""Looked up once: an enumeration takes its time, and each answer asks."""


class Recording:
    """A `Journal` that writes `log`."""

    def __init__(self) -> None:
        self.log = Log()
        self._columns: set[tuple[int, int]] = set()
        self._names: dict[str, dict[int, str]] = defaultdict(dict)

    def take(self, before: int) -> Log:
        """The log so far, and begin another, of a run too long to keep; `before`: epochs of which no columns come."""
        log, self.log = self.log, Log()
        self.log.processes.update(log.processes)
        self._columns = {each for each in self._columns if each[1] >= before}
        log.pack()
        return log

    # --- what happens, told by the world

    def started(self, edge: str, incarnation: int) -> int:
        return self.log.processes[edge, incarnation]

    def offered(self, now_ns: int, process: int, applications: tuple[Application, ...], peek: bool) -> None:
        log, first, alone = self.log, True, len(applications) == 1
        for each in applications:
            rule = each.rule
            came = process, rule.domain, rule.name, each.key, each.cost, peek, first, alone  # as `Came`
            log.offered.add((now_ns, log.came[came]))
            first = False

    def decided(self, now_ns: int, process: int, decision: Decision) -> None:
        self._answered(now_ns, process, decision.verdicts, decision.allowed)

    def shadowed(self, now_ns: int, process: int, verdict: Verdict) -> None:
        self._answered(now_ns, process, (verdict,), decided=True)

    def _answered(self, now_ns: int, process: int, verdicts: tuple[Verdict, ...], decided: bool) -> None:
        log, alone = self.log, len(verdicts) == 1
        for verdict in verdicts:
            rule, charged, reason = verdict.rule, verdict.charged, verdict.reason
            if reason is PENDING:
                continue  # a shadow rule that was asked; its verdict comes by itself
            said = (
                process, rule.domain, rule.name, verdict.key, verdict.cost, decided, verdict.allowed, charged,
                verdict.scope is AT_EDGE, verdict.degraded, rule.shadow, reason.value if reason else None, alone,
            )  # fmt: skip  # as `Said`
            epoch = verdict.epoch if charged and verdict.epoch is not None else NO_EPOCH
            log.answered.add((now_ns, epoch, log.said[said]))
            if reason is OVER_LIMIT and isinstance(rule.limit, PeriodLimit) and verdict.retry_after_ns:
                log.add(Told(now_ns, rule.name, verdict.key, verdict.cost, verdict.retry_after_ns))

    def settled(self, now_ns: int, came_ns: int, deadline_ns: int) -> None:
        self.log.waited.add((now_ns, came_ns, deadline_ns))

    def region_sent(self, now_ns: int, authority: Authority, session: int, message: Slices | AcquireAnswer) -> None:
        edge = authority.edges[session]
        if isinstance(message, AcquireAnswer):
            for lent in message.lent:
                quota = edge.names[lent.quota]
                self.log.add(Issued(edge.incarnation, quota.rule, store_key(quota), lent.epoch, lent.units, lent=True))
            return
        units = int(message.units.sum())
        self.log.add(Sliced(now_ns, edge.hello.edge, edge.incarnation, message.epoch, message.generation, units))
        if (edge.incarnation, message.epoch) in self._columns:
            return  # the first slice wins; a copy gives nothing
        self._columns.add((edge.incarnation, message.epoch))
        for identity, given in zip(message.ids.tolist(), message.units.tolist(), strict=True):
            known = authority.table.by_id(identity)
            assert known is not None
            self.log.add(Issued(edge.incarnation, known.quota.rule, known.store_key, message.epoch, given, lent=False))

    def edge_sent(self, now_ns: int, edge: str, message: Any) -> None:
        if isinstance(message, Acquire | Report):
            self._names[edge].update((each.id, each.quota.rule) for each in message.names)
        if isinstance(message, Acquire):
            names = self._names[edge]
            rules = {names[member.quota] for group in message.groups for member in group.members}
            self.log.add(Crossed(now_ns, edge, tuple(sorted(rules))))

    def returned(self, incarnation: int, epoch: int, units: dict[Quota, int]) -> None:
        for quota, each in units.items():
            self.log.add(Returned(incarnation, quota.rule, store_key(quota), epoch, each))

    def anchored(self, now_ns: int, epoch: int, start_ns: int, length_ns: int) -> None:
        self.log.add(Anchored(now_ns, epoch, start_ns, length_ns))

    def consumed(self, store_ns: int, command: Consume, answers: tuple[ChargesAnswer, ...]) -> None:
        for group, answer in zip(command.groups, answers, strict=True):
            if group.peek or group.lent_over:
                continue
            for member, state in zip(group.members, answer.members, strict=True):
                units = answer.admitted * member.cost
                self.log.add(Stored(store_ns, member.store_key, state.epoch, units, reported=False))

    def clocked(self, row: Clocked) -> None:
        self.log.add(row)

    def tallied(
        self, now_ns: int, store_ns: int, wall_ns: int, command: Consume, answers: tuple[ChargesAnswer, ...]
    ) -> None:
        for group, answer in zip(command.groups, answers, strict=True):
            if group.peek:
                continue
            lent = group.lent_over > 0
            for member, state in zip(group.members, answer.members, strict=True):
                if isinstance(state, ChargedPeriod) and member.cost:
                    units = answer.admitted * member.cost
                    refused = 0 if lent or state.fits else group.count - answer.admitted
                    quota, cost = member.store_key, member.cost
                    row = Tallied(now_ns, store_ns, wall_ns, quota, state.epoch, units, cost, refused, lent)
                    self.log.add(row)

    def filed(self, now_ns: int, made: Sequence[bytes], reclaimed: Sequence[bytes]) -> None:
        for quotas, new in ((made, True), (reclaimed, False)):
            for quota in quotas:
                self.log.add(Filed(now_ns, quota, new))

    def gave_back(self, now_ns: int, command: RollUp) -> None:
        for row in command.given_back:
            self.log.add(GaveBack(now_ns, row.store_key, row.period, row.units))

    def rolled_up(self, store_ns: int, command: RollUp, new: bool) -> None:
        for row in command.rows if new else ():
            self.log.add(Stored(store_ns, row.store_key, row.epoch, row.units, reported=True))

    def ruled(self, now_ns: int, epoch: int, rules: Rules) -> None:
        self.log.add(Ruled(now_ns, epoch, rules.version, rules.texts))

    def ended(self, now_ns: int, rollup: Iterable[RollupRow], waiting: Iterable[tuple[str, int, int]]) -> None:
        """Nothing more will happen. `waiting`: the edge of each open request, when it came, and its deadline."""
        for row in rollup:
            self.log.add(Counted(row.store_key, row.epoch, row.units))
        for edge, came_ns, deadline_ns in waiting:
            self.log.add(Open(now_ns, edge, came_ns, deadline_ns))

    def kept(self, disk: Disk, stripped: int) -> None:
        """What the store has counted of periods at the end, and how often lifetimes were taken from it."""
        for record in disk.periods.values():
            if isinstance(record.counter, Count):
                self.log.add(Kept(record.store_key, record.counter.start_ns, record.counter.used))
        self.log.add(Lifetimes(stripped, disk.lifetimes_missing))

    def error(self, who: str, event: str, fields: Any) -> None:
        self.log.add(Failed(who, event, repr(fields)))


def store_key(quota: Quota) -> bytes:
    """What a store files a quota under."""
    return encode_quota(quota.domain, quota.rule, quota.key)


def quota_key(domain: str, name: str, key: tuple[str, ...]) -> bytes:
    """The same, for a verdict."""
    return encode_quota(domain, name, encode_key(key))
