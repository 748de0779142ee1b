"""What demo and load process say to each other, as JSON lines: one order down, one account a second up. Pure.

Numbers only; who decides anything from them is elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from apportion.commands.demonstration.questions import Question
from apportion.commands.demonstration.traffic import DWELL_NS
from apportion.core.limit import RateLimit


@dataclass(frozen=True, slots=True)
class Ask:
    """One rule to be asked: what goes into a request, how often, and what its quota allows."""

    domain: str
    rule: str
    dimensions: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    cost: int
    requests_per_second: float
    units: int
    period_ns: int
    burst: int
    divided: bool

    @property
    def limit(self) -> RateLimit:
        """What the quota allows."""
        return RateLimit(self.units, self.period_ns, self.burst)


ANSWER_S = 1.0
"""A request without an answer after so long has none: what it was charged, if anything, stays unknown."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the load process is to do: ask at `edges` (addresses) for `seconds`, with this seed.

    `answer_s`: what each request gets to be answered; `dwell_ns`: how long the hotspot stays at an edge.
    """

    edges: tuple[str, ...]
    asks: tuple[Ask, ...]
    seconds: float
    seed: int
    answer_s: float = ANSWER_S
    dwell_ns: int = DWELL_NS

    def line(self) -> bytes:
        """One line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The order in a line."""
        raw = json.loads(line)
        raw["edges"] = tuple(raw["edges"])
        raw["asks"] = tuple(_ask(each) for each in raw["asks"])
        return cls(**raw)


STOP = b"stop\n"
"""The line that ends an order early: what was asked is still waited for, and the last account given."""


@dataclass(frozen=True, slots=True)
class EdgeAccount:
    """Requests to one edge since the start: `failures` by gRPC status, `slowest_ms` the longest wait for an answer."""

    sent: int
    answered: int
    failures: dict[str, int]
    slowest_ms: int


@dataclass(frozen=True, slots=True)
class RuleAccount:
    """The referee's account of one rule since the start, units of cost.

    `labels`: admitted units by epoch label, only labels that changed since the last account (all in the last one).
    `offered_labels`: offered units by the epoch of sending; in the last account only.
    `last_*`: the newest label whose answers are in. `utilisation` None where nothing could be measured yet.
    """

    offered: int
    admitted: int
    refused: int
    unanswered: int
    unlabelled: int
    degraded: int
    overshoot: int
    above_quota: int | None
    overshoot_true_second: int
    overshoot_true_second_certain: int
    last_label: int | None
    last_offered: int
    last_admitted: int
    utilisation: float | None
    labels: dict[int, int]
    offered_labels: dict[int, int]


@dataclass(frozen=True, slots=True)
class Account:
    """What the load process tells each second; `done` in the last one.

    `waiting`: requests without an answer yet; `not_sent`: arrivals left out because too many waited. `late_ms`: how far
    behind its own timetable this process was, at most, since the last account.
    `cpu_seconds`: processor time of this process since it began to ask.
    """

    seconds: float
    done: bool
    requests: int
    waiting: int
    not_sent: int
    late_ms: int
    cpu_seconds: float
    warm_up_epochs: int
    measured_epochs: int
    rules: tuple[RuleAccount, ...]
    edges: tuple[EdgeAccount, ...]

    def line(self) -> bytes:
        """One line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The account in a line."""
        raw = json.loads(line)
        raw["rules"] = tuple(_rule_account(each) for each in raw["rules"])
        raw["edges"] = tuple(EdgeAccount(**each) for each in raw["edges"])
        return cls(**raw)


def ask_of(question: Question) -> Ask:
    """A question in numbers."""
    rule, limit = question.rule, question.limit
    return Ask(
        rule.domain,
        rule.name,
        question.dimensions,
        question.key,
        question.cost,
        question.requests_per_second,
        limit.units,
        limit.period_ns,
        limit.burst,
        rule.divided,
    )


def _ask(raw: dict[str, Any]) -> Ask:
    raw["dimensions"] = tuple((name, value) for name, value in raw["dimensions"])
    raw["key"] = tuple(raw["key"])
    return Ask(**raw)


def _rule_account(raw: dict[str, Any]) -> RuleAccount:
    for name in ("labels", "offered_labels"):
        raw[name] = {int(label): units for label, units in raw[name].items()}
    return RuleAccount(**raw)
