"""The allocator's control loop: standby, candidate, leader (design 5.1-5.5, 5.9, 5.10), as a pure state machine.

Events in, commands out, time as an argument; what it knows is soft and may be lost at any instant. Two facts make
double division impossible, whatever else fails: an epoch is divided only while a register shows it claimed under a
generation that this very process took, and only if it is above every epoch divided here before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from apportion.allocator.demand import TICKS_KEPT, DemandHistory
from apportion.allocator.events import Command, Connected, Event, Input, Lost, Polled, Received, Send
from apportion.allocator.links import Link, Links
from apportion.allocator.names import IGNORED, Names
from apportion.allocator.planning import Limits, Planned, make_plan
from apportion.allocator.silence import KnownEdge, Silence
from apportion.core.allocator_messages import (
    AllocatorHello,
    Claim,
    Demand,
    Governance,
    Lead,
    RegisterAnswer,
    Remembered,
)
from apportion.core.epoch import EpochClock
from apportion.core.errors import RulesError
from apportion.core.messages import EpochKind, Quota, Refused, Register, Rules
from apportion.core.rule import RuleSet

CLAIM_AFTER_NS = 500_000_000
"""Into an epoch at which the next is claimed: reports of the last have come, and its plan has time to travel."""

SILENCE_NS = 1_500_000_000
"""Without a new claim for this long, a standby takes the lead."""

ANSWER_NS = 250_000_000
"""A claim unanswered for this long is tried over another link, if there is one."""

MISSED_MAX = 2
"""Reports an edge may miss in a row and still be in the plan."""

Parse = Callable[[Sequence[tuple[str, str]]], RuleSet]


@dataclass(frozen=True, slots=True)
class Asked:
    """The latest question to the register: what, over which link, when."""

    message: Lead | Claim
    link: int
    at_ns: int


class Leader:
    """One allocator. `generation` is its own while it leads, else None; `register` the newest it has seen."""

    def __init__(self, name: str, incarnation: int, parse: Parse) -> None:
        self.generation: int | None = None
        self.register: Register | None = None
        self.rules_version = 0
        self.divided = -1
        self.incarnation = incarnation
        self._hello = AllocatorHello(name, incarnation)
        self._parse = parse
        self._limits = Limits(RuleSet({}, ""))
        self._links = Links()
        self._names = Names()
        self._history = DemandHistory()
        self._silence = Silence()
        self._clock = EpochClock()
        self._epoch = 0  # of the last clearing up
        self._refused = 0
        self._fence = -1
        self._plans: dict[int, Planned] = {}
        self._asked: Asked | None = None
        self._sign_ns = 0  # when a leader last gave a sign of life
        self._news_ns = 0  # when a register was last seen

    def step(self, event: Input, now_ns: int) -> list[Command]:
        """Take one event; returns what is to be done, in order. KeyError: an event of a link that is not connected."""
        commands: list[Command] = []
        match event:
            case Connected(link):
                commands = self._connect(link, now_ns)
            case Received(link, message):
                commands = self._receive(self._links[link], message, now_ns)
            case Lost(link):
                lost = self._links[link].governance
                if lost is not None:
                    self._silence.lose(lost.replica, self._clock.now(now_ns) or lost.tick.epoch)
                self._links.remove(link)
                if self._asked is not None and self._asked.link == link:
                    self._asked = None
            case Polled():
                pass
        return commands + self._advance(now_ns)

    def wake_ns(self, now_ns: int) -> int | None:
        """When to poll next if nothing happens before; None: there is nothing to wait for but events."""
        epoch = self._clock.now(now_ns)
        if epoch is None or not self._links.governed():
            return None
        instants = [self._clock.start_ns(epoch) + CLAIM_AFTER_NS, self._clock.start_ns(epoch + 1) + CLAIM_AFTER_NS]
        if self._asked is not None:
            instants += [self._asked.at_ns + ANSWER_NS, self._asked.at_ns + SILENCE_NS]
        if self.generation is None:
            instants.append(self._sign_ns + SILENCE_NS)
        return min(instant for instant in instants if instant > now_ns)

    # --- what happens -----------------------------------------------------------------------------------------------

    def _connect(self, number: int, now_ns: int) -> list[Command]:
        link = self._links.add(number)
        commands: list[Command] = [Send(number, self._hello)]
        if self.generation is not None:
            epoch = self._clock.now(now_ns) or 0
            commands += [self._send(link, self._plans[k]) for k in sorted(self._plans) if k >= epoch]
        return commands

    def _receive(self, link: Link, message: object, now_ns: int) -> list[Command]:
        match message:
            case Governance():
                return self._govern(link, message, now_ns)
            case RegisterAnswer():
                return self._answered(link, message, now_ns)
            case Demand():
                return self._demand(link, message, now_ns)
            case Rules():
                link.rules = message
                return self._adopt_rules(message)
            case Remembered():
                return self._remember(link, message, now_ns)
            case Refused(reason, retry):
                return [Event("region_refused", {"link": link.number, "reason": reason, "retry": retry}, "warning")]
        raise AssertionError(f"no message for an allocator: {message!r}")

    def _govern(self, link: Link, message: Governance, now_ns: int) -> list[Command]:
        if not self._links.governed():
            self._sign_ns = now_ns  # cut off from all regions until now: nobody could have seen a claim
        known = self.register
        other_store = known is not None and known.run_id != message.register.run_id
        commands = self._change_store(link, message.register) if other_store else []
        self._clock.observe(message.tick.epoch, message.tick.left_ns, now_ns)
        self._links.govern(link, message)
        self._silence.govern(message)
        if known is None or other_store or _age(message.register) >= _age(known):
            commands += self._see(message.register, now_ns)
        return commands

    def _change_store(self, link: Link, register: Register) -> list[Command]:
        """Another store counts its own epochs and rules versions. What was divided here stays divided all the same."""
        self._clock, self._history, self._epoch, self._refused = EpochClock(), DemandHistory(), 0, 0
        self.rules_version = 0
        self._silence.start_over()
        changed = Event("store_changed", {"run_id": register.run_id, "epoch_divided": self.divided}, "warning")
        return [changed, *(self._adopt_rules(link.rules) if link.rules else [])]

    def _see(self, register: Register, now_ns: int) -> list[Command]:
        """Take `register` as the present one, whatever it says."""
        known, self.register, self._news_ns = self.register, register, now_ns
        if known is None or (register.generation, _claimed(register)) > (known.generation, _claimed(known)):
            self._sign_ns = now_ns
        moved = known is not None and known.run_id != register.run_id
        if self.generation is None or (register.generation == self.generation and not moved):
            return []
        own, self.generation = self.generation, None
        self._plans.clear()
        self._asked = None
        self._sign_ns = now_ns
        return [Event("lead_lost", {"generation": own, "register_generation": register.generation}, "warning")]

    def _answered(self, link: Link, answer: RegisterAnswer, now_ns: int) -> list[Command]:
        if not link.outstanding:
            return [Event("answer_unasked", {"link": link.number}, "warning")]
        question = link.outstanding.popleft()
        known = self.register
        outdated = known is not None and known.generation > answer.register.generation and answer.done
        if outdated:
            return []  # somebody has taken the lead since
        commands = self._see(answer.register, now_ns)
        match question:
            case Lead(generation) if answer.done and answer.register.generation == generation:
                self.generation, self._fence = generation, answer.register.highest
                commands.append(Event("lead_taken", {"generation": generation, "highest": self._fence}))
            case Lead(generation):
                commands.append(Event("lead_refused", {"generation": generation}))
            case Claim(generation, epoch) if not answer.done and not self._is_own(epoch):
                commands.append(Event("claim_refused", {"generation": generation, "epoch": epoch}, "warning"))
        return commands

    def _demand(self, link: Link, message: Demand, now_ns: int) -> list[Command]:
        epoch = self._clock.now(now_ns)
        refused = link.heard.learn(message.names)
        commands: list[Command] = []
        if refused:
            commands.append(Event("names_refused", {"link": link.number, "names": refused}, "warning"))
        if epoch is None or message.epoch > epoch + 1:
            return [*commands, Event("demand_ignored", {"edge": message.holder, "epoch": message.epoch}, "warning")]
        quotas = link.heard.translate(message.ids, lambda quota: self._intern(quota, epoch))
        known = np.flatnonzero(quotas >= 0)
        self._names.hear(quotas[known], epoch)
        known = known[self._limits.divided(quotas[known])]
        quotas = quotas[known]
        if message.early:
            self._history.foresee(message.holder, message.epoch, quotas, message.demand[known])
            return commands
        self._silence.report(message.holder, message.epoch)
        ran_before = self._links.ran_before(message.holder)
        self._history.record(message.holder, message.epoch, quotas, message.demand[known], ran_before)
        return commands

    def _intern(self, quota: Quota, epoch: int) -> int:
        if not self._limits.divides(quota) and not self._silence.counts(quota):
            return IGNORED
        identity = self._names.intern(quota, epoch)
        if identity != IGNORED:
            self._limits.set(identity, quota)
            self._silence.name(identity, quota)
        return identity

    def _remember(self, link: Link, message: Remembered, now_ns: int) -> list[Command]:
        """What a replica knows of an edge's life, from before this allocator led or heard of it."""
        link.heard.learn(message.names)
        epoch = self._clock.now(now_ns)
        if message.left:
            self._silence.leave(message.edge, message.incarnation)
        elif epoch is not None and link.governance is not None:
            quotas = link.heard.translate(message.ids, lambda quota: self._intern(quota, epoch))
            told = KnownEdge(message.incarnation, message.reported_epoch, link.governance.replica, message.gone_epoch)
            self._silence.remember(message.edge, told, quotas, message.units.astype(np.int64))
        return []

    def _adopt_rules(self, message: Rules) -> list[Command]:
        if message.version <= self.rules_version:
            return []
        try:
            rules = self._parse(message.texts)
        except RulesError as error:
            # The region's parser took them, so it is another version than ours: go on with what we understood.
            return [Event("rules_refused", {"rules_version": message.version, "error": str(error)}, "error")]
        limits = Limits(rules)
        kept = np.zeros(len(self._names), np.bool_)
        for identity, quota in self._names.named():
            limits.set(identity, quota)
            kept[identity] = limits.divides(quota)
        self._silence.adopt(rules, self._names.named())
        self._history.keep_quotas(kept)
        self._limits, self.rules_version = limits, message.version
        for link in self._links:
            link.heard.reset()
        return [Event("rules_adopted", {"rules_version": message.version})]

    # --- what follows from it ---------------------------------------------------------------------------------------

    def _advance(self, now_ns: int) -> list[Command]:
        epoch = self._clock.now(now_ns)
        if self.register is None or epoch is None:
            return []
        commands = self._clear_up(epoch) if epoch > self._epoch else []
        if self.generation is None:
            return commands + self._stand_by(now_ns)
        for mark in self.register.marks:
            if mark.epoch >= epoch and mark.epoch > max(self.divided, self._fence) and self._is_own(mark.epoch):
                commands += self._divide(mark.epoch, epoch)
        return commands + self._claim(epoch, now_ns)

    def _is_own(self, epoch: int) -> bool:
        """Whether the register shows `epoch` claimed under the generation that is ours."""
        mark = self.register.mark(epoch) if self.register else None
        own = mark is not None and mark.kind is EpochKind.PLANNED and mark.generation == self.generation
        return own and self.generation is not None

    def _stand_by(self, now_ns: int) -> list[Command]:
        """Take the lead after SILENCE_NS without a sign, if the region has been heard of since the last one."""
        assert self.register is not None
        if now_ns - self._sign_ns < SILENCE_NS or self._news_ns <= self._sign_ns:
            return []
        if self._asked is not None and now_ns - self._asked.at_ns < self._patience_ns(self._asked):
            return []
        return self._ask(Lead(self.register.generation + 1), now_ns)

    def _claim(self, epoch: int, now_ns: int) -> list[Command]:
        """Claim the next epoch once half of this one has passed; over another link if an answer is overdue."""
        assert self.register is not None and self.generation is not None
        claim = Claim(self.generation, epoch + 1)
        if now_ns < self._clock.start_ns(epoch) + CLAIM_AFTER_NS:
            return []
        if claim.epoch <= max(self.register.highest, self.divided):
            return []
        asked = self._asked
        if asked is not None and asked.message == claim and now_ns - asked.at_ns < self._patience_ns(asked):
            return []
        return self._ask(claim, now_ns)

    def _patience_ns(self, asked: Asked) -> int:
        """How long after a question the next is asked: longer where only an answer on the same link could help."""
        waits = asked.message in self._links[asked.link].outstanding
        only = all(link.number == asked.link for link in self._links.governed())
        return SILENCE_NS if waits and only else ANSWER_NS

    def _ask(self, message: Lead | Claim, now_ns: int) -> list[Command]:
        link = self._links.next_after(self._asked.link if self._asked else None)
        if link is None:
            return []
        self._asked = Asked(message, link.number, now_ns)
        link.outstanding.append(message)
        return [Send(link.number, message)]

    def _divide(self, target: int, epoch: int) -> list[Command]:
        """Divide `target`, once and for all, and tell every replica."""
        assert self.generation is not None
        assert target > self.divided, "an epoch is divided once"
        assert target > self._fence, "what a former leader may have divided is not divided again"
        self.divided = target
        attached = self._links.attached()
        edges = tuple(edge for edge in self._history.edges() if self._takes_part(edge, attached.edges, epoch))
        planned = make_plan(
            self.generation,
            target,
            self.rules_version,
            self._limits,
            self._history.select(edges),
            attached,
            edges,
            self._silence.held(target, epoch),
        )
        self._silence.planned(planned.plan)
        self._plans[target] = planned
        fields = {
            "generation": self.generation, "epoch": target, "quotas": len(planned.quotas),
            "cells": planned.cells, "contended": planned.contended, "edges": len(edges),
        }  # fmt: skip
        return [*(self._send(link, planned) for link in self._links), Event("epoch_divided", fields, "debug")]

    def _takes_part(self, edge: int, attached: dict[int, int], epoch: int) -> bool:
        last = self._history.last_epoch(edge)
        return edge in attached and last is not None and epoch - 1 - last <= MISSED_MAX

    def _send(self, link: Link, planned: Planned) -> Command:
        return Send(link.number, replace(planned.plan, names=link.declared.declare(self._names, planned.quotas)))

    def _clear_up(self, epoch: int) -> list[Command]:
        """Once an epoch: forget plans that are over, edges that are gone, and quotas that nobody asks for."""
        self._epoch = epoch
        for past in [past for past in self._plans if past < epoch]:
            del self._plans[past]
        attached = self._links.attached().edges
        self._links.forget_edges(attached)
        for edge in self._history.edges():
            last = self._history.last_epoch(edge)
            if edge not in attached and last is not None and last < epoch - TICKS_KEPT:
                self._history.forget(edge)
        self._names.hear(self._silence.awake(), epoch)
        retired = self._names.retire(self._history.uses(len(self._names)), epoch)
        for link in self._links:
            link.heard.forget(retired)
        refused, self._refused = self._history.refused - self._refused, self._history.refused
        return [Event("cells_refused", {"cells": refused}, "warning")] if refused else []


def _claimed(register: Register) -> int:
    """The highest epoch that a leader claimed, as far as the register still knows."""
    return max((mark.epoch for mark in register.marks if mark.kind is EpochKind.PLANNED), default=-1)


def _age(register: Register) -> tuple[int, int, int]:
    """Registers of one store in the order in which they were written."""
    return register.generation, register.highest, register.last_ns
