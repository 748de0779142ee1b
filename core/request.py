"""What is asked: descriptors (dimension -> value, with a cost), and the rules and keys they come down to."""

from __future__ import annotations

from collections.abc import Mapping

from apportion.core.rule import REQUESTS, Rule
from apportion.core.value import value

COST_MAX = 2**64 - 1
"""Largest cost the wire can carry; a larger one is an error of the caller."""


MEASURES_MAX = 16
"""Measures that one request may name costs of."""

MEASURE_NAME_MAX = 64
"""Characters of a measure's name."""

Cost = int | Mapping[str, int] | None
"""What a request costs: units by measure, or one number for `requests` (0 a peek at all rules); None: nothing said."""


@value
class Descriptor:
    """One set of dimensions of a request, and what it costs."""

    dimensions: Mapping[str, str]
    cost: Cost = None


@value
class Application:
    """One rule that applies to a request under one key, charged once with the sum of the descriptors that hit it.

    `key` holds the values of the rule's key in its order; `cost` units, 0 = a peek; `descriptors` the indexes that hit
    it.
    """

    rule: Rule
    key: tuple[str, ...]
    cost: int
    descriptors: tuple[int, ...] = (0,)


def units_asked(rule: Rule, cost: Cost) -> int:
    """Units that a request of `cost` asks of `rule`; a measure that it does not name costs the rule's default.

    Not 0, which would let a caller pass uncounted that forgets a measure; and no error, for a proxy can name none.
    """
    if cost is None:
        return rule.cost_default
    if isinstance(cost, int):
        return cost if rule.counts == REQUESTS or not cost else rule.cost_default
    named = cost.get(rule.counts)
    return rule.cost_default if named is None else named
