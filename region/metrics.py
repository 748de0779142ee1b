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
from apportion.region.states import State, States
from apportion.region.sums import RuleSum

RULE = ("domain", "rule")
EFFECT = (*RULE, "effect")

COUNTED = {
    "apportion_offered_units": "Units that edges reported as offered.",
    "apportion_admitted_units": "Units admitted over all edges, by labels that are complete.",
    "apportion_degraded_units": "Units that edges spent as when_unavailable says.",
    "apportion_degraded_requests": "Requests that edges answered as when_unavailable says.",
    "apportion_refused_at_edge_units": "Units that edges refused above a threshold, without asking.",
    "apportion_refused_with_room_units": "The most of these that there was still room for when their labels ended.",
    "apportion_rule_crossings": "Crossings that carried the rule.",
    "apportion_lent_units": "Units that edges were lent in chunks of a period's allowance.",
    "apportion_given_back_units": "Units of these that edges gave back.",
}
"""Counters of each rule since this replica started."""


def collect(region: Region) -> Iterator[Metric]:
    """Every metric, as it is now."""
    yield from _rule_metrics(region)
    yield from _edge_metrics(region)
    yield from _store_metrics(region)
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
    counted = {name: CounterMetricFamily(name, text, labels=RULE) for name, text in COUNTED.items()}
    bound = GaugeMetricFamily(
        "apportion_bound_units", "The most that one label can be over; absent: no bound.", labels=RULE
    )
    over = GaugeMetricFamily(
        "apportion_overshoot_observed_units", "The most that one label was over since the start.", labels=RULE
    )
    state = GaugeMetricFamily("apportion_rule_state", "1 for the state that the rule is in.", labels=(*RULE, "state"))
    authority = region.authority
    states = States(authority, region.sums.rules)
    for name, rule in authority.versions.effective.rules.items():
        totals, summed = authority.desk.totals.get(name, Totals()), region.sums.rules.get(name, RuleSum())
        for metric, value in zip(counted.values(), _counted(totals, summed), strict=True):
            metric.add_metric(name, value)
        over.add_metric(name, summed.worst)
        units = bound_units(region, rule)
        if units is not None:
            bound.add_metric(name, units)
        now, _ = states.of(rule, units)
        for each in State:
            state.add_metric((*name, each.value), int(now is each))
    yield from (*counted.values(), bound, over, state)


def _counted(totals: Totals, summed: RuleSum) -> tuple[int, ...]:
    """The values of one rule, in the order of COUNTED."""
    at_edges = totals.degraded, totals.degraded_requests, totals.refused_at_edge
    chunks = totals.lent, totals.given_back
    return totals.offered, summed.admitted_ever, *at_edges, summed.refused_with_room, totals.crossings, *chunks


def _edge_metrics(region: Region) -> Iterator[Metric]:
    version = GaugeMetricFamily(
        "apportion_edge_rules_version", "Version of the rules that the edge acknowledged; 0: none.", labels=("edge",)
    )
    degraded = CounterMetricFamily(
        "apportion_edge_degraded_requests",
        "Requests that the edge reported as answered without the authority, since it attached.",
        labels=("edge",),
    )
    edges = list(region.authority.edges.values())
    for edge in edges:
        version.add_metric((edge.hello.edge,), edge.rules_version)
        degraded.add_metric((edge.hello.edge,), edge.degraded)
    yield from (version, degraded)
    yield GaugeMetricFamily("apportion_edges_attached", "Edges that are attached now.", value=len(edges))


def _store_metrics(region: Region) -> Iterator[Metric]:
    counters = region.store.counters()
    yield GaugeMetricFamily("apportion_counters", "Buckets that the store has at hand.", value=counters.at_hand)
    yield CounterMetricFamily("apportion_counters_created", "Buckets that the store created.", value=counters.created)
    yield CounterMetricFamily(
        "apportion_counters_refused", "Requests refused for want of room for a bucket.", value=counters.refused_full
    )
    yield CounterMetricFamily(
        "apportion_lifetimes_missing",
        "Counters of a period whose lifetime was found missing, and mended; no decision was changed.",
        value=counters.lifetimes_missing,
    )
    losses = CounterMetricFamily("apportion_losses", "Times that counters were lost, by cause.", labels=("cause",))
    losses.add_metric(("restart",), int(region.authority.lost_epoch is not None))
    yield losses


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
