"""What is asked: descriptors (dimension -> value, with a cost), and the rules and keys they come down to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apportion.core.rule import Rule

COST_MAX = 2**64 - 1
"""Largest cost the wire can carry; a larger one is an error of the caller."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One set of dimensions of a request. `cost` units, None = each rule's default, 0 = a peek at this descriptor."""

    dimensions: Mapping[str, str]
    cost: int | None = None


@dataclass(frozen=True, slots=True)
class Application:
    """One rule that applies to a request under one key, charged once with the sum of the descriptors that hit it.

    `key` holds the values of the rule's key in its order; `cost` units, 0 = a peek; `descriptors` the indexes that hit
    it.
    """

    rule: Rule
    key: tuple[str, ...]
    cost: int
    descriptors: tuple[int, ...] = (0,)
