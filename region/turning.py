"""How a replica turns from one version of the rules to the next, and tells its edges and allocators (design 8). Pure.

Functions of the authority's own state, apart from it for its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apportion.core.messages import EpochKind, Rules, Slices
from apportion.core.rule import RuleSet
from apportion.region.events import Command, Note, Send
from apportion.region.sessions import EdgeSession

if TYPE_CHECKING:
    from apportion.region.authority import Authority


def change_rules(authority: Authority, rules: Rules, ruleset: RuleSet) -> list[Command]:
    """Go by other rules and tell everybody. What a plan divides, or does not, goes on until a plan names them."""
    if not authority.versions.adopt(rules.version, ruleset, authority.epoch):
        return []
    authority.rules, authority.ruleset = rules, ruleset
    authority.table.adopt(authority.versions.effective)
    note = Note("info", "rules_adopted", (("rules_version", rules.version),))
    return [note, *(Send(peer, rules) for peer in (*authority.edges, *authority.allocators))]


def follow_plan(authority: Authority) -> list[Command]:
    """Let what waits for the present epoch's plan take effect; in an epoch that nobody divides it need not wait."""
    versions, epoch = authority.versions, authority.epoch
    if versions.base == versions.newest:
        return []
    plan = authority.lending.plans.get(epoch)
    if plan is None and not _is_direct(authority):
        return []
    if versions.follow(plan.rules_version if plan is not None else versions.newest, epoch):
        authority.table.adopt(versions.effective)
    return [] if plan is not None else [_nothing(authority, edge) for edge in authority.edges.values()]


def tell_undivided(authority: Authority, edge: EdgeSession) -> list[Command]:
    """Tell an edge that attaches in an epoch that nobody divides by which rules it goes."""
    return [_nothing(authority, edge)] if _is_direct(authority) else []


def _is_direct(authority: Authority) -> bool:
    mark = authority.register.mark(authority.epoch)
    return mark is not None and mark.kind is EpochKind.DIRECT


def _nothing(authority: Authority, edge: EdgeSession) -> Send:
    """Slices of an epoch that nobody divided: none."""
    return Send(edge.session, Slices(authority.epoch, 0, authority.versions.base))
