"""`candidate_for`: a rule that tries another limit on the requests of the rule it names. Pure.

A candidate is what its target says with what it says itself laid over it, so whatever a rule can have, a candidate has
without being told, and all is checked together. It is always a shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from apportion.core.document import ListNode, MappingNode, Node, Scalar
from apportion.core.quantities import shown
from apportion.core.rule_fields import Section
from apportion.core.rules_vocabulary import CANDIDATE_INHERITS, nearest

OWN = ("name", "limit", "shadow", "candidate_for")
"""What a candidate never takes from its target."""


def is_candidate(item: MappingNode) -> bool:
    """Whether an entry of the rules is a candidate for another."""
    return any(key.text == "candidate_for" for key, _ in item.entries)


def read_candidate(
    own: Section, item: MappingNode, targets: Mapping[str, MappingNode], built: Callable[[str], bool]
) -> MappingNode | None:
    """The whole entry that a candidate comes down to; None when anything of it was reported.

    `targets` are the entries of the domain by name, `built` says which of them were read without a problem.
    """
    before = len(own.problems)
    for name in CANDIDATE_INHERITS:
        if own.has(name):
            own.refuse(name, f"a candidate has the `{name}` of the rule it is for; leave it out")
    if own.boolean("shadow") is False:
        own.refuse("shadow", "found `false`, but a candidate is always a shadow; leave it out")
    target = _target(own, targets)
    if target is None or len(own.problems) > before:
        return None
    if not built(target):  # its own problems are reported, and there would be the same here
        return None
    said = {key.text for key, _ in item.entries}
    inherited = tuple(
        (_at(key, item.line), moved(value, item.line))
        for key, value in targets[target].entries
        if key.text not in said and key.text not in OWN
    )
    return MappingNode((*item.entries, *inherited), item.line)


def _target(own: Section, targets: Mapping[str, MappingNode]) -> str | None:
    target = own.text("candidate_for", "the name of a rule")
    if target is None:
        return None
    if target not in targets:
        own.refuse("candidate_for", f"found {shown(target)}, {nearest(target, tuple(sorted(targets)))}")
        return None
    if is_candidate(targets[target]):
        own.refuse("candidate_for", f"{shown(target)} is a candidate itself; name the rule that it is for")
        return None
    limit = next((value for key, value in targets[target].entries if key.text == "limit"), None)
    if isinstance(limit, MappingNode) and any(key.text == "unlimited" for key, _ in limit.entries):
        own.refuse(
            "candidate_for",
            f"{shown(target)} has no limit, so it does not say how one would be enforced; write a rule with `shadow: "
            "true` instead",
        )
        return None
    return target


def _at(key: Scalar, line: int) -> Scalar:
    return replace(key, line=line)


def moved(node: Node, line: int) -> Node:
    """A node as if it stood at `line`: what is wrong with it is wrong there, the target was read without a problem."""
    if isinstance(node, ListNode):
        return ListNode(tuple(moved(item, line) for item in node.items), line)
    if isinstance(node, MappingNode):
        return MappingNode(tuple((_at(key, line), moved(value, line)) for key, value in node.entries), line)
    return replace(node, line=line)
