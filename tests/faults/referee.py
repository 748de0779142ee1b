"""What happened, written down as it happens, and the oracles, which read nothing else (algorithms 6)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import RateLimit
from apportion.core.messages import AcquireAnswer, Quota, Slices
from apportion.core.meter import Meter
from apportion.core.request import Application
from apportion.core.rule import Enforce
from apportion.region.authority import Authority
from apportion.region.events import Consume, RollUp
from apportion.region.store import ChargesAnswer
from tests.faults.rules import rule

Name = tuple[str, tuple[str, ...]]
Label = tuple[bytes, int]

ANSWER_LATE_NS = 1_000_000
"""An answer comes by its deadline, or at the poll that it is due for."""


class Referee:
    """The event log of one run. `spent[rule, key][epoch]`: units charged by decisions that were really given."""

    def __init__(self) -> None:
        self.spent: dict[Name, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.spent_here: dict[tuple[int, bytes, int], int] = defaultdict(int)  # from slices and units borrowed ahead
        self.degraded: dict[tuple[int, bytes, int], int] = defaultdict(int)
        self.issued: dict[tuple[int, bytes, int], int] = defaultdict(int)
        self.generations: dict[int, set[int]] = defaultdict(set)
        self.in_store: dict[Label, int] = defaultdict(int)
        self.reported: dict[Label, int] = defaultdict(int)
        self.late: list[tuple[int, int, int]] = []
        self.errors: list[str] = []
        self.crossings: dict[tuple[str, int], int] = defaultdict(int)
        self.demand: list[tuple[int, str, int]] = []  # single-rule requests: when, rule, cost
        self.admitted: list[tuple[int, str, int]] = []
        self.given: dict[int, int] = defaultdict(int)  # units, by incarnation
        self.answers = 0
        self.units_returned = 0
        self.shadows: list[Verdict] = []
        self.incarnations: set[int] = set()
        self._sliced: set[tuple[int, int]] = set()

    # --- what happens

    def offered(self, now_ns: int, applications: tuple[Application, ...], peek: bool) -> None:
        """A request came."""
        if len(applications) == 1 and not peek:
            self.demand.append((now_ns, applications[0].rule.name, applications[0].cost))

    def decided(self, now_ns: int, incarnation: int, decision: Decision) -> None:
        """A decision was given."""
        self.answers += 1
        self.incarnations.add(incarnation)
        self.shadows += [v for v in decision.verdicts if v.shadow and v.reason is not Reason.PENDING]
        for verdict in decision.verdicts:
            if not verdict.charged or not isinstance(verdict.rule.limit, RateLimit):
                continue
            assert decision.allowed, "a refused request charges nothing"
            self._charge(incarnation, verdict)
            if len(decision.verdicts) == 1:
                self.admitted.append((now_ns, verdict.rule.name, verdict.cost))
        assert decision.allowed or not all(verdict.shadow for verdict in decision.verdicts), "a shadow refuses nobody"

    def shadowed(self, now_ns: int, incarnation: int, verdict: Verdict) -> None:
        """A shadow rule said what no decision waited for."""
        self.shadows.append(verdict)
        if verdict.charged:
            self._charge(incarnation, verdict)
            self.admitted.append((now_ns, verdict.rule.name, verdict.cost))

    def _charge(self, incarnation: int, verdict: Verdict) -> None:
        assert verdict.epoch is not None
        self.spent[verdict.rule.name, verdict.key][verdict.epoch] += verdict.cost
        self.given[incarnation] += verdict.cost
        key = quota_key(verdict.rule.name, verdict.key)
        if verdict.degraded:
            self.degraded[incarnation, key, verdict.epoch] += verdict.cost
        elif verdict.scope is Scope.EDGE:
            self.spent_here[incarnation, key, verdict.epoch] += verdict.cost

    def settled(self, now_ns: int, came_ns: int, deadline_ns: int) -> None:
        """A request that waited has its decision."""
        if now_ns > came_ns + deadline_ns + ANSWER_LATE_NS:
            self.late.append((now_ns, came_ns, deadline_ns))

    def region_sent(self, authority: Authority, session: int, message: Slices | AcquireAnswer) -> None:
        """The region gave rights to an edge: a column, or units ahead."""
        edge = authority.edges[session]
        if isinstance(message, AcquireAnswer):
            for lent in message.lent:
                self.issued[edge.incarnation, store_key(edge.names[lent.quota]), lent.epoch] += lent.units
            return
        self.generations[message.epoch].add(message.generation)
        if (edge.incarnation, message.epoch) in self._sliced:
            return
        self._sliced.add((edge.incarnation, message.epoch))
        for identity, units in zip(message.ids.tolist(), message.units.tolist(), strict=True):
            known = authority.table.by_id(identity)
            assert known is not None
            self.issued[edge.incarnation, known.store_key, message.epoch] += units

    def edge_sent(self, now_ns: int, edge: str, message: Any) -> None:
        """An edge said something."""
        if type(message).__name__ == "Acquire":
            self.crossings[edge, now_ns // 1_000_000_000] += 1

    def returned(self, incarnation: int, epoch: int, units: dict[Quota, int]) -> None:
        """An edge gave rights back: from this instant on it has them no more, whatever becomes of the message."""
        for quota, each in units.items():
            self.issued[incarnation, store_key(quota), epoch] -= each
            self.units_returned += each

    def consumed(self, command: Consume, answers: tuple[ChargesAnswer, ...]) -> None:
        """The store decided."""
        for group, answer in zip(command.groups, answers, strict=True):
            for member, state in zip(group.members, answer.members, strict=True):
                if not group.peek:
                    self.in_store[member.store_key, state.epoch] += answer.admitted * member.cost

    def rolled_up(self, command: RollUp, new: bool) -> None:
        """The store took a report, for the first time or again."""
        for row in command.rows if new else ():
            self.reported[row.store_key, row.epoch] += row.units

    def error(self, who: str, event: str, fields: Any) -> None:
        """A core wrote an error into its log."""
        self.errors.append(f"{who}: {event} {fields}")

    # --- what must hold

    def over(self) -> dict[Name, tuple[int, int]]:
        """S1, and the meter of design 4.1: quotas that were exceeded, with the worst over and the most above Q_k."""
        found = {}
        for name, key in self.spent:
            if rule(name).enforce is Enforce.EDGE:
                if above := self._above_bound(name, key):
                    found[name, key] = (above, above)
                continue
            meter, bound = self.meter(name, key), bound_of(rule(name), StoreKind.SQLITE).units
            assert bound is not None
            above = meter.above_quota if meter.divided and meter.above_quota is not None else 0
            if meter.worst > bound or above > bound:
                found[name, key] = (meter.worst, above)
        return found

    def _above_bound(self, name: str, key: tuple[str, ...]) -> int:
        """Units of the worst label of an `edge` quota above what so many processes may admit of one (design 4.1)."""
        limited = rule(name)
        worst = 0
        for epoch, units in self.spent[name, key].items():
            quota = quota_key(name, key)
            processes = sum((incarnation, quota, epoch) in self.spent_here for incarnation in self.incarnations)
            if name == "each":
                bound = processes * (20 + 20)
            else:
                assert name == "spread"
                bound = 176 + (processes - 1) * 22
            assert isinstance(limited.limit, RateLimit)
            worst = max(worst, units - bound)
        return worst

    def meter(self, name: str, key: tuple[str, ...] = ("k",)) -> Meter:
        """The meter of one quota over all labels."""
        limited = rule(name).for_key(key)
        assert isinstance(limited.limit, RateLimit)
        meter = Meter(limited.limit, limited.divided)
        labels = self.spent[name, key]
        for epoch in sorted(labels):
            meter.record(epoch, labels[epoch])
        return meter

    def divided_twice(self) -> dict[int, set[int]]:
        """S2: epochs of which slices of more than one generation were sent."""
        return {epoch: found for epoch, found in self.generations.items() if len(found) > 1}

    def spent_without_right(self) -> dict[tuple[int, bytes, int], tuple[int, int]]:
        """S4: what an incarnation spent of a label from its own hand beyond what it was itself given."""
        without_grant = {"each": 40, "spread": 22}
        alone = {quota_key(name, key): without_grant.get(name, 0) for name, key in self.spent}
        rights = {at: max(self.issued[at], alone.get(at[1], 0)) for at in self.spent_here}
        return {at: (units, rights[at]) for at, units in self.spent_here.items() if units > rights[at]}

    def miscounted(self, rollup: dict[Label, int]) -> dict[Label, tuple[int, int, int]]:
        """S3 and conservation: the rollup is what the store decided and what was reported first, and no more than what
        was decided in the store or given.
        """
        given = {
            (quota_key(name, key), epoch): units
            for (name, key), labels in self.spent.items()
            for epoch, units in labels.items()
        }
        found = {}
        for at in rollup.keys() | self.in_store.keys() | self.reported.keys():
            store, reported = self.in_store.get(at, 0), self.reported.get(at, 0)
            if rollup.get(at, 0) != store + reported or reported > given.get(at, 0):
                found[at] = (rollup.get(at, 0), store + reported, given.get(at, 0))
        return found

    def unreported(self, rollup: dict[Label, int]) -> dict[Label, tuple[int, int]]:
        """Labels of which more was given than the rollup says: right only where an edge died before its report."""
        found = {}
        for (name, key), labels in self.spent.items():
            for epoch, units in labels.items():
                known = rollup.get((quota_key(name, key), epoch), 0)
                if units > known:
                    found[quota_key(name, key), epoch] = (units, known)
        return found


def store_key(quota: Quota) -> bytes:
    """What a store files a quota under."""
    return encode_quota(quota.domain, quota.rule, quota.key)


def quota_key(name: str, key: tuple[str, ...]) -> bytes:
    """The same, for a verdict."""
    return encode_quota("api", name, encode_key(key))
