"""What a simulated run is about: edges, rules, demand by place and time, network, faults, and what is expected of it.

Plain values; `scenario_file` reads them from a text that a person writes, `shapes` gives demand its form.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from apportion.core.messages import Rules
from apportion.simulations.shapes import Shape

FILE = "scenario.yaml"
"""The name of a scenario's rules, in what is said of them."""


class FaultKind(Enum):
    """What happens to a process, or to all of a kind. The words of the scenario text."""

    KILL = "kill"  # it dies, and starts again after `for`
    PARTITION = "partition"  # nothing arrives at it or from it for so long
    PAUSE = "pause"  # it stops and knows nothing of it
    CUT = "cut"  # its stream is lost, and opened again
    STEP_CLOCK = "step_clock"  # its clock jumps ahead by `for`
    START = "start"  # it was not there before
    LEAVE = "leave"  # it goes in good order, and comes back after `for`
    LIMIT = "limit"  # the rules are replaced by others with this limit


@dataclass(frozen=True, slots=True)
class Fault:
    """At `at_ns` something happens to `target`: "region", "leader", "standby", "edge-N"; for LIMIT the rate's text."""

    at_ns: int
    kind: FaultKind
    target: str
    for_ns: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """How messages travel. `latency_ns` one way; `jitter` its mean excess as a part of it; the rest are chances for
    each message: to take twenty times the excess, to arrive twice, or (answers) to be lost with their stream.
    """

    latency_ns: int = 20_000_000
    jitter: float = 0.25
    spikes: float = 0.0
    repeat: float = 0.0
    lost_answers: float = 0.0
    clock_drift: int = 200
    """Largest drift of a clock, millionths."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Requests for one rule and key. `load`: units a second as a multiple of its limit, spread by `shape`.

    `retries`: how often a refused request comes again, `retry_after_ns` later each time.
    """

    rule: str
    key: str
    shape: Shape
    load: float
    cost: int = 1
    from_ns: int = 0
    until_ns: int | None = None
    retries: int = 0
    retry_after_ns: int = 100_000_000


COMPARISONS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "=": operator.eq}


@dataclass(frozen=True, slots=True)
class Expectation:
    """A measure of every rule (or of `rule`) compares so with a number: `utilisation >= 0.92`."""

    measure: str
    comparison: str
    number: float
    rule: str | None = None

    def holds(self, found: float) -> bool:
        """Whether it is so."""
        return COMPARISONS[self.comparison](found, self.number)

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.number:g}" + (f" of {self.rule}" if self.rule else "")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world to run. `warm_up`: seconds that measures of quality leave out; bounds hold in each of them."""

    name: str
    about: str
    rules: Rules
    edges: int
    allocators: int
    seconds: int
    warm_up: int
    flows: tuple[Flow, ...]
    network: Network = Network()
    faults: tuple[Fault, ...] = ()
    expectations: tuple[Expectation, ...] = ()

    def with_rules(self, text: str) -> Scenario:
        """The same world under other rules."""
        return replace(self, rules=Rules(1, ((FILE, text),)))
