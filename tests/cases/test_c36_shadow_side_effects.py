"""C36: shadow rules that are not invisible. In bucket form: `2/min` and `10/min` with those bursts."""

from functools import partial
from pathlib import Path

from envoy.service.ratelimit.v3 import rls_pb2

from apportion.core.match import Matcher, apply_rules
from apportion.core.messages import Rules
from apportion.core.request import Application, Descriptor
from apportion.core.rule import RuleSet
from apportion.edge.alone import Alone
from apportion.edge.asking import Answer, start
from apportion.edge.http_fields import decision_fields
from apportion.edge.rls_answer import AnswerWriter
from apportion.region.authority import Authority
from tests.faults.rules import load
from tests.faults.world import Options, World
from tests.in_process import ManualClock, limiter_of, rule_set, rule_text, rules_text

ENFORCED = rule_text("enforced", "rate: 10/min, burst: 10")
SHADOW = rule_text("shadow", "rate: 2/min, burst: 2", key="", more=", shadow: true")
REQUEST = {"tenant": "t"}


def test_five_pass_three_would_be_denied_and_the_enforced_rule_says_the_numbers(tmp_path: Path) -> None:
    """In one process."""
    limiter = limiter_of(tmp_path, ManualClock(), ENFORCED, SHADOW)
    decisions = [limiter.decide(REQUEST) for _ in range(5)]
    assert [decision.allowed for decision in decisions] == [True] * 5
    assert [decision.would_deny for decision in decisions] == [()] * 2 + [("shadow",)] * 3
    assert [(decision.rule, decision.remaining) for decision in decisions][-1] == ("enforced", 5)
    assert not any(decision.degraded or decision.reason for decision in decisions)


def test_statuses_and_headers_come_from_the_enforced_rule() -> None:
    """Over RLS and HTTP: OK with 5 left; the shadow is named as what it is and in no policy."""
    alone = Alone(rule_set(ENFORCED, SHADOW), ManualClock())
    matcher = alone.matcher("api")
    assert matcher is not None
    answers = [start(alone, matcher, [Descriptor(REQUEST)], whole=True) for _ in range(5)]
    last = answers[-1]
    assert isinstance(last, Answer)
    response = rls_pb2.RateLimitResponse.FromString(AnswerWriter().write(last, "id", 1))
    (status,) = response.statuses
    assert (response.overall_code, status.code, status.limit_remaining) == (response.OK, response.OK, 5)
    assert status.current_limit.name == "enforced"
    assert list(response.dynamic_metadata["would_deny"]) == ["shadow"]
    fields = decision_fields(last.decision, "id")
    assert "shadow" not in " ".join(fields.values())
    assert fields["RateLimit"].startswith('"enforced";a=5;')


def test_switched_to_enforced_it_has_counted_all_along() -> None:
    """With the region: what would be denied is 3 whether the edge remembers refusals (one edge) or not (five), and once
    the rule is enforced a sixth request is refused.
    """
    assert [would_deny_then_enforced(edges) for edges in (1, 5)] == [(3, False)] * 2


def would_deny_then_enforced(edges: int) -> tuple[int, bool]:
    """How many of five requests, spread over the edges, would be denied; and the sixth after the switch."""
    before = Rules(1, (("rules.yaml", rules_text(ENFORCED, SHADOW)),))
    after = Rules(2, (("rules.yaml", rules_text(ENFORCED, SHADOW.replace(", shadow: true", ""))),))
    in_force = [before]
    world = World(1, Options(edges=edges, allocators=1, make_authority=partial(authority, in_force)))
    world.start()
    world.run(1)
    for number in range(5):
        world.edges[number % edges].ask(applications(load(before)))
        world.run(0.3)
    assert sum(row.rule == "enforced" for row in world.answers) == 5
    assert sum(world.sums.spent["enforced", ("t",)].values()) == 5
    would_deny = sum(row.shadow and not row.allowed for row in world.answers)
    in_force[0] = after
    world.restart(world.region, 0.1)
    world.run(3)
    world.edges[0].ask(applications(load(after)))
    world.run(0.3)
    return would_deny, sum(world.sums.spent["enforced", ("t",)].values()) == 6


def authority(in_force: list[Rules], rules: Rules, ruleset: RuleSet, *rest: object) -> Authority:
    """A region with the rules that are in force now."""
    return Authority(in_force[0], load(in_force[0]), *rest)  # type: ignore[arg-type]


def applications(rules: RuleSet) -> tuple[Application, ...]:
    """One request for both rules."""
    return apply_rules(Matcher(rules.domains["api"]), [Descriptor(REQUEST)], whole=True)
