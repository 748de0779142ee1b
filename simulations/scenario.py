"""What a simulated run is about: edges, rules, demand by place and time, network, faults, and what is expected of it.

Plain values; `scenario_file` reads them from a text that a person writes, `shapes` gives demand its form.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from apportion.core.messages import Rules
from apportion.core.quantities import parse_quota, parse_rate
from apportion.core.rule import Enforce
from apportion.simulations.shapes import Shape

FILE = "scenario.yaml"
"""The name of a scenario's rules, in what is said of them."""

MODES_OF = {"slack": ("edge", "edge+region"), "at_each_edge": ("edge",), "wrong_costs": ("edge",)}
"""Which modes have a field that others refuse."""

NOON_NS = 1_796_126_400 * 10**9
"""2026-12-01T12:00Z, at which calendar periods of up to twelve hours begin."""

RULE = "search"
"""The name of the rule of a scenario that writes no `rules`."""


class FaultKind(Enum):
    """What happens to a process, or to all of a kind. The words of the scenario text."""

    KILL = "kill"  # it dies, and starts again after `for`
    PARTITION = "partition"  # nothing arrives at it or from it for so long
    PAUSE = "pause"  # it stops and knows nothing of it
    CUT = "cut"  # its stream is lost, and opened again
    STEP_CLOCK = "step_clock"  # its clock jumps ahead by `for`
    START = "start"  # it was not there before
    LEAVE = "leave"  # it goes in good order, and comes back after `for`
    STEP_WALL = "step_wall"  # the wall clock of the store jumps ahead by `for`; its time does not
    WALL_BACK = "wall_back"  # it jumps back by `for`
    STRIP_LIFETIMES = "strip_lifetimes"  # for so long each counter of a period that is asked for has lost its lifetime
    EXTEND_LIFETIMES = "extend_lifetimes"  # for so long each request makes the lifetime longer by a period
    LIMIT = "limit"  # the rules are replaced by others with this limit


OF_PERIODS = (FaultKind.STEP_WALL, FaultKind.WALL_BACK, FaultKind.STRIP_LIFETIMES, FaultKind.EXTEND_LIFETIMES)
"""What happens to the region's store, and is of quotas of a period only."""


@dataclass(frozen=True, slots=True)
class Fault:
    """At `at_ns` something happens to `target`: "region", "leader", "standby", "edge-N"; for LIMIT the rate's text."""

    at_ns: int
    kind: FaultKind
    target: str
    for_ns: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """How messages travel. `latency_ns`: one way, of the farthest edge; `spread`: by how much of it others are nearer;
    `jitter`: the mean excess, as a part of it. The rest are chances for each message: to take twenty times the excess,
    to arrive twice, or (answers) to be lost with their stream.
    """

    latency_ns: int = 20_000_000
    spread: float = 0.5
    jitter: float = 0.25
    spikes: float = 0.0
    repeat: float = 0.0
    lost_answers: float = 0.0
    clock_drift: int = 200
    """Largest drift of a clock, millionths."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Requests for one rule and key. `load`: units a second as a multiple of its limit, spread by `shape`.

    `retries`: how often a refused request comes again, `retry_after_ns` later each time; None: when it was told to.
    `keys`: above 1, each request is of one of so many, by chance, and the load is of all of them together.
    """

    rule: str
    key: str
    shape: Shape
    load: float
    cost: int = 1
    from_ns: int = 0
    until_ns: int | None = None
    retries: int = 0
    retry_after_ns: int | None = 100_000_000
    keys: int = 1


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
class OneRule:
    """The rule of a scenario that writes `limit` and `enforce` instead of `rules`: it can be compared over modes.

    `more`: further fields of the rule, as they are written in a rules file. `quota`: the fields beside an allowance,
    which `rate` then is; None of a rate.
    """

    rate: str
    enforce: str
    burst: str | None = None
    stages: tuple[str, ...] = ("deny",)
    more: tuple[tuple[str, str], ...] = ()
    quota: tuple[tuple[str, str], ...] | None = None

    def check_amount(self, text: str) -> str:
        """The text of a rate, or of an allowance if the rule has one. ValueError: it is not."""
        if self.quota is None:
            parse_rate(text)
        else:
            parse_quota(text)
        return text

    def under(self, enforce: str) -> OneRule:
        """The same rule in another mode: without the fields that this one does not have; where there are no slices,
        `keep_share` is `fair_share`.
        """
        more = tuple((name, value) for name, value in self.more if enforce in MODES_OF.get(name, (enforce,)))
        stages = self.stages
        if enforce == Enforce.REGION.value:
            words = [stage.split(" ", 1) for stage in stages]
            kept = any(name == "fair_share" for name, *_ in words)
            stages = tuple(
                " ".join(["fair_share" if name == "keep_share" else name, *lasts])
                for name, *lasts in words
                if name != "keep_share" or not kept
            )
        return replace(self, enforce=enforce, more=more, stages=stages)

    def text(self, edges: int) -> str:
        """The rules file for so many edges. What a mode needs beside, and nobody wrote, has a usual value."""
        more = dict(self.more)
        if self.enforce == Enforce.EDGE.value:
            more.setdefault("wrong_costs", "noise")
            if "slack" not in more:
                more.setdefault("at_each_edge", self.rate)
        else:
            more["when_unavailable"] = f"[{', '.join(self.stages)}]"
        limit = f"rate: {self.rate}" + (f", burst: {self.burst}" if self.burst else "")
        if self.quota is not None:
            limit = ", ".join([f"quota: {self.rate}", *(f"{name}: {value}" for name, value in self.quota)])
        fields = "".join(f", {name}: {value}" for name, value in more.items())
        return (
            f"version: 1\ndomain: simulated\nedges_max: {edges}\ndefaults: {{deadline: 500ms}}\nrules:\n"
            f"  - {{name: {RULE}, match: {{api: '*'}}, key: [api], limit: {{{limit}}}, enforce: {self.enforce}"
            f"{fields}}}\n"
        )


@dataclass(frozen=True, slots=True)
class StoreClocks:
    """What the region's store knows of time where there are quotas of a period. `begins_ns`: what its clocks show when
    traffic begins, nanoseconds since 1970 UTC; `wall_drift`: millionths by which the wall clock runs too fast.
    `spread_reclaim`: False has the counters of a calendar period reclaimed together, to compare.
    """

    begins_ns: int = NOON_NS
    wall_drift: int = 0
    spread_reclaim: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world to run. `warm_up`: seconds that measures of quality leave out; bounds hold in each of them.

    `one`: where the scenario says `limit` and `enforce`; its text is `rules`.
    """

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
    one: OneRule | None = None
    store: StoreClocks = StoreClocks()

    def under(self, one: OneRule, edges: int | None = None) -> Scenario:
        """The same world under another rule, or with other many edges."""
        count = self.edges if edges is None else edges
        return replace(self, one=one, edges=count, rules=Rules(1, ((FILE, one.text(count)),)))
