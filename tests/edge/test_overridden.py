"""An edge under overrides, in every mode, with its region and without: a block refuses here, shadow refuses nobody."""

from __future__ import annotations

import pytest

from apportion.core.messages import Rules
from apportion.core.overrides import ALL_RULES, TEXT, Override, Rate, encode
from apportion.core.request import Application
from apportion.edge.kept import decode
from apportion.edge.kept import encode as kept_bytes
from tests.edge.by_hand import EPOCH, ByHand, attached, load
from tests.in_process import SECOND

FILE = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: both, match: {b: "*"}, key: [b], limit: {rate: 80/s}, enforce: edge+region,
     when_unavailable: [allow]}
  - {name: each, match: {c: "*"}, key: [c], limit: {rate: 60/s}, enforce: edge, at_each_edge: 20/s, wrong_costs: noise}
  - {name: exact, match: {e: "*"}, key: [e], limit: {rate: 40/s}, enforce: region, when_unavailable: [allow]}
  - {name: free, match: {n: "*"}, key: [n], limit: {unlimited: true}}
  - {name: leased, match: {l: "*"}, key: [l], limit: {rate: 100/s}, enforce: lease,
     when_unavailable: [allow]}
  - {name: spread, match: {r: "*"}, key: [r], limit: {rate: 160/s}, enforce: edge, slack: 10%, wrong_costs: noise}
"""
MODES = ("both", "each", "exact", "free", "leased", "spread")


def under(*laid: Override) -> ByHand:
    """An edge that has heard of these; undivided epochs, so that nothing waits for a plan."""
    edge = attached()
    edge.hear(Rules(2, (("rules.yaml", FILE), (TEXT, encode(laid)))))
    edge.slices(EPOCH)
    return edge


def block(name: str) -> Override:
    """Nothing for the key k."""
    dimension = dict(zip(MODES, "bcenlr", strict=True))[name]
    return Override("api", name, ((dimension, "k"),), Rate(0, SECOND), False, 1, "why", "who")


def need(edge: ByHand, name: str, key: str = "k", cost: int = 1) -> Application:
    """A request's need of a rule, as the edge has it now."""
    found = next(rule for rule in edge.agent._ruling.domains["api"].rules if rule.name == name)
    return Application(found.for_key((key,)), (key,), cost)


@pytest.mark.parametrize("name", MODES)
def test_a_blocked_key_is_refused_at_the_edge_with_the_region_and_without(name: str) -> None:
    """At once, with no promise; whatever when_unavailable says. Other keys of the rule are as before."""
    edge = under(*map(block, MODES))
    for _ in range(2):
        decision = edge.ask(need(edge, name))
        assert (decision.allowed, decision.reason, decision.retry_after) == (False, "impossible", None)
        edge.lose()
    assert edge.agent.fallbacks.counts == {}
    other = edge.agent.ask((need(edge, name, "other"),), edge.now_ns)
    assert getattr(other, "allowed", None) is True


@pytest.mark.parametrize("name", MODES)
def test_a_peek_at_a_blocked_key_without_a_region_is_answered(name: str) -> None:
    """It asks for nothing, so nothing can refuse it but a stage."""
    edge = under(*map(block, MODES))
    edge.lose()
    edge.ask(need(edge, name, cost=0), peek=True)


@pytest.mark.parametrize("name", MODES)
def test_break_glass_lets_everything_pass_and_says_what_it_would_have_refused(name: str) -> None:
    """Also where a block is laid, with the region and without."""
    glass = Override("", ALL_RULES, (), None, True, 1, "why", "who")
    edge = under(*map(block, MODES), glass)
    for _ in range(2):
        decision = edge.ask(need(edge, name))
        assert (decision.allowed, decision.would_deny) == (True, (name,))
        edge.lose()


def test_what_an_edge_keeps_on_disk_has_the_overrides() -> None:
    """So its next process has them, also while the region is away."""
    edge = under(block("leased"))
    kept = edge.agent.keep(edge.now_ns)
    assert kept is not None
    again, _ = decode(kept_bytes(kept, {}), "edge-1")
    assert again.rules == kept.rules
    later = ByHand()
    later.agent.boot(again, load(again.rules), later.now_ns)
    assert not later.ask(need(later, "leased")).allowed
