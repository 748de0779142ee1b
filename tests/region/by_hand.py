"""An authority whose edges, allocators and store are played by hand; the store decides with the product's buckets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from apportion.core.allocator_messages import AllocatorHello, Claim, Column, Lead, Plan
from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    Group,
    GroupAnswer,
    Hello,
    Member,
    Quota,
    QuotaName,
    Refused,
    Register,
    Report,
    Rules,
    Slices,
)
from apportion.core.rules_file import parse_rules
from apportion.region.authority import Authority
from apportion.region.buckets import Buckets
from apportion.region.events import (
    AllocatorSpoke,
    Closed,
    Consume,
    Consumed,
    EdgeSpoke,
    Event,
    Note,
    Polled,
    RolledUp,
    RollUp,
    Send,
    Swapped,
    SwapRegister,
)

MS = 1_000_000
T0 = 100 * EPOCH_NS
"""Store time at the start; epoch 7 begins at that instant."""

EPOCH = 7
REPLICA = 900
E1, E2 = 11, 22
"""Incarnations of two edges."""

TEXT = """
version: 1
domain: api
edges_max: 3
rules:
  - {name: exact, match: {e: "*"}, key: [e], limit: {rate: 10/s}, enforce: region, when_unavailable: [deny]}
  - {name: free, match: {n: "*"}, key: [n], limit: {unlimited: true}, enforce: region, when_unavailable: [deny]}
  - {name: lease, match: {l: "*"}, key: [l], limit: {rate: 100/s, burst: 50}, enforce: lease, when_unavailable: [deny]}
  - {name: small, match: {s: "*"}, key: [s], limit: {rate: 5/s}, enforce: lease, when_unavailable: [deny]}
"""
RULES = Rules(1, (("rules.yaml", TEXT),))
REGISTER = Register(anchor_epoch=EPOCH, anchor_ns=T0, last_ns=T0, run_id="run")
ALLOCATOR = 50
"""The allocator's session."""

NAMES = ("exact", "lease", "small", "free")
"""Edges and the allocator of these tests call the quota of each rule by its place here."""

Said = TypeVar("Said")


def quota(name: str, key: str = "k") -> Quota:
    """A quota of TEXT."""
    return Quota("api", name, encode_key((key,)))


def declared() -> tuple[QuotaName, ...]:
    """The names that the peers of these tests use."""
    return tuple(QuotaName(at, quota(name)) for at, name in enumerate(NAMES))


def group(*members: tuple[str, int], count: int = 1, peek: bool = False) -> Group:
    """Requests that need so many units of these rules."""
    return Group(count, tuple(Member(NAMES.index(name), cost) for name, cost in members), peek)


@dataclass
class ByHand:
    """One region. Store answers come back at once unless `store_waits`; `failing`: the store fails."""

    register: Register = REGISTER
    authority: Authority = field(init=False)
    now_ns: int = T0
    store_waits: bool = False
    failing: bool = False
    waiting: list[Event] = field(default_factory=list)
    commands: list[Any] = field(default_factory=list)
    rolled: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.buckets = Buckets()
        self._added: set[tuple[int, int]] = set()
        self.authority = Authority(RULES, parse_rules(RULES.texts), self.register, REPLICA)
        self.step(Polled())

    def step(self, event: Event) -> None:
        """Let something happen, and the store answer."""
        commands = self.authority.step(event, self.now_ns)
        self.commands += commands
        for command in commands:
            answer = self._store(command)
            if answer is not None and self.store_waits:
                self.waiting.append(answer)
            elif answer is not None:
                self.step(answer)

    def store_answers(self) -> None:
        """Let the store's answers arrive that waited."""
        self.store_waits = False
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            self.step(event)

    def _store(self, command: Any) -> Event | None:
        match command:
            case Consume(request, groups, anchor):
                answers = None if self.failing else self.buckets.decide(groups, anchor, self.now_ns)
                return Consumed(request, answers)
            case SwapRegister(request, old, new):
                if self.failing:
                    return Swapped(request, done=False, register=None)
                done = self.register == old
                self.register = new if done else self.register
                return Swapped(request, done, self.register)
            case RollUp(request, source, number, rows):
                added = (source, number) not in self._added
                if not self.failing and added:
                    self._added.add((source, number))
                    for row in rows:
                        at = row.store_key, row.epoch
                        self.rolled[at] = self.rolled.get(at, 0) + row.units
                return RolledUp(request, done=not self.failing, new=added)
        return None

    def pass_ms(self, duration: float) -> None:
        """Let time pass, and be polled."""
        self.now_ns += int(duration * MS)
        self.step(Polled())

    def edge(self, session: int, message: Any) -> None:
        """An edge says something."""
        self.step(EdgeSpoke(session, message))

    def attach(self, session: int = 1, incarnation: int = E1, name: str = "") -> None:
        """An edge attaches and has asked for every rule once, with a peek."""
        self.edge(session, Hello(name or f"edge-{incarnation}", "here", incarnation, 0, 0))

    def ask(
        self, *groups: Group, session: int = 1, number: int = 1, ahead: tuple[tuple[int, int], ...] = ()
    ) -> tuple[GroupAnswer, ...]:
        """A crossing, and its answers."""
        self.edge(session, Acquire(number, declared(), groups, ahead))
        return self.answers(session)[-1].groups

    def answers(self, session: int = 1) -> list[AcquireAnswer]:
        """Answers to crossings so far."""
        return self.sent(AcquireAnswer, session)

    def report(
        self, session: int = 1, number: int = 1, epoch: int = EPOCH, *spent: tuple[str, int, int], demand: int = 0
    ) -> None:
        """A report: rows of rule, label, units; `demand` of `lease`."""
        self.edge(
            session,
            Report(
                number,
                epoch,
                declared(),
                np.array([1], np.uint32),
                np.array([demand], np.uint64),
                np.array([NAMES.index(name) for name, _, _ in spent], np.uint32),
                np.array([label for _, label, _ in spent], np.uint64),
                np.array([units for _, _, units in spent], np.uint64),
            ),
        )

    def lead(self, generation: int = 1) -> None:
        """An allocator attaches and takes the lead."""
        self.step(AllocatorSpoke(ALLOCATOR, AllocatorHello("allocator", 77)))
        self.step(AllocatorSpoke(ALLOCATOR, Lead(generation)))

    def claim(self, epoch: int, generation: int = 1) -> None:
        """The allocator claims an epoch."""
        self.step(AllocatorSpoke(ALLOCATOR, Claim(generation, epoch)))

    def plan(self, epoch: int = EPOCH + 1, generation: int = 1, version: int = 1, held: int = 0, **units: int) -> None:
        """The allocator divides `lease`; holders as e1, e2, pool. `held`: what nobody gets."""
        holders = {"e1": E1, "e2": E2, "pool": REPLICA}
        columns = tuple(
            Column(holders[name], np.array([1], np.uint32), np.array([each], np.uint64)) for name, each in units.items()
        )
        back = (np.array([1], np.uint32), np.array([held], np.uint64)) if held else ()
        self.step(AllocatorSpoke(ALLOCATOR, Plan(generation, epoch, version, declared(), columns, *back)))

    def planned(self, **units: int) -> None:
        """Lead, claim the next epoch, divide it, and let it begin."""
        self.lead()
        self.claim(EPOCH + 1)
        self.plan(**units)
        self.pass_ms(1000)

    def close(self, session: int) -> None:
        """A stream ends."""
        self.step(Closed(session))

    def sent(self, kind: type[Said], session: int) -> list[Said]:
        """Messages of that kind sent on a stream."""
        return [
            each.message
            for each in self.commands
            if isinstance(each, Send) and each.session == session and isinstance(each.message, kind)
        ]

    def planned_slices(self, session: int) -> list[Slices]:
        """Slices of plans sent on a stream; those without a generation say that nobody divided the epoch."""
        return [each for each in self.sent(Slices, session) if each.generation]

    def notes(self) -> list[str]:
        """Events logged."""
        return [each.event for each in self.commands if isinstance(each, Note)]


def store_key(name: str, key: str = "k") -> bytes:
    """What the store files a quota under."""
    return encode_quota("api", name, encode_key((key,)))


def attached() -> ByHand:
    """A region with one edge that has named its quotas."""
    region = ByHand()
    region.attach()
    region.ask(group(("exact", 0), ("lease", 0)))
    return region


def refusals(region: ByHand, session: int = 1) -> list[tuple[str, bool]]:
    """Refusals sent on a stream."""
    return [(each.reason, each.retry) for each in region.sent(Refused, session)]
