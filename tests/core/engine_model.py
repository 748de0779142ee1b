"""A dumb engine to compare the real one with: fractions of a unit, nothing remembered, nothing ever forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from apportion.core.limit import RateLimit
from apportion.core.rule import Rule


@dataclass
class Answer:
    """What the model says of one rule."""

    rule: str
    allowed: bool
    remaining: int
    retry_after_ns: int | None


@dataclass
class Model:
    """Rules that match any value of their dimensions. Time must not go back."""

    rules: list[Rule]
    held: dict[tuple[str, tuple[str, ...]], tuple[Fraction, int]] = field(default_factory=dict)

    def decide(
        self, request: Mapping[str, str], cost: int | None, now_ns: int, peek: bool
    ) -> tuple[bool, list[Answer]]:
        """The decision, and what each rule says."""
        answers, charges = [], {}
        for rule in sorted(self.rules, key=lambda rule: rule.name):
            if not rule.dimensions <= set(request):
                continue
            limit = rule.limit
            assert isinstance(limit, RateLimit)
            units = rule.cost_default if cost is None else cost
            quota = (rule.name, tuple(request[name] for name in rule.key))
            tick = now_ns // limit.tick_ns
            units_held, last = self.held.get(quota, (Fraction(0), tick))
            rate = Fraction(limit.units, limit.period_ticks)
            units_held = max(Fraction(0), units_held - rate * (tick - last))
            fits = units_held + units <= limit.burst and units <= (rule.cost_max or 0)
            wait: int | None = 0
            if not fits:
                possible = units <= min(limit.burst, rule.cost_max or 0)
                wait = ceil((units_held + units - limit.burst) / rate) * limit.tick_ns if possible else None
            answers.append(Answer(rule.name, fits, int(limit.burst - units_held), wait))
            charges[quota] = (units_held, units, tick)
        allowed = all(answer.allowed for answer in answers)
        for (quota, (units_held, units, tick)), answer in zip(charges.items(), answers, strict=True):
            charged = units if allowed and not peek else 0
            self.held[quota] = (units_held + charged, tick)
            answer.remaining -= charged
        return allowed, answers
