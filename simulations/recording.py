"""The event log of a run: rows of plain numbers and names, appended as things happen. Nothing is judged here.

Checkers and measures read only this. Two runs of one seed write the same log, byte for byte (`digest`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.key import encode_key, encode_quota
from apportion.core.messages import Acquire, AcquireAnswer, Quota, Report, Rules, Slices
from apportion.core.request import Application
from apportion.region.authority import Authority
from apportion.region.events import Consume, RollUp
from apportion.region.store import ChargesAnswer, RollupRow


class Offered(NamedTuple):
    """A request came to an edge; `rules` and `keys` are those that limit it, in the order of rule names."""

    at_ns: int
    edge: str
    rules: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    costs: tuple[int, ...]
    peek: bool


class Answered(NamedTuple):
    """One rule's verdict in a decision that was given, or of a shadow rule later.

    `epoch`: the label of the units charged, None where nothing was. `reason`: of the verdict, None when it allows.
    `alone`: no other rule was asked with it. `decided`: whether the request as a whole was admitted.
    """

    at_ns: int
    edge: str
    incarnation: int
    domain: str
    rule: str
    key: tuple[str, ...]
    cost: int
    decided: bool
    allowed: bool
    charged: bool
    epoch: int | None
    at_edge: bool
    degraded: bool
    shadow: bool
    reason: str | None
    alone: bool


class Waited(NamedTuple):
    """A request that had to cross has its decision."""

    at_ns: int
    came_ns: int
    deadline_ns: int


class Crossed(NamedTuple):
    """An edge sent a crossing with requests for these rules, sorted."""

    at_ns: int
    edge: str
    rules: tuple[str, ...]


class Issued(NamedTuple):
    """The region gave units of a quota and label to an edge: by a column, or lent ahead."""

    incarnation: int
    rule: str
    quota: bytes
    epoch: int
    units: int
    lent: bool


class Returned(NamedTuple):
    """An edge gave units of its slice back; it has them no more, whatever becomes of the message."""

    incarnation: int
    rule: str
    quota: bytes
    epoch: int
    units: int


class Sliced(NamedTuple):
    """Slices of an epoch were sent under a generation."""

    at_ns: int
    edge: str
    incarnation: int
    epoch: int
    generation: int
    units: int


class Anchored(NamedTuple):
    """A region started: `epoch` began at `start_ns` of virtual time, and lasts `length_ns` of it."""

    at_ns: int
    epoch: int
    start_ns: int
    length_ns: int


class Stored(NamedTuple):
    """Units that the store decided (`reported` False) at `store_ns` of its clock, or was told of by a report that was
    new.
    """

    store_ns: int
    quota: bytes
    epoch: int
    units: int
    reported: bool


class Ruled(NamedTuple):
    """The region is told other rules in `epoch`; `texts` of the rules files by name."""

    at_ns: int
    epoch: int
    version: int
    texts: tuple[tuple[str, str], ...]


class Counted(NamedTuple):
    """At the end, the rollup of the region's store has so many units of a quota and label."""

    quota: bytes
    epoch: int
    units: int


class Open(NamedTuple):
    """At the end, a request that came to this process has no decision."""

    at_ns: int
    edge: str
    came_ns: int
    deadline_ns: int


class Failed(NamedTuple):
    """A core wrote an error into its log."""

    who: str
    event: str
    fields: str


Row = (
    Offered
    | Answered
    | Waited
    | Crossed
    | Issued
    | Returned
    | Sliced
    | Anchored
    | Stored
    | Ruled
    | Counted
    | Open
    | Failed
)


class Recording:
    """The log; a `Journal`. `rows` are in the order in which they happened."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._columns: set[tuple[int, int]] = set()
        self._names: dict[str, dict[int, str]] = defaultdict(dict)

    def digest(self) -> str:
        """BLAKE2b-256 of the whole log."""
        digest = blake2b(digest_size=32)
        for row in self.rows:
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def forget(self, before: int) -> None:
        """Drop the rows, and what is known of columns of epochs `before` that: of a run too long to keep."""
        self.rows.clear()
        self._columns = {each for each in self._columns if each[1] >= before}

    # --- what happens, told by the world

    def offered(self, now_ns: int, edge: str, applications: tuple[Application, ...], peek: bool) -> None:
        self.rows.append(
            Offered(
                now_ns,
                edge,
                tuple([each.rule.name for each in applications]),
                tuple([each.key for each in applications]),
                tuple([each.cost for each in applications]),
                peek,
            )
        )

    def decided(self, now_ns: int, edge: str, incarnation: int, decision: Decision) -> None:
        self._answered(now_ns, edge, incarnation, decision.verdicts, decision.allowed)

    def shadowed(self, now_ns: int, edge: str, incarnation: int, verdict: Verdict) -> None:
        self._answered(now_ns, edge, incarnation, (verdict,), decided=True)

    def _answered(self, now_ns: int, edge: str, incarnation: int, verdicts: Iterable[Verdict], decided: bool) -> None:
        found = tuple(verdicts)
        alone = len(found) == 1
        for verdict in found:
            rule, reason = verdict.rule, verdict.reason
            if reason is Reason.PENDING:
                continue  # a shadow rule that was asked; its verdict comes by itself
            self.rows.append(
                Answered(
                    now_ns,
                    edge,
                    incarnation,
                    rule.domain,
                    rule.name,
                    verdict.key,
                    verdict.cost,
                    decided,
                    verdict.allowed,
                    verdict.charged,
                    verdict.epoch if verdict.charged else None,
                    verdict.scope is Scope.EDGE,
                    verdict.degraded,
                    rule.shadow,
                    reason.value if reason else None,
                    alone,
                )
            )

    def settled(self, now_ns: int, came_ns: int, deadline_ns: int) -> None:
        self.rows.append(Waited(now_ns, came_ns, deadline_ns))

    def region_sent(self, now_ns: int, authority: Authority, session: int, message: Slices | AcquireAnswer) -> None:
        edge = authority.edges[session]
        if isinstance(message, AcquireAnswer):
            for lent in message.lent:
                quota = edge.names[lent.quota]
                self.rows.append(
                    Issued(edge.incarnation, quota.rule, store_key(quota), lent.epoch, lent.units, lent=True)
                )
            return
        units = int(message.units.sum())
        self.rows.append(Sliced(now_ns, edge.hello.edge, edge.incarnation, message.epoch, message.generation, units))
        if (edge.incarnation, message.epoch) in self._columns:
            return  # the first slice wins; a copy gives nothing
        self._columns.add((edge.incarnation, message.epoch))
        for identity, given in zip(message.ids.tolist(), message.units.tolist(), strict=True):
            known = authority.table.by_id(identity)
            assert known is not None
            self.rows.append(
                Issued(edge.incarnation, known.quota.rule, known.store_key, message.epoch, given, lent=False)
            )

    def edge_sent(self, now_ns: int, edge: str, message: Any) -> None:
        if isinstance(message, Acquire | Report):
            self._names[edge].update((each.id, each.quota.rule) for each in message.names)
        if isinstance(message, Acquire):
            names = self._names[edge]
            rules = {names[member.quota] for group in message.groups for member in group.members}
            self.rows.append(Crossed(now_ns, edge, tuple(sorted(rules))))

    def returned(self, incarnation: int, epoch: int, units: dict[Quota, int]) -> None:
        for quota, each in units.items():
            self.rows.append(Returned(incarnation, quota.rule, store_key(quota), epoch, each))

    def anchored(self, now_ns: int, epoch: int, start_ns: int, length_ns: int) -> None:
        self.rows.append(Anchored(now_ns, epoch, start_ns, length_ns))

    def consumed(self, store_ns: int, command: Consume, answers: tuple[ChargesAnswer, ...]) -> None:
        for group, answer in zip(command.groups, answers, strict=True):
            if group.peek:
                continue
            for member, state in zip(group.members, answer.members, strict=True):
                units = answer.admitted * member.cost
                self.rows.append(Stored(store_ns, member.store_key, state.epoch, units, reported=False))

    def rolled_up(self, store_ns: int, command: RollUp, new: bool) -> None:
        if new:
            self.rows += [Stored(store_ns, row.store_key, row.epoch, row.units, reported=True) for row in command.rows]

    def ruled(self, now_ns: int, epoch: int, rules: Rules) -> None:
        self.rows.append(Ruled(now_ns, epoch, rules.version, rules.texts))

    def ended(self, now_ns: int, rollup: Iterable[RollupRow], waiting: Iterable[tuple[str, int, int]]) -> None:
        """Nothing more will happen. `waiting`: the edge of each open request, when it came, and its deadline."""
        self.rows += [Counted(row.store_key, row.epoch, row.units) for row in rollup]
        self.rows += [Open(now_ns, edge, came_ns, deadline_ns) for edge, came_ns, deadline_ns in waiting]

    def error(self, who: str, event: str, fields: Any) -> None:
        self.rows.append(Failed(who, event, repr(fields)))


def store_key(quota: Quota) -> bytes:
    """What a store files a quota under."""
    return encode_quota(quota.domain, quota.rule, quota.key)


def quota_key(domain: str, name: str, key: tuple[str, ...]) -> bytes:
    """The same, for a verdict."""
    return encode_quota(domain, name, encode_key(key))
