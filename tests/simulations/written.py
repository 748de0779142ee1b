"""Rows of a log as a test writes them: one rule `search`, requests by second of the run, answers of edges."""

from __future__ import annotations

from collections.abc import Sequence

from apportion.core.key import encode_key, encode_quota
from apportion.core.messages import Rules
from apportion.core.rule import RuleSet
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.measures import RuleFigures, figures_of
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Answered, Crossed, Issued, Offered, Row, Ruled
from apportion.simulations.rule_log import logs_of
from apportion.simulations.scenario import OneRule
from apportion.simulations.world import SECOND

EDGES = ("edge-0", "edge-1")

BEGUN_NS = 2 * SECOND
"""When the traffic of a written log begins."""


def texts(rate: str = "100/s", enforce: str = "lease", burst: str | None = None, more: str = "") -> Rules:
    """The rules file for two edges; of `100/s` the burst is 25. `more`: what follows the rule."""
    text = OneRule(rate, enforce, burst).text(len(EDGES))
    return Rules(1, (("rules.yaml", text + more),))


def rules(rate: str = "100/s", enforce: str = "lease", burst: str | None = None, more: str = "") -> RuleSet:
    """The same, read."""
    return parsed(texts(rate, enforce, burst, more))


def unlimited() -> Rules:
    """The same without a limit."""
    ((name, text),) = texts().texts
    return Rules(1, ((name, text.replace("{rate: 100/s}", "{unlimited: true}")),))


PLANS = """version: 1
domain: simulated
edges_max: 2
plans: {small: {some: {rate: 20/s, burst: 5}}, large: {some: {rate: 100/s}}}
tenants: {contoso: large, fabrikam: small}
unlisted_tenants: refuse
rules:
  - {name: search, match: {tenant: "*"}, key: [tenant], limit: {from_plan: some}, enforce: lease,
     when_unavailable: [deny]}
"""


def on_plans(text: str = PLANS) -> Rules:
    """The rules file in which `contoso` has 100/s with a burst of 25, `fabrikam` 20/s with 5, and nobody else any."""
    return Rules(1, (("rules.yaml", text),))


def ruled(epoch: int, other: Rules) -> Ruled:
    """Other rules from an epoch on, which began at as many seconds."""
    return Ruled(epoch * SECOND, epoch, 2, other.texts)


def at(second: float) -> int:
    """The instant of a second of the run."""
    return BEGUN_NS + round(second * SECOND)


def offered(second: float, cost: int, edge: int = 0, key: str = "k") -> Offered:
    """A request."""
    return Offered(
        at(second), EDGES[edge], edge, "simulated", "search", (key,), cost, peek=False, first=True, alone=True
    )


def admitted(second: float, cost: int, edge: int = 0, key: str = "k", **other: object) -> Answered:
    """Units spent at an edge, labelled with the second's number."""
    row = Answered(
        at(second), EDGES[edge], edge, "simulated", "search", (key,), cost, True, True, True, int(second), True, False,
        False, None, True,
    )  # fmt: skip
    return row._replace(**other)  # type: ignore[arg-type]


def refused(second: float, cost: int, reason: str = "over_limit", at_edge: bool = True) -> Answered:
    """A request that was refused."""
    row = admitted(second, cost, at_edge=at_edge, reason=reason)
    return row._replace(decided=False, allowed=False, charged=False, epoch=None)


def issued(epoch: int, units: int, edge: int = 0, lent: bool = False) -> Issued:
    """A slice of an edge, or units that it was lent."""
    quota = encode_quota("simulated", "search", encode_key(("k",)))
    return Issued(edge, "search", quota, epoch, units, lent)


def crossed(second: float) -> Crossed:
    """A crossing."""
    return Crossed(at(second), EDGES[0], ("search",))


def by_second(asked: Sequence[int], given: Sequence[int]) -> list[Row]:
    """So much asked and so much of it admitted in each second."""
    rows: list[Row] = []
    for second, (cost, part) in enumerate(zip(asked, given, strict=True)):
        rows += [offered(second + 0.5, cost), admitted(second + 0.5, part)]
    return rows


def figures(
    rows: Sequence[Row], seconds: int, warm_up: int = 0, changes: Sequence[int] = (), of: RuleSet | None = None
) -> RuleFigures:
    """What the rows come to."""
    found = of or rules()
    log = Log.of(rows)
    (of_rule,) = logs_of(log, found, InForce(found, log.rows), EDGES, seconds, BEGUN_NS).values()
    return figures_of(of_rule, warm_up, changes, found.edges_max)
