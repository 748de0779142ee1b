"""A small world for the leader: one register, its replicas, and allocators whose commands are carried out or lost.

Nothing here decides anything: the register's transitions are the region's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apportion.allocator.events import Command, Connected, Event, Lost, Polled, Received, Send
from apportion.allocator.leader import Leader
from apportion.core.allocator_messages import Claim, Demand, Governance, Holder, Lead, Plan, RegisterAnswer
from apportion.core.key import encode_key
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Quota, QuotaName, Register, Rules, Tick
from apportion.core.rules_file import parse_rules
from apportion.region import register as registers

MS = 1_000_000
REPLICA = 900
E1, E2, E3 = 1, 2, 3

RULES = """
version: 1
domain: api
rules:
  - {name: search, match: {api: "*"}, key: [api], limit: {rate: 1000/s}, enforce: lease, when_unavailable: [deny]}
  - {name: small, match: {tenant: "*"}, key: [tenant], limit: {rate: 10/s}, enforce: lease, when_unavailable: [deny]}
  - {name: exact, match: {user: "*"}, key: [user], limit: {rate: 1000/s}, enforce: region, when_unavailable: [deny]}
"""


def quota(value: str = "web", rule: str = "search") -> Quota:
    """One quota of RULES."""
    return Quota("api", rule, encode_key([value]))


def leader(name: str = "one", incarnation: int = 1) -> Leader:
    """An allocator that has just started."""
    return Leader(name, incarnation, parse_rules)


def generation(allocator: Leader) -> int | None:
    """Under which generation it leads now (a function, for mypy takes an attribute to stay what it was)."""
    return allocator.generation


@dataclass
class World:
    """One region store and what was sent. `now_ns` is everybody's clock; epoch k starts at k seconds."""

    register: Register = field(
        default_factory=lambda: Register(anchor_epoch=1, anchor_ns=EPOCH_NS, last_ns=EPOCH_NS, run_id="run")
    )
    now_ns: int = EPOCH_NS
    edges: dict[int, int] = field(default_factory=dict)  # edge -> replica
    demand: dict[int, dict[Quota, int]] = field(default_factory=dict)  # edge -> what it reports of each epoch
    replicas: dict[int, int] = field(default_factory=dict)  # link -> replica
    plans: list[tuple[int, Plan]] = field(default_factory=list)  # with the link
    events: list[Event] = field(default_factory=list)
    asked: list[Lead | Claim] = field(default_factory=list)
    lose_answers: bool = False

    @property
    def epoch(self) -> int:
        """The epoch now."""
        return registers.epoch_at(self.register, self.now_ns)

    def governance(self, link: int = 1) -> Governance:
        """What the replica behind `link` says."""
        replica = self.replicas.get(link, REPLICA)
        holders = [Holder(edge, f"edge{edge}", "", False) for edge, at in self.edges.items() if at == replica]
        tick = Tick(self.epoch, registers.start_ns(self.register, self.epoch + 1) - self.now_ns)
        return Governance(tick, self.register, replica, (*holders, Holder(replica, "", "", True)), 1)

    def connect(self, allocator: Leader, link: int = 1) -> None:
        """Open a link, with rules and governance."""
        self.perform(allocator, allocator.step(Connected(link), self.now_ns))
        self.receive(allocator, Rules(1, (("rules.yaml", RULES),)), link)
        self.receive(allocator, self.governance(link), link)

    def receive(self, allocator: Leader, message: object, link: int = 1) -> None:
        """Deliver one message."""
        self.perform(allocator, allocator.step(Received(link, message), self.now_ns))  # type: ignore[arg-type]

    def poll(self, allocator: Leader) -> None:
        """Let the allocator look at the time."""
        self.perform(allocator, allocator.step(Polled(), self.now_ns))

    def lose(self, allocator: Leader, link: int = 1) -> None:
        """A link breaks."""
        self.perform(allocator, allocator.step(Lost(link), self.now_ns))

    def perform(self, allocator: Leader, commands: list[Command]) -> None:
        """Carry out commands; a claim or lead is applied and answered at once, unless answers are lost."""
        for command in commands:
            match command:
                case Event():
                    self.events.append(command)
                case Send(link, Plan() as plan):
                    self.plans.append((link, plan))
                case Send(link, (Lead() | Claim()) as question):
                    self.asked.append(question)
                    done = self.change(question)
                    if not self.lose_answers:
                        self.receive(allocator, RegisterAnswer(done, self.register), link)

    def change(self, question: Lead | Claim) -> bool:
        """Apply a question to the register."""
        at, asked = self.now_ns, question.generation
        if isinstance(question, Lead):
            changed = registers.lead(self.register, at, generation=asked)
        else:
            changed = registers.claim(self.register, at, generation=asked, epoch=question.epoch)
        if changed is not None:
            self.register = changed
        return changed is not None

    def roll(self) -> None:
        """The region marks an epoch that began unclaimed as direct."""
        self.register = registers.mark_direct(self.register, self.now_ns, epoch=self.epoch) or self.register

    def run(self, until_ns: int, *allocators: Leader, link: int = 1) -> None:
        """Let time pass to `until_ns`: governance each second, a poll whenever an allocator asked for one."""
        while True:
            next_epoch = registers.start_ns(self.register, self.epoch + 1)
            wakes = [wake for wake in (each.wake_ns(self.now_ns) for each in allocators) if wake is not None]
            instant = min([next_epoch, *wakes])
            if instant > until_ns:
                break
            self.now_ns = instant
            if instant == next_epoch:
                self.roll()
            for each in allocators:
                if instant == next_epoch:
                    self.receive(each, self.governance(link), link)
                    for edge, demand in self.demand.items():
                        self.report(each, edge, demand, link=link)
                else:
                    self.poll(each)
        self.now_ns = until_ns

    def report(
        self, allocator: Leader, edge: int, demand: dict[Quota, int], epoch: int | None = None, link: int = 1
    ) -> None:
        """An edge's report of the last finished epoch, named anew each time."""
        names = tuple(QuotaName(at, each) for at, each in enumerate(demand))
        units = np.array(list(demand.values()), np.uint64)
        ids = np.arange(len(demand), dtype=np.uint32)
        told = Demand(edge, self.epoch - 1 if epoch is None else epoch, names, ids, units)
        self.receive(allocator, told, link)

    def lead(self, allocator: Leader) -> None:
        """Run until `allocator` leads."""
        self.run(self.now_ns + 3 * EPOCH_NS, allocator)
        assert allocator.generation is not None

    def named(self, name: str) -> list[Event]:
        """The events of that name."""
        return [event for event in self.events if event.name == name]


def units_of(plan: Plan, holder: int, names: dict[int, Quota]) -> dict[Quota, int]:
    """What `holder` gets of each quota."""
    found = [column for column in plan.columns if column.holder == holder]
    return {
        names[identity]: units
        for column in found
        for identity, units in zip(column.ids.tolist(), column.units.tolist(), strict=True)
    }


def names_of(*plans: Plan) -> dict[int, Quota]:
    """What the ids mean after these messages, sent in this order on one link."""
    return {name.id: name.quota for plan in plans for name in plan.names}


def content(plan: Plan) -> tuple[object, ...]:
    """A plan without its declarations, for comparison."""
    columns = tuple((column.holder, column.ids.tolist(), column.units.tolist()) for column in plan.columns)
    return plan.generation, plan.epoch, plan.rules_version, columns, plan.held_ids.tolist(), plan.held.tolist()
