"""Rules files of which some are bad: a bad file keeps its own last good text, the others go on (design 4). Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apportion.core.errors import RulesError
from apportion.core.rule import RuleSet

Texts = tuple[tuple[str, str], ...]

STEPS_MAX = 32
"""Changed files that are tried one by one where it is not plain which of them does not fit; of more, none is taken."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The texts to go by and their rules. `rejected` names files that are not as they were wanted, and `reason` says
    why; both are empty when all is well.
    """

    texts: Texts
    ruleset: RuleSet
    rejected: tuple[str, ...] = ()
    reason: str = ""


def merge(good: Texts, wanted: Texts, parse: Callable[[Texts], RuleSet]) -> Merged:
    """The most of `wanted` that can be had on top of `good`, the last good texts (none at a first start).

    RulesError when not even one file can be read: then there is nothing to go by.
    """
    try:
        return Merged(wanted, parse(wanted))
    except RulesError as error:
        refused = error
    had, new = dict(good), dict(wanted)
    found = _without_blamed(had, new, refused, parse) or _step_by_step(had, new, parse)
    if found is None:
        raise refused
    texts, ruleset = found
    final = dict(texts)
    rejected = sorted(name for name in final.keys() | new.keys() if final.get(name) != new.get(name))
    return Merged(texts, ruleset, tuple(rejected), str(refused))


def _without_blamed(
    had: dict[str, str], new: dict[str, str], refused: RulesError, parse: Callable[[Texts], RuleSet]
) -> tuple[Texts, RuleSet] | None:
    """With the files that the problems name as they were, or left out where they were not."""
    blamed = {getattr(getattr(problem, "place", None), "file", None) for problem in refused.problems}
    mixed = {name: had.get(name) if name in blamed else text for name, text in new.items()}
    return _parsed({name: text for name, text in mixed.items() if text is not None}, parse)


def _step_by_step(
    had: dict[str, str], new: dict[str, str], parse: Callable[[Texts], RuleSet]
) -> tuple[Texts, RuleSet] | None:
    """From the last good texts, one changed file after the other, as long as one more can be had."""
    steps = sorted(name for name in had.keys() | new.keys() if had.get(name) != new.get(name))
    best = _parsed(had, parse)
    if len(steps) > STEPS_MAX:
        return best
    current, moved = dict(had), True
    while moved and steps:
        moved = False
        for name in list(steps):
            tried = {**current, name: new[name]} if name in new else _without(current, name)
            found = _parsed(tried, parse)
            if found is not None:
                current, best, moved = tried, found, True
                steps.remove(name)
    return best


def _without(texts: dict[str, str], name: str) -> dict[str, str]:
    return {each: text for each, text in texts.items() if each != name}


def _parsed(texts: dict[str, str], parse: Callable[[Texts], RuleSet]) -> tuple[Texts, RuleSet] | None:
    pairs: Texts = tuple(sorted(texts.items()))
    if not pairs:
        return None
    try:
        return pairs, parse(pairs)
    except RulesError:
        return None
