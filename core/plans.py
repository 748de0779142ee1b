"""Which buckets a request's dimensions come down to, remembered.

Matching and encoding a key cost ten times what a bucket does, and traffic repeats itself. So the outcome is kept under
the values that rules look at, in two generations: a flood of new values replaces them, but neither grows memory nor
slows what repeats, which moves to the young generation at its next use.

A plan names buckets directly. That is safe because a bucket that leaves the table is closed: it admits nothing, and who
meets a closed one looks the key up again (`Part.find`). Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter

from apportion.core.errors import InputError
from apportion.core.limit import PeriodLimit, RateLimit, Unlimited
from apportion.core.match import Matcher
from apportion.core.part import Detour, Part, PeriodPart, Plan, chain, detours
from apportion.core.rule import Domain, Rule
from apportion.core.table import PeriodCounts, Quotas

MEMO_MAX = 16_384
"""Plans in one generation: about 10 MB for both with one rule each."""

MEMO_CHARACTERS_MAX = 512
"""A request whose values are longer together is resolved each time, or a flood of long ones would fill memory."""

SHAPES_MAX = 1_024
"""Sets of dimension names remembered; honest traffic has a handful."""

SHAPE_CHARACTERS_MAX = 1_024
"""Names longer together than this are not remembered."""

SHOWN_MAX = 60
"""Characters of a wrong argument that an error repeats."""


class Shape:
    """One set of dimension names in the order callers write them: how to read what rules look at, and the rest."""

    __slots__ = ("full", "rest", "values")

    def __init__(self, names: tuple[str, ...], known: tuple[str, ...]) -> None:
        present = tuple(name for name in known if name in names)
        self.full = present == known
        self.values = _getter(present)
        self.rest = _getter(tuple(name for name in names if name not in known))


class Plans:
    """Plans of one domain's rules by the values of a request; `memo_max` 0 remembers none.

    `width`, `values` and `young` are the fast path's: a dict of exactly `width` dimensions whose `values` are in
    `young` needs nothing else of this class. All others go through `resolve`.
    """

    def __init__(self, domain: Domain, memo_max: int = MEMO_MAX) -> None:
        rules = [rule for each in domain.rules for rule in each.on_plans]
        self._quotas = {
            (rule.name, rule.plan): Quotas(rule, limit)
            for rule in rules
            if isinstance(limit := rule.local_limit, RateLimit)
        }
        self._counts = {
            (rule.name, rule.plan): PeriodCounts(rule, rule.limit)
            for rule in rules
            if isinstance(rule.limit, PeriodLimit)
        }
        # Unlimited rules count too: one that is more specific sets a limited one aside.
        self.known = tuple(sorted({name for rule in domain.rules for name in rule.dimensions}))
        self.width = len(self.known) if self.known else -1
        self.values = _getter(self.known)
        self.young: dict[object, Plan] = {}
        self._old: dict[object, Plan] = {}
        self._memo_max = memo_max
        self._matcher = Matcher(domain)
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def resolve(self, dimensions: Mapping[str, str]) -> Plan:
        """The plan of `dimensions`, remembered or not. Raises InputError unless all names and values are text."""
        shape = self._shapes.get(tuple(dimensions)) if dimensions.__class__ is dict else None
        if shape is None:
            shape = self._shape(dimensions)
        for value in shape.rest(dimensions):
            if value.__class__ is not str:
                check_dimensions(dimensions)
        values = shape.values(dimensions)
        key = values if shape.full else (shape, values)
        try:
            return self.young[key]
        except KeyError:
            plan = self._old.get(key)
        except TypeError:  # a value that cannot be a key of a dict is no text: the check below names it
            plan = None
        if plan is None:
            check_dimensions(dimensions)
            plan = self._build(dimensions)
            if sum(map(len, values)) > MEMO_CHARACTERS_MAX:
                return plan
        self._remember(key, plan)
        return plan

    def part(self, rule: Rule, key: tuple[str, ...], following: Part | None = None) -> Part | None:
        """The part of one rule and key, None if the rule is unlimited."""
        if isinstance(rule.limit, Unlimited):
            return None
        name = (rule.name, rule.plan)  # a rule of this domain and version, or there is no such name
        if isinstance(rule.limit, PeriodLimit):  # that of `rule` counts: it may be by the calendar of a tenant
            return PeriodPart(self._counts[name], rule, key, following)
        return Part(self._quotas[name], key, following)

    def _build(self, dimensions: Mapping[str, str]) -> Plan:
        plan = None
        for rule in reversed(self._matcher.match(dimensions, whole=False)):
            key = self._matcher.key(rule, dimensions)
            plan = self.part(rule.for_key(key), key, plan) or plan
        return Detour(plan) if plan is not None and any(map(detours, chain(plan))) else plan

    def _remember(self, key: object, plan: Plan) -> None:
        """Keep `plan` in the young generation; when that is full it becomes the old one, whose plans are forgotten."""
        if len(self.young) >= self._memo_max:
            if not self._memo_max:
                return
            self._old, self.young = self.young, {}
        self.young[key] = plan

    def _shape(self, dimensions: Mapping[str, str]) -> Shape:
        if dimensions.__class__ is not dict:
            check_dimensions(dimensions)
        names = tuple(dimensions)
        shape = self._shapes.get(names)
        if shape is None:
            check_dimensions(dimensions)
            shape = Shape(names, self.known)
            if sum(map(len, names)) <= SHAPE_CHARACTERS_MAX:
                if len(self._shapes) >= SHAPES_MAX:
                    self._shapes.clear()
                self._shapes[names] = shape
        return shape


def check_dimensions(dimensions: object) -> None:  # object: what callers pass is not always what we declare
    """Raise InputError unless `dimensions` is a mapping of text to text; names the first thing that is not."""
    if not isinstance(dimensions, Mapping):
        raise InputError(
            f"a request is a mapping of dimension names to values, both text, like "
            f"{{'tenant': 'contoso'}}; this one is {shown_value(dimensions)}"
        )
    for name, value in dimensions.items():
        if not isinstance(name, str):
            raise InputError(f"dimension name {shown_value(name)} is not text; names are text, like 'tenant'")
        if not isinstance(value, str):
            fix = "leave the dimension out" if value is None else "pass it as text"
            raise InputError(f"dimension {name[:200]!r} has the value {shown_value(value)}, which is not text; {fix}")


def shown_value(value: object) -> str:
    """A wrong argument as an error repeats it: as much of it as a person can read, and its type."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - whatever a caller passed: an int of too many digits, a class with a fault
        text = "something that cannot be shown"
    return f"{text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + '...'} ({type(value).__name__})"


def _getter(names: tuple[str, ...]) -> Callable[[Mapping[str, str]], tuple[str, ...]]:
    """Reads the values of `names` as a tuple. All in C but for no name at all: this is half of what a lookup costs."""
    if not names:
        return _no_values
    # itemgetter of one name gives no tuple; asking for it twice does, and costs less than any wrapping in Python.
    return itemgetter(*names) if len(names) > 1 else itemgetter(*names, *names)


def _no_values(_: Mapping[str, str]) -> tuple[str, ...]:
    return ()
