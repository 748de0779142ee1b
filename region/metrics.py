"""Metrics of a region replica, read from what it has at hand when somebody scrapes (design 9).

Labels are rules, edges and states. A key's values never are: outsiders choose them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apportion.core.overrides import Override
from apportion.region.desk import Totals
from apportion.region.reading import bound_units
from apportion.region.region import Region
from apportion.region.sums import RuleSum

RULE = ("domain", "rule")
EFFECT = (*RULE, "effect")
STATES = ("exact", "bounded", "advisory", "degraded")


def collect(region: Region) -> Iterator[Metric]:
    """Every metric, as it is now."""
    yield from _rule_metrics(region)
    yield from _edge_metrics(region)
    yield from _config_metrics(region)
    authority = region.authority
    for name, text, value in (
        ("apportion_epoch", "The region's epoch.", authority.epoch),
        (
            "apportion_register_generation",
            "Generation of the latest leader; 0: there was none.",
            authority.register.generation,
        ),
        ("apportion_quotas", "Quotas (rule and key) known here now.", len(authority.table)),
        ("apportion_allocators_attached", "Allocators that are attached now.", len(authority.allocators)),
    ):
        yield GaugeMetricFamily(name, text, value=value)


def _rule_metrics(region: Region) -> Iterator[Metric]:
    offered = CounterMetricFamily("apportion_offered_units", "Units that edges reported as offered.", labels=RULE)
    crossings = CounterMetricFamily("apportion_rule_crossings", "Crossings that carried the rule.", labels=RULE)
    bound = GaugeMetricFamily(
        "apportion_bound_units", "The most that one label can be over; absent: no bound.", labels=RULE
    )
    over = GaugeMetricFamily(
        "apportion_overshoot_observed_units", "The most that one label was over since the start.", labels=RULE
    )
    state = GaugeMetricFamily("apportion_rule_state", "1 for the state that the rule is in.", labels=(*RULE, "state"))
    authority = region.authority
    for name, rule in authority.versions.effective.rules.items():
        totals = authority.desk.totals.get(name, Totals())
        offered.add_metric(name, totals.offered)
        crossings.add_metric(name, totals.crossings)
        over.add_metric(name, region.sums.rules.get(name, RuleSum()).worst)
        units = bound_units(region, rule)
        if units is not None:
            bound.add_metric(name, units)
        for each in STATES:
            state.add_metric((*name, each), int(each == ("exact" if units == 0 else "bounded")))
    yield from (offered, crossings, bound, over, state)


def _edge_metrics(region: Region) -> Iterator[Metric]:
    version = GaugeMetricFamily(
        "apportion_edge_rules_version", "Version of the rules that the edge acknowledged; 0: none.", labels=("edge",)
    )
    edges = list(region.authority.edges.values())
    for edge in edges:
        version.add_metric((edge.hello.edge,), edge.rules_version)
    yield version
    yield GaugeMetricFamily("apportion_edges_attached", "Edges that are attached now.", value=len(edges))


def _config_metrics(region: Region) -> Iterator[Metric]:
    laid = GaugeMetricFamily(
        "apportion_overrides", "Overrides of an operator in force: at a rate, of 0 (block), or shadow.", labels=EFFECT
    )
    effects = Counter((each.domain, each.rule, _effect(each)) for each in region.operator.laid)
    for effect, number in sorted(effects.items()):
        laid.add_metric(effect, number)
    yield laid
    yield GaugeMetricFamily(
        "apportion_rules_version", "Version of the rules in force.", value=region.authority.rules.version
    )
    status = region.rules_status
    if status is None:
        return
    yield GaugeMetricFamily(
        "apportion_config_rejected_files",
        "Rules files that are not in force as they are on disk; each keeps its last good text.",
        value=len(status.rejected),
    )
    yield CounterMetricFamily(
        "apportion_config_rejections", "States of the rules files that were rejected.", value=status.rejections
    )
    yield CounterMetricFamily("apportion_config_reloads", "New versions that were taken.", value=status.reloads)


def _effect(override: Override) -> str:
    if override.rate is None:
        return "shadow"
    return "rate" if override.rate.units else "block"
