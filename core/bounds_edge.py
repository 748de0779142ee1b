"""The bounds of rules that an edge decides alone, and what `edge+region` says of its threshold (design 4.1). Pure.

An `edge` bound needs no assumption on clocks, delay or loss: each edge counts what it admits under a label against what
it may at most admit under one, whatever its clock says. A process that starts again counts as one edge more.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.rule import Rule, WrongCosts
from apportion.core.threshold import passing_units, slack_text, with_slack

DEPTHS_TEXT = (
    "the sum of the slices' depths above the burst where slices are small or costs are large (a depth is at least 5 "
    "units and the largest cost that is asked, as far as the slice has them)"
)

OVERLOAD_PERCENT_MAX = 25
"""`wrong_costs: overload` warns when the bound is more than this part of a second's worth."""


def label_units_max(rule: Rule) -> int:
    """The most that one edge admits under one label of an `edge` rule with `at_each_edge`: its rate and its burst."""
    limit = rule.at_each_edge
    assert limit is not None
    return ceil_div(limit.units * EPOCH_NS, limit.period_ns) + limit.burst


def together_units(rule: Rule, edges: int) -> int:
    """The most that so many edges admit together of one label of an `edge` rule."""
    if rule.at_each_edge is not None:
        return edges * label_units_max(rule)
    limit = rule.limit
    assert isinstance(limit, RateLimit) and rule.slack is not None
    if not limit.units:
        return 0
    return with_slack(ceil_div(limit.units * EPOCH_NS, limit.period_ns), rule.slack) + (edges - 1) * rule.share()


def edge_units(rule: Rule, limit: RateLimit) -> int:
    """By label, over the entitlement, of an `edge` rule; `edges_max` edges reach the quota."""
    # The meter lets a burst stand from one label to the next while each edge's bucket has drained, so with
    # `at_each_edge` all bursts count; only where the rates add up to no more than the limit does its own come off.
    together = together_units(rule, rule.edges_max or 1)
    return max(0, ceil_div(together * limit.period_ns - limit.units * EPOCH_NS, limit.period_ns))


def edge_sentences(rule: Rule, limit: RateLimit) -> list[str]:
    """The bound of an `edge` rule in words."""
    edges, over = rule.edges_max or 1, edge_units(rule, limit)
    again = "an edge that starts again within a label counts once more"
    alone = "Decided at the edge alone: nothing crosses"
    if rule.at_each_edge is not None:
        each = rule.at_each_edge
        rate = ceil_div(each.units * EPOCH_NS, each.period_ns)
        label = (
            f"By label: over by at most {over}, {edges} edges (`edges_max`) x {label_units_max(rule)} (each admits "
            f"{rate} and the burst of {each.burst} under one label) less the limit; {again}."
        )
        second = f"In a true second: the same {over}, each edge's bucket is exact on its own clock."
        return [label, second, f"{alone}, and nothing changes while the region is away."]
    assert rule.slack is not None
    quota = ceil_div(limit.units * EPOCH_NS, limit.period_ns)
    whole, others = with_slack(quota, rule.slack), edges - 1
    label = (
        f"By label: over by at most {over}: {whole - quota} (slack {slack_text(rule.slack)}) once each edge has a "
        f"slice, and {others * rule.share()} more ({others} edges x their share of {rule.share()}) while edges are new "
        f"to the quota or have no plan of the epoch; {again}."
    )
    second = (
        f"In a true second, in addition: e x {whole} (e is the largest error of an edge's epochs, measured and "
        f"exported), and {DEPTHS_TEXT}."
    )
    return [label, second, f"{alone}. While the region is away each edge admits its share."]


def threshold_sentence(rule: Rule, limit: RateLimit) -> str:
    """What an edge of an `edge+region` rule refuses by itself."""
    assert rule.slack is not None and rule.edges_max is not None
    cost_max = rule.cost_max or 1
    most = passing_units(limit, rule.slack, rule.edges_max, cost_max, None)
    least = passing_units(limit, rule.slack, rule.edges_max, cost_max, 0)
    return (
        f"Each edge lets from {least} to {most} units a second pass to the region ({slack_text(rule.slack)} more than "
        "its slice of them), which decides them exactly, batched; what is above is refused at the edge."
    )


def edge_warning(rule: Rule, limit: RateLimit) -> str | None:
    """What `wrong_costs` has against the rule, though it is kept; None when nothing."""
    if rule.wrong_costs is not WrongCosts.OVERLOAD or not rule.local:
        return None
    over = edge_units(rule, limit)
    if over * limit.period_ns * 100 <= limit.units * EPOCH_NS * OVERLOAD_PERCENT_MAX:
        return None
    percent = over * limit.period_ns * 100 // (limit.units * EPOCH_NS)
    return (
        f"wrong_costs is `overload`, and the bound, {over}, is {percent}% of the limit: an overload of what it "
        f"protects is not ruled out. Lower `{'at_each_edge' if rule.at_each_edge else 'slack'}` or `edges_max`, or "
        "write `edge+region`"
    )
