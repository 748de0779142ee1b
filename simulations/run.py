"""One run of a scenario by a seed: the world is made, traffic and faults happen, the log is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from apportion.core.decision import Decision
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.region import events as regional
from apportion.simulations.checkers import violations
from apportion.simulations.checkers_period import period_violations
from apportion.simulations.checkers_quality import shortcomings
from apportion.simulations.in_force import InForce
from apportion.simulations.measures import RuleFigures, figures_of
from apportion.simulations.measures_period import value_of, with_periods
from apportion.simulations.nodes import AllocatorNode, EdgeNode, RegionNode, parsed
from apportion.simulations.period_log import PeriodLog
from apportion.simulations.recording import Recording
from apportion.simulations.rule_log import logs_of
from apportion.simulations.scenario import FILE, OF_PERIODS, Fault, FaultKind, Flow, Scenario
from apportion.simulations.traffic import arrivals, names_of, streams_of
from apportion.simulations.world import SECOND, Arrival, Options, World

STARTED_S = 2
"""Traffic begins so long after the processes: by then every edge has the rules and a leader leads."""

DRAINED_S = 3
"""After the last request: the longest deadline, an epoch's end, its report and the acknowledgement."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. `broken`: bounds exceeded and expectations that failed, in words; empty when all held."""

    scenario: Scenario
    seed: int
    rules: tuple[RuleFigures, ...]
    broken: tuple[str, ...]
    recording: Recording
    requests: int


Progress = Callable[[int], None]
"""Told each second of virtual time that has passed."""


def run(scenario: Scenario, seed: int, options: Options | None = None, progress: Progress | None = None) -> Outcome:
    """Run it to its end. `options`: cores to put in place of the shipped ones, for tests that switch something off."""
    recording = Retrying(scenario.flows) if any(flow.retries for flow in scenario.flows) else Recording()
    world = world_of(scenario, seed, recording, options or Options())
    for second in range(scenario.seconds + DRAINED_S):
        world.run(1)
        recording.log.pack()
        if progress is not None:
            progress(second + 1)
    recording.ended(world.now_ns, world.region.disk.rollup.rows(0), world.open_requests())
    if world.has_periods:
        recording.kept(world.region.disk, world.region.lifetimes.stripped)
    rules, log = parsed(scenario.rules), recording.log
    limits, edges = InForce(rules, log.rows), [edge.name for edge in world.edges]
    logs = logs_of(log, rules, limits, edges, scenario.seconds, STARTED_S * SECOND)
    changes = changes_of(scenario)
    figures = tuple(figures_of(each, scenario.warm_up, changes, rules.edges_max) for each in logs.values())
    periods = PeriodLog(log, limits)
    figures = with_periods(figures, rules, log, periods) if world.has_periods else figures
    broken = (
        *map(str, violations(log, rules)),
        *map(str, period_violations(log, periods)),
        *map(str, shortcomings(scenario, figures, logs, log, limits)),
        *_failed(scenario, figures),
    )
    return Outcome(scenario, seed, figures, broken, recording, int(log.offers().first.sum()))


def world_of(
    scenario: Scenario, seed: int, recording: Recording, options: Options, traffic: Iterator[Arrival] | None = None
) -> World:
    """The world, started, with its traffic and faults to come. `traffic`: in place of the scenario's."""
    network = scenario.network
    world = World(
        seed,
        scenario.rules,
        recording,
        replace(
            options,
            edges=scenario.edges,
            allocators=scenario.allocators,
            delay_ns=network.latency_ns,
            spread=network.spread,
            jitter=network.jitter,
            spikes=network.spikes,
            repeat=network.repeat,
            lost_answers=network.lost_answers,
            clock_drift=network.clock_drift,
        ),
    )
    if isinstance(recording, Retrying):
        recording.world = world
    if world.has_periods:
        world.region.set_wall(scenario.store.begins_ns, STARTED_S * SECOND, scenario.store.wall_drift)
        world.region.spread_reclaim = scenario.store.spread_reclaim
    late = {fault.target for fault in scenario.faults if fault.kind is FaultKind.START}
    world.start(late)
    world.run(STARTED_S)
    begun_ns = world.now_ns
    if traffic is None:
        streams = streams_of(scenario.flows, parsed(scenario.rules))
        world.offer(arrivals(streams, scenario.edges, scenario.seconds, seed, begun_ns))
    else:
        world.offer((begun_ns + at, edge, applications) for at, edge, applications in traffic)
    for fault in scenario.faults:
        world.at(begun_ns + fault.at_ns, partial(_happen, world, scenario, fault))
    return world


def _happen(world: World, scenario: Scenario, fault: Fault) -> None:
    """One fault, now."""
    seconds = fault.for_ns / SECOND
    if fault.kind is FaultKind.LIMIT:
        assert scenario.one is not None
        text = replace(scenario.one, rate=fault.target).text(scenario.edges)
        version = world.rules.version + 1
        world.rules = Rules(version, ((FILE, text),))
        world.journal.ruled(world.now_ns, world.region.authority.epoch, world.rules)
        world.region.feed(regional.RulesChanged(world.rules, parsed(world.rules)))
        return
    if fault.kind in OF_PERIODS:
        _happen_to_store(world, fault)
        return
    node = _target(world, fault.target)
    match fault.kind:
        case FaultKind.KILL:
            world.restart(node, seconds)
        case FaultKind.START:
            node.start()
        case FaultKind.PAUSE:
            node.pause(fault.for_ns)
        case FaultKind.STEP_CLOCK:
            node.clock.step(fault.for_ns)
        case FaultKind.LEAVE if isinstance(node, EdgeNode):
            node.perform(node.agent.leave(node.now_ns))
            world.after(0.2, partial(world.restart, node, seconds))
        case FaultKind.PARTITION if isinstance(node, EdgeNode | AllocatorNode):
            world.partition(node, seconds)
        case FaultKind.CUT if isinstance(node, EdgeNode | AllocatorNode) and node.stream is not None:
            node.stream.cut(SECOND)


def _happen_to_store(world: World, fault: Fault) -> None:
    """A fault that is of quotas of a period."""
    region, lifetimes = world.region, world.region.lifetimes
    match fault.kind:
        case FaultKind.STEP_WALL | FaultKind.WALL_BACK:
            region.wall.step(fault.for_ns if fault.kind is FaultKind.STEP_WALL else -fault.for_ns)
            region.tell_clocks()
        case FaultKind.STRIP_LIFETIMES:
            lifetimes.strips = True
            world.after(fault.for_ns / SECOND, partial(setattr, lifetimes, "strips", False))
        case FaultKind.EXTEND_LIFETIMES:
            lifetimes.extends = True
            world.after(fault.for_ns / SECOND, partial(setattr, lifetimes, "extends", False))


def _target(world: World, name: str) -> EdgeNode | AllocatorNode | RegionNode:
    if name == "region":
        return world.region
    if name in {"leader", "standby"}:
        leader = world.leading or world.allocators[0]
        others = [each for each in world.allocators if each is not leader]
        return leader if name == "leader" or not others else others[0]
    return world.edges[int(name.removeprefix("edge-")) % len(world.edges)]


class Retrying(Recording):
    """A log that lets refused callers of some flows come again.

    Each refusal comes again with the chance that makes the mean number of further attempts what the flow says.
    """

    world: World

    def __init__(self, flows: tuple[Flow, ...]) -> None:
        super().__init__()
        self._flows = {(flow.rule, key): flow for flow in flows if flow.retries for key in names_of(flow)}
        self._edges: dict[int, str] = {}

    def started(self, edge: str, incarnation: int) -> int:
        process = super().started(edge, incarnation)
        self._edges[process] = edge
        return process

    def decided(self, now_ns: int, process: int, decision: Decision) -> None:
        super().decided(now_ns, process, decision)
        if decision.allowed:
            return
        verdict = decision.verdicts[0]
        flow = self._flows.get((verdict.rule.name, verdict.key[0] if verdict.key else ""))
        wait_ns = verdict.retry_after_ns if flow is None or flow.retry_after_ns is None else flow.retry_after_ns
        if flow is not None and wait_ns is not None and self.world.chance(flow.retries / (flow.retries + 1)):
            node = self.world.edge(self._edges[process])
            asked = tuple(Application(each.rule, each.key, each.cost) for each in decision.verdicts)
            self.world.at(now_ns + wait_ns, partial(node.ask, asked))


def changes_of(scenario: Scenario) -> list[int]:
    """Seconds in which demand moves or something happens."""
    instants = [fault.at_ns for fault in scenario.faults]
    for flow in scenario.flows:
        instants += flow.shape.changes_ns(scenario.seconds * SECOND)
    return sorted({instant // SECOND for instant in instants if instant < scenario.seconds * SECOND})


def broken_by(scenario: Scenario, figures: tuple[RuleFigures, ...]) -> tuple[str, ...]:
    """Bounds that were exceeded, and expectations that failed, in words: what figures alone can tell."""
    return (*_exceeded(figures), *_failed(scenario, figures))


def _exceeded(figures: tuple[RuleFigures, ...]) -> list[str]:
    return [
        f"{each.rule}: over by {each.overshoot_label} by label, the bound is {each.bound}"
        for each in figures
        if each.bound is not None and each.period is None and each.overshoot_label > each.bound
    ]


def _failed(scenario: Scenario, figures: tuple[RuleFigures, ...]) -> list[str]:
    found = []
    for expectation in scenario.expectations:
        for each in figures:
            value = value_of(each, expectation.measure)
            if value is None:
                continue  # of a scenario with rates and quotas, each is expected of what it has
            if expectation.rule in (None, each.rule) and not expectation.holds(value):
                found.append(f"{each.rule}: {expectation.measure} is {value:.4g}, expected {expectation}")
    return found
