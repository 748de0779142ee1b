"""The rules of the fault world: divided leases, undivided ones, region rules that drain fast and slowly, no limit,
shadows, limits of plans, thresholds at the edge.
"""

from __future__ import annotations

from functools import cache

from apportion.core.key import encode_key, encode_quota
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.core.rules_file import parse_rules

TEXT = """
version: 1
domain: api
edges_max: 8
plans: {small: {some: {rate: 5/s}}, large: {some: {rate: 60/s}}}
tenants: {k: large, k3: small}
unlisted_tenants: refuse
rules:
  - {name: both, match: {b: "*"}, key: [b], limit: {rate: 80/s}, enforce: edge+region, slack: 20%,
     when_unavailable: [deny]}
  - {name: each, match: {c: "*"}, key: [c], limit: {rate: 60/s}, enforce: edge, at_each_edge: 20/s,
     wrong_costs: noise}
  - {name: exact, match: {e: "*"}, key: [e], limit: {rate: 40/s}, enforce: region, when_unavailable: [deny]}
  - {name: fifty, match: {f: "*"}, key: [f], limit: {rate: 50/s, burst: 50}, enforce: lease,
     when_unavailable: [deny]}
  - {name: free, match: {n: "*"}, key: [n], limit: {unlimited: true}, enforce: region, when_unavailable: [deny]}
  - {name: hundred, match: {h: "*"}, key: [h], limit: {rate: 100/s}, enforce: lease, when_unavailable: [deny]}
  - {name: keep, match: {k: "*"}, key: [k], limit: {rate: 70/s}, enforce: lease,
     when_unavailable: [keep_share for 2s, deny]}
  - {name: fair, match: {l: "*"}, key: [l], limit: {rate: 90/s}, enforce: lease,
     when_unavailable: [fair_share for 1s, keep_share for 1s, deny]}
  - {name: part, match: {m: "*"}, key: [m], limit: {rate: 48/s}, enforce: region,
     when_unavailable: [fair_share for 3s, deny]}
  - {name: crash, match: {d: "*"}, key: [d], limit: {rate: 1000/min, burst: 250}, enforce: lease,
     when_unavailable: [fair_share for 5s, deny]}
  - {name: stay, match: {t: "*"}, key: [t], limit: {rate: 100/s}, enforce: lease,
     when_unavailable: [keep_share for 30s, deny]}
  - {name: odd, match: {o: "*"}, key: [o], limit: {rate: 45/2s}, enforce: lease, when_unavailable: [deny]}
  - {name: pair, match: {p: "*"}, key: [p], limit: {rate: 30/2s}, enforce: lease, when_unavailable: [deny]}
  - {name: planned, match: {tenant: "*"}, key: [tenant], limit: {from_plan: some}, enforce: lease,
     when_unavailable: [deny]}
  - {name: shade, match: {e: "*"}, key: [e], limit: {rate: 25/s}, enforce: region, when_unavailable: [deny],
     shadow: true}
  - {name: slow, match: {s: "*"}, key: [s], limit: {rate: 120/min, burst: 20}, enforce: region,
     when_unavailable: [deny]}
  - {name: spread, match: {r: "*"}, key: [r], limit: {rate: 160/s}, enforce: edge, slack: 10%, wrong_costs: noise}
  - {name: veil, candidate_for: hundred, limit: {rate: 60/s}}
"""

RULES = Rules(1, (("rules.yaml", TEXT),))


@cache
def load(rules: Rules) -> RuleSet:
    """Parse once for all seeds."""
    return parse_rules(rules.texts)


def rule(name: str) -> Rule:
    """One rule of TEXT."""
    found = load(RULES).rule("api", name)
    assert found is not None
    return found


def quota_key(name: str, key: tuple[str, ...]) -> bytes:
    """What a store files a quota of that rule under."""
    return encode_quota("api", name, encode_key(key))


def application(name: str, cost: int = 1, key: str = "k") -> Application:
    """A request for that rule."""
    return Application(rule(name).for_key((key,)), (key,), cost)
