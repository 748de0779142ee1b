"""Reading `match` and `key` of a rule: which requests it is for, and what is counted apart. Pure."""

from __future__ import annotations

from math import prod

from apportion.core.document import ListNode, MappingNode, Node, Scalar, kind_of
from apportion.core.patterns import parse_pattern
from apportion.core.quantities import shown
from apportion.core.rule import Pattern
from apportion.core.rule_fields import Section

DIMENSION_NAME_MAX = 128
"""Characters: Envoy's users name descriptor keys freely, so any printable text is a dimension."""

DIMENSIONS_MAX = 16
"""Of one match; bounds a key to 1 KiB (see key.py)."""

VALUES_MAX = 256
"""Of one list of patterns."""

COMBINATIONS_MAX = 1024
"""Of a rule's patterns over all its dimensions; each is one entry of the matcher."""

Match = tuple[tuple[str, tuple[Pattern, ...]], ...]
"""The `match` of a Rule: each dimension, in sorted order, with the patterns any of which must fit."""


def name_problem(text: str, what: str, most: int) -> str | None:
    """Why a text is no domain or dimension name; None when it is one."""
    if not text:
        return f"{what} has at least one character"
    if len(text) > most:
        return f"{what} has at most {most} characters, found {len(text)}"
    if not text.isprintable():
        return f"found {shown(text)}; {what} has only printable characters"
    return None


def read_match(rule: Section) -> Match | None:
    """The patterns of a rule's `match`, or None when it was reported."""
    node = rule.mapping("match", 'a mapping from dimensions to values, such as {tenant: "*"},')
    if node is None:
        if not rule.has("match"):
            rule.refuse("match", 'missing; say which requests the rule is for, such as {tenant: "*"}')
        return None
    if not node.entries:
        rule.refuse(
            "match", 'is empty, which would match nothing or everything; name a dimension, such as {tenant: "*"}'
        )
        return None
    if len(node.entries) > DIMENSIONS_MAX:
        rule.refuse("match", f"names {len(node.entries)} dimensions, the most is {DIMENSIONS_MAX}")
        return None
    match = _read_dimensions(rule, node)
    if match and prod(len(patterns) for _, patterns in match) > COMBINATIONS_MAX:
        rule.refuse("match", f"its lists give more than {COMBINATIONS_MAX} combinations; make several rules of it")
        return None
    return match


def _read_dimensions(rule: Section, node: MappingNode) -> Match | None:
    before = len(rule.problems)
    match = []
    for key, value in node.entries:
        if wrong := name_problem(key.text, "a dimension", DIMENSION_NAME_MAX):
            rule.refuse_item("match", key, wrong)
        elif isinstance(value, ListNode):
            match.append((key.text, _read_patterns(rule, key.text, value)))
        elif pattern := _read_pattern(rule, key.text, value):
            match.append((key.text, (pattern,)))
    return tuple(sorted(match, key=lambda entry: entry[0])) if len(rule.problems) == before else None


def _read_patterns(rule: Section, dimension: str, node: ListNode) -> tuple[Pattern, ...]:
    if not node.items or len(node.items) > VALUES_MAX:
        rule.refuse_item(
            f"match.{dimension}", node, f"found a list of {len(node.items)} values; it has 1 to {VALUES_MAX}"
        )
        return ()
    patterns: list[Pattern] = []
    for item in node.items:
        pattern = _read_pattern(rule, dimension, item)
        if pattern in patterns:
            rule.refuse_item(f"match.{dimension}", item, f"found {kind_of(item)} twice in one list; keep one")
        elif pattern:
            patterns.append(pattern)
    return tuple(patterns)


def _read_pattern(rule: Section, dimension: str, node: Node) -> Pattern | None:
    if not isinstance(node, Scalar) or node.nothing:
        rule.refuse_item(
            f"match.{dimension}",
            node,
            f'found {kind_of(node)}, a value is meant: a text, a prefix such as "/api/*", "*" for any value that is '
            'present, "" for the empty one, or a list of these',
        )
        return None
    try:
        return parse_pattern(node.text)
    except ValueError as error:
        rule.refuse_item(f"match.{dimension}", node, f"found {shown(node.text)}: {error}")
        return None


def read_key(rule: Section, match: Match | None) -> tuple[str, ...] | None:
    """The dimensions of a rule's `key`, or None when it is missing; what is no dimension of `match` is reported."""
    items = rule.items("key", "a list of dimensions of match", DIMENSIONS_MAX)
    if items is None:
        if not rule.has("key"):
            rule.refuse(
                "key",
                "missing; name the dimensions of match whose values are counted apart, or [] for one count for all",
            )
        return None
    names = dict(match) if match else None
    key: list[str] = []
    for item in items:
        if not isinstance(item, Scalar) or item.nothing:
            rule.refuse_item("key", item, f"found {kind_of(item)}, the name of a dimension is meant")
        elif item.text in key:
            rule.refuse_item("key", item, f"found {shown(item.text)} twice; keep one")
        elif names is not None and item.text not in names:
            rule.refuse_item(
                "key",
                item,
                f"found {shown(item.text)}, which is not a dimension of match ({', '.join(map(shown, names))}); a key "
                f'has only dimensions of match: add {shown(item.text)} there, "*" for any value',
            )
        else:
            key.append(item.text)
    return tuple(key)
