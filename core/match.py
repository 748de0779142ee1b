"""Which rules apply to a request (design 4), compiled once; a request costs the same however many rules there are.

Rules with the same set of dimension names form a group. Within a group, rules whose patterns have the same *shape* (per
dimension: exact, a prefix of so many characters, any) are found by one look-up of the request's values, cut to those
lengths. So a request costs one look-up for each shape of the groups it can meet. Nothing remembers a request's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter, itemgetter

from apportion.core.patterns import RANK_ANY, RANK_EXACT, rank
from apportion.core.request import Application, Descriptor, units_asked
from apportion.core.rule import REQUESTS, Domain, Rule

SHAPES_MAX = 64
"""Of one set of dimension names; each is one more look-up for each request. The rules file refuses more."""

PLANS_MAX = 256
"""Remembered sets of dimension names that requests came with."""

PLAN_CHARACTERS_MAX = 1024
"""Of the names of a remembered set: names come from outsiders, so memory is bounded by characters too."""

Shape = tuple[int, ...]
"""The rank of each dimension's pattern, dimensions in sorted order."""

_by_name = attrgetter("name")


def entries(rule: Rule) -> Iterator[tuple[Shape, tuple[str, ...]]]:
    """Every combination of a rule's patterns: its shape, and the texts of the dimensions that are not `*`."""
    for patterns in product(*(patterns for _, patterns in rule.match)):
        shape = tuple(rank(pattern) for pattern in patterns)
        yield shape, tuple(pattern.text for pattern in patterns if rank(pattern) != RANK_ANY)


def more_specific(one: Shape, other: Shape) -> bool:
    """Whether `one` is strictly more specific: in no dimension less, in some more."""
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


class Matcher:
    """The compiled rules of one domain. Thread-safe: what it remembers is only ever added or dropped whole.

    `measures`: what its rules count, `requests` always among them.
    """

    __slots__ = ("_groups", "_keys", "_plans", "_plans_whole", "measures")

    def __init__(self, domain: Domain) -> None:
        self.measures = frozenset((REQUESTS, *(rule.counts for rule in domain.rules)))
        by_names: dict[tuple[str, ...], list[Rule]] = {}
        for rule in domain.rules:
            by_names.setdefault(tuple(name for name, _ in rule.match), []).append(rule)
        # Beside each group, its rules that a descriptor of RLS with more dimensions may meet.
        self._groups = [
            (frozenset(names), _group(names, rules), _group(names, [rule for rule in rules if not rule.exact]))
            for names, rules in by_names.items()
        ]
        self._keys = {rule.name: _picker(rule.key) for rule in domain.rules}
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._plans_whole: dict[tuple[str, ...], _Plan] = {}

    def match(self, dimensions: Mapping[str, str], whole: bool) -> tuple[Rule, ...]:
        """The rules that apply, in the order of their names.

        `whole`: the dimensions are a descriptor of Envoy's RLS, which must have exactly those of a rule unless the rule
        says `exact: false`.
        """
        names = tuple(dimensions)
        plan = (self._plans_whole if whole else self._plans).get(names)
        if plan is None:
            plan = self._plan(names, whole)
        if plan.always is not None:
            return plan.always
        if len(plan.groups) == 1:
            return plan.groups[0].find(dimensions)
        found = [rule for group in plan.groups for rule in group.find(dimensions)]
        found.sort(key=_by_name)
        return tuple(found)

    def key(self, rule: Rule, dimensions: Mapping[str, str]) -> tuple[str, ...]:
        """The values of the rule's key; call only for a rule that applies."""
        return self._keys[rule.name](dimensions)

    def _plan(self, names: tuple[str, ...], whole: bool) -> _Plan:
        """What to do with requests that have these dimension names; remembered within bounds."""
        present = frozenset(names)
        groups = [
            group if not whole or wanted == present else loose
            for wanted, group, loose in self._groups
            if wanted <= present
        ]
        plan = _Plan(tuple(group for group in groups if not group.empty))
        plans = self._plans_whole if whole else self._plans
        if sum(map(len, names)) + len(names) <= PLAN_CHARACTERS_MAX:
            if len(plans) >= PLANS_MAX:
                plans.clear()
            plans[names] = plan
        return plan


class _Mixed:
    """A group with shadow rules, which set no enforced one aside, or they would change what is refused."""

    __slots__ = ("_enforced", "_whole", "always", "empty")

    def __init__(self, names: tuple[str, ...], rules: Sequence[Rule]) -> None:
        self._enforced = _Group(names, [rule for rule in rules if not rule.shadow])
        self._whole = _Group(names, rules)
        self.always = self._whole.always
        self.empty = self._whole.empty

    def find(self, dimensions: Mapping[str, str]) -> tuple[Rule, ...]:
        """As `_Group.find`."""
        shadows = [rule for rule in self._whole.find(dimensions) if rule.shadow]
        return tuple(sorted((*self._enforced.find(dimensions), *shadows), key=_by_name))


def _group(names: tuple[str, ...], rules: Sequence[Rule]) -> _Group | _Mixed:
    return _Mixed(names, rules) if any(rule.shadow for rule in rules) else _Group(names, rules)


class _Plan:
    """The groups that requests with certain dimension names can meet; `always`: their rules where no value matters."""

    __slots__ = ("always", "groups")

    def __init__(self, groups: tuple[_Group | _Mixed, ...]) -> None:
        self.groups = groups
        self.always: tuple[Rule, ...] | None = None
        if all(group.always is not None for group in groups):
            self.always = tuple(sorted((rule for group in groups for rule in group.always or ()), key=_by_name))


class _Group:
    """Rules with the same set of dimension names, one table for each shape. `always`: all of them take any values."""

    __slots__ = ("_probes", "always", "empty")

    def __init__(self, names: tuple[str, ...], rules: Iterable[Rule]) -> None:
        tables: dict[Shape, dict[object, tuple[Rule, ...]]] = {}
        for rule in sorted(rules, key=_by_name):
            for shape, texts in entries(rule):
                value: object = texts[0] if len(texts) == 1 else texts
                table = tables.setdefault(shape, {})
                table[value] = (*table.get(value, ()), rule)
        shapes = sorted(tables, reverse=True)
        self.empty = not shapes
        only_any = len(shapes) == 1 and not any(shapes[0])
        self.always = tables[shapes[0]][()] if only_any else None
        self._probes = [
            (
                1 << index,
                sum(1 << other for other, below in enumerate(shapes) if more_specific(shape, below)),
                _cutter(names, shape),
                tables[shape],
            )
            for index, shape in enumerate(shapes)
        ]

    def find(self, dimensions: Mapping[str, str]) -> tuple[Rule, ...]:
        """The rules of the group that apply; `dimensions` has all its names."""
        hits: list[tuple[int, tuple[Rule, ...]]] = []
        set_aside = 0
        for bit, below, cut, table in self._probes:
            rules = table.get(cut(dimensions))
            if rules is not None:
                hits.append((bit, rules))
                set_aside |= below
        if len(hits) <= 1:
            return hits[0][1] if hits else ()
        # A rule that fits in several of its shapes stays for the best of them, which sets the others aside.
        kept: list[Rule] = []
        for bit, rules in hits:
            if not bit & set_aside:
                kept += rules
        kept.sort(key=_by_name)
        return tuple(kept)


def apply_rules(matcher: Matcher, descriptors: Sequence[Descriptor], whole: bool) -> tuple[Application, ...]:
    """What a request comes down to: each rule and key once, with the sum of the costs, by rule name and key."""
    if len(descriptors) == 1:
        dimensions, cost = descriptors[0].dimensions, descriptors[0].cost
        return tuple(
            Application(rule if rule.by_key is None else rule.for_key(key), key, units_asked(rule, cost))
            for rule in matcher.match(dimensions, whole)
            for key in (matcher.key(rule, dimensions),)
        )
    merged: dict[tuple[str, tuple[str, ...]], Application] = {}
    for index, descriptor in enumerate(descriptors):
        for rule in matcher.match(descriptor.dimensions, whole):
            key = matcher.key(rule, descriptor.dimensions)
            cost = units_asked(rule, descriptor.cost)
            former = merged.get((rule.name, key))
            merged[rule.name, key] = (
                Application(rule.for_key(key), key, cost, (index,))
                if former is None
                else Application(former.rule, key, former.cost + cost, (*former.descriptors, index))
            )
    return tuple(merged[name_and_key] for name_and_key in sorted(merged))


def _picker(names: tuple[str, ...]) -> Callable[[Mapping[str, str]], tuple[str, ...]]:
    """A function from dimensions to the values of `names`, as a tuple however many they are."""
    if not names:
        return lambda dimensions: ()
    if len(names) == 1:
        (name,) = names
        return lambda dimensions: (dimensions[name],)
    return itemgetter(*names)


def _cutter(names: tuple[str, ...], shape: Shape) -> Callable[[Mapping[str, str]], object]:
    """A function from dimensions to what a table of this shape is keyed by: values cut to length, none for `*`."""
    wanted = [(name, length) for name, length in zip(names, shape, strict=True) if length != RANK_ANY]
    if not wanted:
        return lambda dimensions: ()
    if all(length == RANK_EXACT for _, length in wanted):
        return itemgetter(*(name for name, _ in wanted))
    if len(wanted) == 1:
        ((name, length),) = wanted
        return lambda dimensions: dimensions[name][:length]
    if len(wanted) == 2:  # twice as fast as the general case below
        (one, one_length), (two, two_length) = wanted
        return lambda dimensions: (dimensions[one][:one_length], dimensions[two][:two_length])
    return lambda dimensions: tuple(dimensions[name][:length] for name, length in wanted)
