"""The edge's agent: a pure state machine that decides from what it holds and crosses to the region for the rest.

`ask` answers a request at once or gives a ticket; `step` takes what happened and returns what to do. It reads no clock,
opens no socket and awaits nothing. Order of work (design 4): local checks, reserve local units, one crossing with all
rules that need one, then commit or release; a denied or peeked request charges nothing anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from apportion.core.decision import Decision
from apportion.core.epoch import EpochClock
from apportion.core.errors import RulesError
from apportion.core.match import Matcher
from apportion.core.messages import (
    AcquireAnswer,
    GroupAnswer,
    Hello,
    Leave,
    Outcome,
    Refused,
    ReportAck,
    Rules,
    Slices,
    Tick,
    Welcome,
)
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.edge import verdicts as say
from apportion.edge.chunks import Leased
from apportion.edge.crossing import RETRY_NS, deal, unanswered
from apportion.edge.events import Command, Connected, Event, Lost, Note, Received, Reconnect, Send, Settled, Shadowed
from apportion.edge.fallback import Fallbacks
from apportion.edge.holding import Holding
from apportion.edge.holdings import Holdings
from apportion.edge.kept import Kept
from apportion.edge.lanes import Lanes
from apportion.edge.part import Part
from apportion.edge.reporting import Reports, encode
from apportion.edge.requests import Requests
from apportion.edge.returning import Returns, probe_in_ns
from apportion.edge.routine import Routine
from apportion.edge.ruling import Load, Ruling
from apportion.edge.shadows import Shadows
from apportion.edge.ticket import Ticket

POLL_NS = 100_000_000
"""How often an edge without a region looks whether something is due."""

SILENT_NS = 1_500_000_000
"""A stream on which nothing was heard for so long is given up."""


class Agent:
    """One edge. `incarnation` is random at its start; `load` parses rules texts (`core.rules_file`)."""

    def __init__(self, edge: str, location: str, incarnation: int, load: Load) -> None:
        self.edge = edge
        self.location = location
        self.incarnation = incarnation
        self.clock = EpochClock()
        self._ruling = Ruling(load)
        self._stream = 0
        self._attached = False
        self._heard_ns = 0
        self._wake_ns = 0
        self._epoch: int | None = None
        self._holdings = Holdings(self.clock)
        self._returns = Returns(self._holdings)
        self._crossings = Lanes()
        self._reports = Reports()
        self._routine = Routine(self.clock, self._crossings, self._reports, self._returns, self._ruling)
        self.fallbacks = Fallbacks(self.clock, self._holdings, self._reports)
        self._requests = Requests(self.clock, self._holdings, self._reports, self.fallbacks)
        self._tickets = count(1)
        self._shadows = Shadows(self._requests, self._crossings, self._tickets)

    @property
    def rules(self) -> Rules | None:
        """The rules that the region sent last, None before the first."""
        return self._ruling.rules

    @property
    def matchers(self) -> dict[str, Matcher]:
        """What requests are matched by now, by domain."""
        return self._ruling.matchers

    @property
    def ready(self) -> bool:
        """Whether rules are in force: while the region is away, they say what happens."""
        return self.rules is not None

    @property
    def attached(self) -> bool:
        """Whether the region has been heard on the present stream."""
        return self._attached

    def boot(self, kept: Kept, ruleset: RuleSet, now_ns: int) -> None:
        """Begin with what was kept for the case that the region is away; the region's own word replaces it."""
        assert self.rules is None, "only before the region was heard"
        self._ruling.begin(kept.rules, ruleset)
        self._holdings.restore(dict(kept.slices))
        self.fallbacks.boot(kept.silent_ns, now_ns)
        self.clock.begin_provisionally(now_ns)
        self._roll(now_ns)

    def keep(self, now_ns: int) -> Kept | None:
        """What a later process of this edge would boot with; None before the first rules."""
        epoch = self._roll(now_ns)
        if self.rules is None or epoch is None:
            return None
        slices = self._holdings.last_slices(epoch)
        return Kept(self.edge, self.rules, tuple(slices.items()), self.fallbacks.silent_ns(now_ns))

    @property
    def holdings(self) -> int:
        """How many quotas are known here now."""
        return len(self._holdings)

    @property
    def reports_given_up(self) -> int:
        """Reports that the region did not acknowledge in time: their units stay counted as spent there."""
        return self._reports.given_up

    # --- requests

    def ask(self, applications: tuple[Application, ...], now_ns: int, peek: bool = False) -> Decision | Ticket:
        """Decide a request that comes down to `applications`, or return the ticket that a later Settled will name.

        Call `step` soon after a ticket was given if the agent is `pressing`: a crossing leaves with what it returns.
        """
        epoch = self._roll(now_ns)
        if not applications:
            return Decision(True, ())
        if epoch is None:
            return say.unavailable(applications)
        if not peek and (decision := self._requests.at_once(applications, epoch, now_ns)) is not None:
            return decision
        for application in applications:
            if application.rule.shadow:
                return self._ask_with_shadows(applications, epoch, now_ns, peek)
        return self._ask(applications, epoch, now_ns, peek)

    def _ask_with_shadows(
        self, applications: tuple[Application, ...], epoch: int, now_ns: int, peek: bool
    ) -> Decision | Ticket:
        """`ask` for rules of which some are shadows, which come after the others."""
        enforced = tuple([each for each in applications if not each.rule.shadow])
        answer = self._ask(enforced, epoch, now_ns, peek)
        if isinstance(answer, Ticket):
            answer.applications = applications
            return answer
        return self._shadows.complete(applications, answer, peek, self._attached, epoch, now_ns)

    def _ask(self, applications: tuple[Application, ...], epoch: int, now_ns: int, peek: bool) -> Decision | Ticket:
        """`ask` for rules of which none is a shadow."""
        parts = self._requests.check(applications, epoch, now_ns)
        crosses = refused = False
        wait_ns = 0
        for part in parts:
            if part.verdict is not None and not part.verdict.allowed:
                refused = True
            elif part.crosses:
                deadline_ns = part.application.rule.deadline_ns
                wait_ns = min(wait_ns, deadline_ns) if crosses else deadline_ns
                crosses = True
        if crosses and not refused and not self._attached:
            self._leave_unanswered(parts, peek, now_ns)
            crosses, refused = False, any(part.refused for part in parts)
        if refused:
            return self._requests.refuse(parts, peek, epoch, now_ns)
        if not peek:
            self._requests.reserve(parts, epoch, now_ns)
        if not crosses:
            return self._requests.admit(parts, peek, epoch, now_ns)
        ticket = Ticket(next(self._tickets), parts, peek, epoch, now_ns + wait_ns)
        self._crossings.add(ticket)
        return ticket

    def fall_back(self, applications: tuple[Application, ...], now_ns: int, peek: bool = False) -> Decision:
        """Answer as if nobody who may decide did, each rule by its stage: for a fault of this program (design 4.1)."""
        epoch = self._roll(now_ns)
        enforced = tuple(each for each in applications if not each.rule.shadow)
        if epoch is None or len(enforced) < len(applications):
            return say.unavailable(applications)
        parts = self._requests.unchecked(enforced, epoch)
        self._leave_unanswered(parts, peek, now_ns)
        return self._requests.finish(parts, peek, epoch, now_ns)

    # --- events

    def step(self, event: Event, now_ns: int) -> list[Command]:
        """Take an event; returns the commands to perform, in order."""
        commands: list[Command] = []
        match event:
            case Received(message):
                self._heard_ns = now_ns
                commands += self._received(message, now_ns)
            case Connected():
                commands += self._connected(now_ns)
            case Lost():
                commands += self._lost(now_ns)
        epoch = self._roll(now_ns)
        deadline_ns = self._crossings.deadline_ns()
        if deadline_ns is not None and deadline_ns <= now_ns:
            commands += self._expire(now_ns)
        if self._stream and now_ns - self._heard_ns >= SILENT_NS:
            commands += [*self._lost(now_ns), Reconnect("nothing heard for 1.5 s")]
        if self._attached and epoch is not None:
            if now_ns >= self._routine.due_ns:
                commands += self._routine.perform(epoch, self._stream, now_ns)
            if self._crossings.may_depart:
                for acquire in self._crossings.depart(self._stream, self.clock.left_ns(now_ns), now_ns):
                    self._reports.cross()
                    commands.append(Send(acquire))
        return commands

    def wake_ns(self, now_ns: int) -> int:
        """When `step` must be called again at the latest, even if nothing happens."""
        wake = now_ns + POLL_NS
        if self._attached and self._epoch is not None:
            wake = min(self._routine.wake_ns, self._heard_ns + SILENT_NS)
        # Who may cross already left with the last step, or waits for the crossing under way.
        for instant in (self._crossings.deadline_ns(), self._crossings.again_ns(now_ns)):
            if instant is not None and instant < wake:
                wake = instant
        self._wake_ns = wake if wake > now_ns else now_ns
        return self._wake_ns

    @property
    def pressing(self) -> bool:
        """Whether requests that came since then need `step` before the instant that `wake_ns` named last: a crossing
        may leave, or a deadline is earlier. While one is under way, what comes waits for its answer.
        """
        if self._crossings.may_depart:
            return True
        deadline_ns = self._crossings.deadline_ns()
        return deadline_ns is not None and deadline_ns < self._wake_ns

    def leave(self, now_ns: int) -> list[Command]:
        """Stop in good order: give back what is unspent, report all, say goodbye. Nothing may be asked afterwards."""
        epoch = self._roll(now_ns)
        commands: list[Command] = [self._unavailable(ticket, now_ns) for ticket in list(self._crossings.tickets())]
        if not self._attached or epoch is None:
            return commands
        commands += [Send(each) for each in self._returns.leaving(epoch, self._stream, now_ns)]
        self._reports.close(epoch, self._returns.chunks(now_ns, leaving=True))
        commands += [Send(encode(pending, self._stream)) for pending in self._reports.to_send(now_ns)]
        self._attached = False
        return [*commands, Send(Leave())]

    def _connected(self, now_ns: int) -> list[Command]:
        self._stream += 1
        self._heard_ns = now_ns
        self._holdings.new_stream()
        self._returns.new_stream()
        self._reports.new_stream()
        self._ruling.new_stream()
        return [Send(Hello(self.edge, self.location, self.incarnation, self.clock.known or 0, self._ruling.version))]

    def _lost(self, now_ns: int) -> list[Command]:
        was, self._attached = self._attached, False
        self._heard_ns = now_ns
        commands: list[Command] = [self._unavailable(ticket, now_ns) for ticket in self._crossings.lose()]
        if was:
            commands.append(Note("warning", "region_lost"))
        return commands

    def _received(self, message: object, now_ns: int) -> list[Command]:
        if isinstance(message, AcquireAnswer):  # most messages are
            self._observe(message.tick, now_ns)
            return self._answered(message, now_ns)
        self._routine.disturb()
        match message:
            case Welcome(rules, tick):
                return self._welcomed(rules, tick, now_ns)
            case Tick():
                self._observe(message, now_ns)
            case Rules() if self._attached:
                return list(self._ruling.take(message))
            case Slices() if self._ruling.accepts(message.rules_version):
                epoch = self._roll(now_ns) or 0
                self._ruling.plan_named(message.epoch, message.rules_version)
                self._ruling.reach(epoch)
                if message.generation:  # else nobody divided the epoch
                    self._holdings.receive(message, epoch)
            case ReportAck(number):
                self._reports.acknowledge(number)
            case Refused(reason, retry):
                level = "warning" if retry else "error"
                return [Note(level, "region_refused", (("reason", reason),)), *self._lost(now_ns), Reconnect(reason)]
        return []

    def _welcomed(self, rules: Rules, tick: Tick, now_ns: int) -> list[Command]:
        self._observe(tick, now_ns)
        try:
            notes = self._ruling.take(rules)
        except RulesError as error:  # a region of another version, and no rules at hand
            note = Note("error", "rules_refused", (("rules_version", rules.version), ("reason", str(error))))
            return [note, *self._lost(now_ns), Reconnect("rules refused")]
        self._attached = True
        return [*notes, Note("info", "region_attached", (("rules_version", rules.version), ("epoch", tick.epoch)))]

    def _observe(self, tick: Tick, now_ns: int) -> None:
        former = self.clock.provisional_epoch(now_ns)
        self.clock.observe(tick.epoch, tick.left_ns, now_ns)
        if former is not None:
            shift = (self.clock.known or former) - former
            self._reports.relabel(shift)
            self._holdings.relabel(shift)
        self.fallbacks.hear(now_ns)
        self._roll(now_ns)

    def _roll(self, now_ns: int) -> int | None:
        epoch = self.clock.now(now_ns)
        if epoch is not None and epoch != self._epoch:
            self._epoch = epoch
            self._routine.disturb()
            self._ruling.reach(epoch)
            self._reports.started(epoch)
            self._holdings.forget_idle(epoch, now_ns)
        return epoch

    # --- crossings

    def _answered(self, message: AcquireAnswer, now_ns: int) -> list[Command]:
        flight = self._crossings.land(message)
        if flight is None:
            return []
        commands: list[Command] = []
        asked: dict[int, Holding] = {}
        left_ns = self.clock.left_ns(now_ns)
        probe_ns = now_ns + probe_in_ns(left_ns)
        groups = list(zip(flight.groups, message.groups, strict=True))
        for tickets, group in groups:  # whoever still waits for it
            for part, member in zip(tickets[0].crossing, group.members, strict=True):
                held, application = part.held, part.application
                asked[held.id] = held
                if held.rule is application.rule:  # else it was asked by rules that are no longer in force
                    held.learn(member, application.cost, flight.sent_ns, now_ns, probe_ns)
        for tickets, group in groups:
            outcome = unanswered(group)
            for ticket, after in deal(tickets, group):
                if after is None and outcome is Outcome.NO_PLAN:
                    self._crossings.add_again(ticket, now_ns + RETRY_NS)
                elif after is None and outcome is not None:
                    commands.append(self._unavailable(ticket, now_ns))
                else:
                    commands.append(self._decided(ticket, group, after, left_ns, now_ns))
        for lent in message.lent:
            lessee = asked.get(lent.quota)
            if isinstance(lessee, Leased):
                lessee.borrow(lent, flight.sent_ns)
            elif lessee is not None and not lent.lasts_ns:  # else the region has it leased, and the edge not yet
                lessee.lend(lent.epoch, lent.units)
        return commands

    def _decided(
        self, ticket: Ticket, group: GroupAnswer, after: int | None, left_ns: int, now_ns: int
    ) -> Settled | Shadowed:
        """The region decided: commit, or release what was reserved here."""
        charged = after is not None and not ticket.peek
        for part, member in zip(ticket.crossing, group.members, strict=True):
            part.verdict = say.from_region(part, member, after, charged, left_ns, now_ns)
            if charged and not member.store and part.application.cost:
                self._reports.spend(part.held, member.epoch, part.application.cost)
        return self._settle(ticket, now_ns)

    def _unavailable(self, ticket: Ticket, now_ns: int) -> Settled | Shadowed:
        """Nobody decided in time."""
        self._leave_unanswered(ticket.crossing, ticket.peek, now_ns)
        return self._settle(ticket, now_ns)

    def _leave_unanswered(self, parts: Sequence[Part], peek: bool, now_ns: int) -> None:
        """Let each rule's stage answer what the region did not; what passes is spent when the request is admitted."""
        epoch = self._roll(now_ns) or 0
        for part in parts:
            if part.crosses:
                self.fallbacks.answer(part, peek, epoch, now_ns)

    def _settle(self, ticket: Ticket, now_ns: int) -> Settled | Shadowed:
        ticket.settled = True
        decision = self._requests.finish(ticket.parts, ticket.peek, ticket.epoch, now_ns)
        if ticket.shadow:
            return Shadowed(decision.verdicts[0])
        if ticket.applications:
            epoch = self.clock.now(now_ns) or ticket.epoch
            decision = self._shadows.complete(ticket.applications, decision, ticket.peek, self._attached, epoch, now_ns)
        return Settled(ticket.number, decision)

    def _expire(self, now_ns: int) -> list[Command]:
        late = [ticket for ticket in self._crossings.tickets() if ticket.deadline_ns <= now_ns]
        return [self._unavailable(ticket, now_ns) for ticket in late]
