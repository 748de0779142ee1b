"""A scenario's text in, a Scenario out, or one report of everything that is wrong with it. Pure.

Read with the tools of the rules file: strict, each problem with its line, what was found and what is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from apportion.core.document import MappingNode, Node, Problem, kind_of, read_document
from apportion.core.errors import RulesError
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Rules
from apportion.core.quantities import parse_duration, parse_percent, shown
from apportion.core.rule import Place, RuleSet
from apportion.core.rule_fields import Section
from apportion.core.rules_file import parse_rules
from apportion.core.rules_vocabulary import nearest
from apportion.simulations import shapes
from apportion.simulations.measures_period import measures_of
from apportion.simulations.scenario import (
    COMPARISONS,
    FILE,
    OF_PERIODS,
    Expectation,
    Fault,
    FaultKind,
    Flow,
    Network,
    OneRule,
    Scenario,
)
from apportion.simulations.scenario_limit import ONE, read_one, read_store

EDGES_MAX = 500
"""Edges of one world; more than fit a demonstration would only make it slow."""

SECONDS_MAX = 86_400
"""The length of one run."""

ITEMS_MAX = 1_000
"""Flows, faults or expectations of one scenario."""

KEYS_MAX = 100_000
"""Keys of one flow."""

TOLD = "told"
"""A refused caller comes again when it was told to."""

TOP = (
    "about", "edges", "allocators", "seconds", "warm_up", "limit", "burst", "enforce", "slack", "at_each_edge",
    "wrong_costs", "when_unavailable", "rules", "demand", "network", "store", "faults", "expect",
)  # fmt: skip
FLOW = ("rule", "key", "keys", "shape", "load", "cost", "from", "until", "retries", "retry_after")
SHAPES = {
    "uniform": (),
    "zipf": ("exponent",),
    "hotspot": ("dwell", "share"),
    "step": ("at", "before", "after"),
    "halves": ("dwell",),
    "on-off": ("mean",),
    "heavy": ("share",),
    "ramp": ("over",),
}
CHANCES = ("spread", "jitter", "spikes", "repeat", "lost_answers")
NETWORK = ("latency", *CHANCES, "clock_drift")
_EXPECTED = re.compile(r"(>=|<=|=)\s*([0-9.]+)(%?)")
_TARGET = re.compile(r"region|leader|standby|edge-[0-9]{1,3}")


def parse_scenario(name: str, text: str) -> Scenario:
    """Read one scenario. RulesError: every problem, each with its line."""
    problems: list[Problem] = []
    node = read_document(name, text, problems)
    if not isinstance(node, MappingNode):
        found = "nothing" if node is None else kind_of(node)
        problems = problems or [Problem(Place(name, 1), f"found {found}; a scenario is a mapping, see `--list`")]
        raise RulesError(tuple(problems))
    scenario = _Reader(name, Section(name, "", node, TOP, (), problems), problems).read()
    if problems or scenario is None:
        raise RulesError(tuple(problems))
    return scenario


@dataclass(slots=True)
class _Reader:
    name: str
    top: Section
    problems: list[Problem]
    ruleset: RuleSet | None = None
    one: OneRule | None = None

    def read(self) -> Scenario | None:
        top = self.top
        edges = top.count("edges", 1, EDGES_MAX) or 3
        seconds = top.count("seconds", 3, SECONDS_MAX) or 30
        warm_up = top.count("warm_up", 0, seconds - 1) if top.has("warm_up") else min(10, seconds // 3)
        allocators = top.count("allocators", 1, 5) or 2
        about = top.text("about", "a sentence") or ""
        rules = self._rules(edges)
        if rules is None or self.problems:
            return None
        flows = self._flows()
        faults = self._faults()
        expectations = self._expectations()
        network = self._network()
        store = read_store(top)
        name = self.name.removesuffix(".yaml")
        return Scenario(
            name,
            about,
            rules,
            edges,
            allocators,
            seconds,
            warm_up or 0,
            flows,
            network,
            faults,
            expectations,
            self.one,
            store,
        )

    # --- rules

    def _rules(self, edges: int) -> Rules | None:
        top = self.top
        if top.has("rules"):
            for short in ONE:
                if top.has(short):
                    top.refuse(short, f"belongs to a scenario without `rules`; here the rules say `{short}` themselves")
            text = top.text("rules", "the text of a rules file, after `rules: |`")
        else:
            self.one = read_one(top)
            text = self.one.text(edges) if self.one is not None else None
        if text is None or self.problems:
            return None
        try:
            self.ruleset = parse_rules([(FILE, text)])
        except RulesError as error:
            where = top.place("rules" if top.has("rules") else "limit")
            self.problems += [Problem(where, f"in the rules: {problem}") for problem in error.problems]
            return None
        return Rules(1, ((FILE, text),))

    # --- demand

    def _flows(self) -> tuple[Flow, ...]:
        items = self.top.items("demand", "a list of flows", ITEMS_MAX)
        if not items:
            if not self.top.has("demand"):
                self.top.refuse(None, "`demand` is missing; write `demand: [{shape: uniform, load: 150%}]`")
            return ()
        flows = [self._flow(section) for section in self._sections("demand", items, self._flow_fields)]
        return tuple(flow for flow in flows if flow is not None)

    def _flow_fields(self, node: MappingNode) -> tuple[str, ...]:
        shape = next((getattr(value, "text", "") for key, value in node.entries if key.text == "shape"), "")
        return (*FLOW, *SHAPES.get(shape, ()))

    def _flow(self, section: Section) -> Flow | None:
        assert self.ruleset is not None
        names = tuple(rule.name for rule in self.ruleset.rules)
        rule = section.text("rule", "a rule's name") if section.has("rule") else names[0]
        if rule is None:
            return None
        if rule not in names:
            section.refuse("rule", f"found {shown(rule)}, {nearest(rule, names)}")
            return None
        if not section.has("rule") and len(names) > 1:
            section.refuse(None, f"which rule? there are {', '.join(names)}; write `rule: {names[0]}`")
            return None
        shape = self._shape(section)
        load = section.parsed("load", "a percentage of the limit", _share)
        if not section.has("load"):
            section.refuse(None, "`load` is missing: what is asked, as a part of the limit; write `load: 150%`")
        if shape is None or load is None:
            return None
        return Flow(
            rule,
            section.text("key", "a key") or "k",
            shape,
            load,
            section.count("cost", 1, 2**40) or 1,
            section.parsed("from", "a duration", parse_duration) or 0,
            section.parsed("until", "a duration", parse_duration),
            section.count("retries", 0, 20) or 0,
            self._retry_after(section),
            section.count("keys", 1, KEYS_MAX) or 1,
        )

    def _retry_after(self, section: Section) -> int | None:
        """When a refused caller comes again; None: when it was told to."""
        if section.has("retry_after") and getattr(section.node("retry_after"), "text", "") == TOLD:
            return None
        return section.parsed("retry_after", f"a duration, or `{TOLD}`,", parse_duration) or 100_000_000

    def _shape(self, section: Section) -> shapes.Shape | None:
        name = section.text("shape", "a shape") if section.has("shape") else "uniform"
        if name is None or name not in SHAPES:
            section.refuse("shape", f"found {shown(name or '')}, {nearest(name or '', tuple(SHAPES))}")
            return None
        return _made(name, section)

    # --- what happens

    def _faults(self) -> tuple[Fault, ...]:
        kinds = tuple(kind.value for kind in FaultKind)
        items = self.top.items("faults", "a list of faults", ITEMS_MAX) or ()
        found = []
        for section in self._sections("faults", items, lambda _: ("at", "for", *kinds)):
            at = section.parsed("at", "a duration", parse_duration)
            named = [kind for kind in FaultKind if section.has(kind.value)]
            if at is None or len(named) != 1:
                section.refuse(None, f"a fault is `at` an instant and one of {', '.join(kinds)}")
                continue
            target = section.text(named[0].value, "a process") or ""
            if named[0] is FaultKind.LIMIT:
                if self.one is None:
                    section.refuse("limit", "changes the limit of a scenario without `rules`; here there are `rules`")
                elif section.parsed("limit", "a rate such as 500/s", self.one.check_amount) is None:
                    continue
            elif named[0] in OF_PERIODS and target != "region":
                section.refuse(named[0].value, f"found {shown(target)}; it is of the store: write `region`")
                continue
            elif not _TARGET.fullmatch(target):
                section.refuse(named[0].value, f"found {shown(target)}; region, leader, standby or edge-1 is meant")
                continue
            lasts = section.parsed("for", "a duration", parse_duration) or EPOCH_NS
            found.append(Fault(at, named[0], target, lasts))
        return tuple(found)

    def _network(self) -> Network:
        section = self.top.section("network", "a network", NETWORK)
        usual = Network()
        if section is None:
            return usual
        read: dict[str, int | float | None] = {name: section.parsed(name, "a percentage", _share) for name in CHANCES}
        read["latency_ns"] = section.parsed("latency", "a duration", parse_duration)
        read["clock_drift"] = section.count("clock_drift", 0, 10_000)
        return replace(usual, **{name: value for name, value in read.items() if value is not None})  # type: ignore[arg-type]

    def _expectations(self) -> tuple[Expectation, ...]:
        assert self.ruleset is not None
        known = measures_of(self.ruleset)
        section = self.top.section("expect", "measures and what they are compared with", known)
        if section is None:
            return ()
        found = []
        for measure in known:
            if section.has(measure):
                read = section.parsed(measure, "a comparison such as `>= 96%`", _comparison)
                if read is not None:
                    found.append(Expectation(measure, *read))
        return tuple(found)

    def _sections(
        self, name: str, items: tuple[Node, ...], known: Callable[[MappingNode], tuple[str, ...]]
    ) -> list[Section]:
        found = []
        for at, item in enumerate(items):
            if isinstance(item, MappingNode):
                found.append(Section(self.name, f"{name}[{at}]", item, known(item), (), self.problems))
            else:
                self.top.refuse_item(name, item, f"found {kind_of(item)}, a mapping in braces is meant")
        return found


def _made(name: str, section: Section) -> shapes.Shape | None:
    """The shape with its fields, or None where one was reported."""

    def duration(field_: str, usual_s: float) -> int:
        return section.parsed(field_, "a duration", parse_duration) or int(usual_s * EPOCH_NS)

    def share(field_: str, usual: float) -> float:
        found = section.parsed(field_, "a percentage", _share)
        return usual if found is None else found

    match name:
        case "zipf":
            return shapes.Zipf(section.parsed("exponent", "a number such as 1.2", _number) or 1.2)
        case "hotspot":
            return shapes.Hotspot(duration("dwell", 20), share("share", 0.6))
        case "step":
            return shapes.Step(duration("at", 20), share("before", 0.3), share("after", 3.0))
        case "halves":
            return shapes.Halves(duration("dwell", 5))
        case "on-off":
            return shapes.OnOff(duration("mean", 10))
        case "heavy":
            return shapes.Heavy(share("share", 0.9))
        case "ramp":
            return shapes.Ramp(duration("over", 10))
        case _:
            return shapes.Uniform()


def _share(text: str) -> float:
    return parse_percent(text) / 10_000


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"found {shown(text)}, a number is meant") from None


def _comparison(text: str) -> tuple[str, float]:
    parts = _EXPECTED.fullmatch(text)
    if parts is None:
        raise ValueError(f"found {shown(text)}; one of {', '.join(COMPARISONS)} and a number is meant: `>= 96%`")
    return parts[1], _number(parts[2]) / (100 if parts[3] else 1)
