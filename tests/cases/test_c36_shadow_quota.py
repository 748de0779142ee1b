"""C36 of quotas: a shadow of two a minute beside an enforced ten changes nothing, and predicts exactly."""

import pytest

from tests.cases.quota_world import QuotaWorld
from tests.in_process import rule_text, rules_text

ENFORCED = rule_text("enforced", "quota: 10/min, anchor: calendar")
SHADOW = rule_text("shadow", "quota: 2/min, anchor: calendar", key="", more=", shadow: true")


@pytest.mark.parametrize("edges, enforce", [(1, "region"), (5, "region"), (1, "lease")])
def test_five_pass_three_would_be_denied_and_the_sixth_is_once_it_is_enforced(edges: int, enforce: str) -> None:
    """The same whether the edge remembers that the shadow is used up (one edge) or has to ask (five), or is lent it."""
    shadow = SHADOW.replace("region", enforce)
    world = QuotaWorld(rules_text(ENFORCED, shadow), edges)
    for number in range(5):
        decision = world.call(number % edges)
        assert (decision.allowed, decision.rule, decision.remaining) == (True, "enforced", 9 - number)
        world.shadowed += [verdict for verdict in decision.verdicts if verdict.shadow and not verdict.allowed]
        world.world.run(0.3)
    assert sum(not verdict.allowed for verdict in world.shadowed) == 3
    world.change(rules_text(ENFORCED, shadow.replace(", shadow: true", "")))
    sixth = world.call()
    assert (sixth.allowed, sixth.rule, sixth.reason) == (False, "shadow", "over_limit")
    assert world.call(cost=0).allowed
