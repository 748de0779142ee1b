"""The regional authority: a pure state machine over edges, allocators and the store.

`step(event, now_ns)` takes what happened at store time `now_ns` and returns what to do. It opens no socket and awaits
nothing; the shell (`region.server`) performs the commands and brings the answers back as events. Who may spend what is
decided in three places only: the register (`region.register`), a plan (`region.plans`), a crossing (`region.crossing`).
"""

from __future__ import annotations

from functools import partial

from apportion.core.allocator_messages import AllocatorHello, Claim, Governance, Holder, Lead, Plan, RegisterAnswer
from apportion.core.messages import (
    Acquire,
    EpochKind,
    Hello,
    Leave,
    Register,
    Report,
    Return,
    Rules,
    RulesAck,
    Slices,
    Tick,
    Welcome,
    no_ids,
)
from apportion.core.rule import RuleSet
from apportion.region import register as registers
from apportion.region import slowing
from apportion.region.desk import Desk
from apportion.region.events import (
    AllocatorSpoke,
    Close,
    Closed,
    Command,
    Consumed,
    EdgeSpoke,
    Event,
    Note,
    RolledUp,
    RulesChanged,
    Send,
    Swapped,
    SwapRegister,
)
from apportion.region.lending import Lending
from apportion.region.plans import EPOCHS_KEPT, HeldPlan, Ledger, hold_plan
from apportion.region.quotas import QuotaTable
from apportion.region.registrar import Registrar, Settled, Transition, is_lead
from apportion.region.remembering import EdgeMemory
from apportion.region.reporting import RollingUp, rolled_up, take_report
from apportion.region.returning import take_back
from apportion.region.sessions import NAMES_MAX, SUPERSEDED_KEPT, AllocatorSession, Declared, EdgeSession, refuse
from apportion.region.thresholds import OverThreshold, is_grant
from apportion.region.turning import change_rules, follow_plan, tell_undivided
from apportion.region.versions import Versions


class Authority:
    """One region replica. `replica` is its random incarnation; `register` the store's register when it started."""

    def __init__(self, rules: Rules, ruleset: RuleSet, register: Register, replica: int) -> None:
        self.rules = rules
        self.ruleset = ruleset
        self.replica = replica
        self.versions = Versions(rules.version, ruleset)
        self.table = QuotaTable(self.versions.effective)
        self.registrar = Registrar(register)
        self.lending = Lending(self.table, kept_through=register.highest)
        self.ledger = Ledger()
        self.over_threshold = OverThreshold()
        self.desk = Desk(self.lending, self.ledger)
        self.memory = EdgeMemory(ruleset, self.table)
        self.edges: dict[int, EdgeSession] = {}
        self.allocators: dict[int, AllocatorSession] = {}
        self.epoch = 0
        self.lost_epoch: int | None = None  # in which a store began that had no record of what edges had seen before
        self._began = register.anchor_epoch if not register.highest else None
        self._superseded: dict[int, None] = {}
        self.requests = 0
        self.rollups: dict[int, RollingUp] = {}

    @property
    def register(self) -> Register:
        """The latest copy of the register."""
        return self.registrar.register

    def step(self, event: Event, now_ns: int) -> list[Command]:
        """Take an event; returns the commands to perform, in order."""
        commands = self._roll(now_ns) + follow_plan(self)
        match event:
            case EdgeSpoke(session, message):
                commands += self._edge_spoke(session, message, now_ns)
            case AllocatorSpoke(session, message):
                commands += self._allocator_spoke(session, message, now_ns)
            case Closed(session):
                commands += self._closed(session, now_ns)
            case Consumed():
                commands += self._consumed(event, now_ns)
            case Swapped():
                commands += self._settle(self.registrar.swapped(event, now_ns), now_ns)
            case RolledUp():
                commands += rolled_up(self, event)
            case RulesChanged(rules, ruleset):
                self.memory.adopt(ruleset)
                commands += change_rules(self, rules, ruleset) + self._governance(now_ns)
        return commands

    def wake_ns(self) -> int:
        """Store time of the next epoch's start, by which `step` must be called again."""
        return registers.start_ns(self.register, self.epoch + 1)

    def tick(self, now_ns: int) -> Tick:
        """The epoch at `now_ns` and what it still lasts."""
        at = self.lending.instant(self.register, now_ns)
        return Tick(at.epoch, at.left_ns)

    # --- time

    def _roll(self, now_ns: int) -> list[Command]:
        """Begin a new epoch: mark it direct if nobody claimed it, tell everybody the time, forget what is old."""
        epoch = registers.epoch_at(self.register, now_ns)
        if epoch <= self.epoch:
            return []
        self.epoch = epoch
        commands: list[Command] = []
        if self.register.mark(epoch) is None:
            commands += self._change(partial(registers.mark_direct, epoch=epoch), None, now_ns)
        tick = self.tick(now_ns)
        commands += [Send(session, tick) for session in self.edges]
        commands += self._governance(now_ns)
        self.ledger.forget(epoch - EPOCHS_KEPT)
        self.over_threshold.forget(epoch - OverThreshold.EPOCHS)
        for old in [old for old in self.lending.plans if old < epoch - EPOCHS_KEPT]:
            del self.lending.plans[old]
        commands += slowing.tell(self.lending, self.lending.plans.get(epoch), self.register)
        self.memory.roll(epoch)
        for edge in self.memory.mute(self.edges.values(), epoch):
            refused = refuse(edge.session, "no report came for 6 s", retry=True)
            commands += [*self._closed(edge.session, now_ns), *refused]
        forgotten = self.table.forget_idle(epoch)
        self.ledger.forget_quotas(forgotten)
        for identity in forgotten:
            for declared in self._declared():
                declared.forget(identity)
        return commands

    def _declared(self) -> list[Declared]:
        edges, allocators = self.edges.values(), self.allocators.values()
        return [edge.declared for edge in edges] + [allocator.declared for allocator in allocators]

    def _change(self, transition: Transition, session: int | None, now_ns: int) -> list[Command]:
        return self._settle(self.registrar.ask(transition, session, now_ns), now_ns)

    def _settle(self, outcome: tuple[list[Settled], list[SwapRegister]], now_ns: int) -> list[Command]:
        settled, swaps = outcome
        commands: list[Command] = list(swaps)
        for led in [each.change for each in settled if each.done and is_lead(each.change)]:
            commands += self._tell(led.session)
        commands += [
            Send(each.change.session, RegisterAnswer(each.done, self.register))
            for each in settled
            if each.change.session is not None
        ]
        if any(each.done for each in settled):
            commands += self._governance(now_ns)
        return commands

    def _tell(self, session: int | None) -> list[Command]:
        """What an allocator must know of edges before it divides."""
        peer = self.allocators.get(session or 0)
        return [Send(peer.session, each) for each in self.memory.tell(peer, self.epoch)] if peer else []

    def _governance(self, now_ns: int) -> list[Command]:
        holders = (
            *(edge.holder() for edge in self.edges.values()),
            Holder(self.replica, "", "", replica=True),
        )
        news = Governance(self.tick(now_ns), self.register, self.replica, holders, self.rules.version)
        return [Send(session, news) for session in self.allocators]

    # --- edges

    def _edge_spoke(self, session: int, message: object, now_ns: int) -> list[Command]:
        edge = self.edges.get(session)
        match message:
            case Acquire() if edge is not None:
                return self._acquire(edge, message, now_ns)
            case Hello() if edge is None:
                return self._attach(session, message, now_ns)
            case Report() if edge is not None:
                return take_report(self, edge, message)
            case Return() if edge is not None:
                return take_back(self, edge, message, now_ns)
            case RulesAck(version) if edge is not None:
                edge.rules_version = version
                return []
            case Leave() if edge is not None:
                return [*self._closed(session, now_ns, left=True), Close(session)]
        return refuse(session, "the first message of a stream is Hello, and only the first", retry=False)

    def _attach(self, session: int, hello: Hello, now_ns: int) -> list[Command]:
        namesakes = [edge for edge in self.edges.values() if edge.hello.edge == hello.edge]
        if hello.incarnation in self._superseded and namesakes:
            reason = f"another process attached as edge {hello.edge!r}: give each its own --id"
            return refuse(session, reason, retry=True)
        twins = [edge for edge in self.edges.values() if edge.incarnation == hello.incarnation]
        if hello.incarnation == self.replica or any(edge.hello.edge != hello.edge for edge in twins):
            # A copied machine: slices are bound to an incarnation, so two of one would spend the same units twice.
            return refuse(session, "this incarnation is attached already; start the process anew", retry=False)
        commands: list[Command] = []
        for other in namesakes:
            if other.incarnation != hello.incarnation:
                self._supersede(other.incarnation)
            reason = f"edge {hello.edge!r} attached anew"
            commands += refuse(other.session, reason, retry=other.incarnation == hello.incarnation)
            del self.edges[other.session]
        edges_max = self.ruleset.edges_max
        if edges_max is not None and len(self.edges) >= edges_max:
            return commands + refuse(session, f"edges_max is {edges_max} and as many are attached", retry=True)
        if self._began is not None and 0 < hello.epoch < self._began:
            self.lost_epoch = self._began
        edge = EdgeSession(session, hello)
        edge.last_report = max(
            0, self.epoch - EPOCHS_KEPT
        )  # what it resends is news to allocators that remember as much
        edge.attached_epoch = self.epoch
        self.edges[session] = edge
        self.memory.attached(edge, self.epoch)
        commands.append(Send(session, Welcome(self.rules, self.tick(now_ns), self.replica)))
        commands += [self._slices(edge, plan.epoch) for plan in self.lending.plans.values() if plan.epoch >= self.epoch]
        commands += tell_undivided(self, edge)
        commands.append(Note("info", "edge_attached", (("edge", hello.edge), ("incarnation", hello.incarnation))))
        return commands + self._governance(now_ns)

    def _supersede(self, incarnation: int) -> None:
        self._superseded[incarnation] = None
        while len(self._superseded) > SUPERSEDED_KEPT:
            del self._superseded[next(iter(self._superseded))]

    def _closed(self, session: int, now_ns: int, left: bool = False) -> list[Command]:
        edge = self.edges.pop(session, None)
        gone = self.allocators.pop(session, None)
        if edge is None:
            return [] if gone is None else [Note("info", "allocator_detached", (("allocator", gone.hello.allocator),))]
        news = self.memory.gone(edge, self.epoch, left)
        told = [Send(peer, news) for peer in self.allocators] if news else []
        return [Note("info", "edge_detached", (("edge", edge.hello.edge),)), *told, *self._governance(now_ns)]

    def _slices(self, edge: EdgeSession, epoch: int) -> Send:
        plan = self.lending.plans[epoch]
        ids, units = plan.column(edge.incarnation)
        names, kept = edge.declared.names_for(ids, self.table), plan.kept.get(edge.incarnation, no_ids())
        return Send(edge.session, Slices(epoch, plan.generation, plan.rules_version, names, ids, units, kept))

    # --- crossings

    def _acquire(self, edge: EdgeSession, message: Acquire, now_ns: int) -> list[Command]:
        if message.names:
            edge.names.update((name.id, name.quota) for name in message.names)
        if len(edge.names) > NAMES_MAX:
            return refuse(edge.session, f"more than {NAMES_MAX} names declared on one stream", retry=True)
        edge.crossings += 1
        at = self.lending.instant(self.register, now_ns)
        consume = self.desk.take_in(edge, message, self.register, at)
        if consume.groups:
            return [consume]
        return self._consumed(Consumed(consume.request, ()), now_ns)

    def _consumed(self, event: Consumed, now_ns: int) -> list[Command]:
        if event.request == slowing.TELLING:
            return []
        edge, reply = self.desk.finish(event, self.tick(now_ns))
        # A stream that ended meanwhile gets nothing: what was charged stays charged, never twice.
        return [Send(edge.session, reply)] if self.edges.get(edge.session) is edge else []

    # --- allocators

    def _allocator_spoke(self, session: int, message: object, now_ns: int) -> list[Command]:
        peer = self.allocators.get(session)
        match message:
            case AllocatorHello() if peer is None:
                self.allocators[session] = AllocatorSession(session, message)
                note = Note("info", "allocator_attached", (("allocator", message.allocator),))
                return [Send(session, self.rules), *self._governance(now_ns), *self._tell(session), note]
            case Lead(generation) if peer is not None:
                return self._change(partial(registers.lead, generation=generation), session, now_ns)
            case Claim(generation, epoch) if peer is not None:
                return self._change(partial(registers.claim, generation=generation, epoch=epoch), session, now_ns)
            case Plan() if peer is not None:
                return self._plan(peer, message, now_ns)
        return refuse(session, "the first message of a stream is AllocatorHello, and only the first", retry=False)

    def _plan(self, peer: AllocatorSession, plan: Plan, now_ns: int) -> list[Command]:
        peer.learn(plan.names)
        mark = self.register.mark(plan.epoch)
        if plan.epoch in self.lending.plans or plan.epoch < self.epoch:
            return []
        problem = None
        if mark is None or mark.kind is not EpochKind.PLANNED or mark.generation != plan.generation:
            problem = "the epoch is not claimed under the plan's generation"
        rules = self.versions.lookup(plan.rules_version)
        if problem is None and rules is None:
            problem = f"made for rules version {plan.rules_version}, in force is {self.rules.version}"
        if problem is None and rules is not None:
            held = hold_plan(plan, self.replica, peer.localizer(plan, self.table), self.table, rules)
            if not isinstance(held, str):
                self.lending.plans[plan.epoch] = held
                self._issue(held)
                self.memory.planned(held)
                told = slowing.tell(self.lending, held if held.epoch == self.epoch else None, self.register)
                return [*told, *(self._slices(edge, plan.epoch) for edge in self.edges.values())]
            problem = held
        return [Note("error", "plan_refused", (("epoch", plan.epoch), ("reason", problem)))]

    def _issue(self, plan: HeldPlan) -> None:
        for holder, (ids, units) in plan.columns.items():
            for identity, each in zip(ids.tolist(), units.tolist(), strict=True):
                known = self.table.by_id(identity)
                if known is not None and is_grant(known.rule):
                    self.ledger.issue(plan.epoch, holder, identity, each)
