"""Metrics of an edge in Prometheus' text: read from plain integers when somebody scrapes, never before.

Labels are rules, reasons and places. A key's values never are: outsiders choose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from apportion.edge.counts import ANOTHER_RULE, SECONDS_BOUNDS, Counts
from apportion.edge.decider import Decider, Gauged, Gauges

RULE = ("domain", "rule")


class Metrics:
    """Everything that `/metrics` says of one edge, and of its process."""

    def __init__(self, decider: Decider, counts: Counts, gauged: Gauged) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_EdgeCollector(decider, counts, gauged))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics in the format that the `Accept` field asks for, and their content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _EdgeCollector(Collector):
    def __init__(self, decider: Decider, counts: Counts, gauged: Gauged) -> None:
        self._decider = decider
        self._counts = counts
        self._gauged = gauged

    def collect(self) -> Iterator[Metric]:
        """Every metric, as it is now."""
        yield from _rule_metrics(self._counts)
        yield from _request_metrics(self._counts)
        ready = GaugeMetricFamily("apportion_ready", "1 while rules are in force and requests can be decided, else 0.")
        ready.add_metric((), int(self._decider.ready))
        yield ready
        yield from _edge_metrics(self._gauged.gauges())


def _rule_metrics(counts: Counts) -> Iterator[Metric]:
    offered = CounterMetricFamily("apportion_offered_units", "Units that requests asked of a rule.", labels=RULE)
    admitted = CounterMetricFamily("apportion_admitted_units", "Units of admitted requests.", labels=RULE)
    denied = CounterMetricFamily(
        "apportion_denied_units",
        "Units of refused requests: why this rule refused (another_rule: it did not), and who knew.",
        labels=(*RULE, "reason", "place"),
    )
    degraded = CounterMetricFamily(
        "apportion_degraded_requests", "Requests that a rule answered without its authority.", labels=RULE
    )
    would_deny = CounterMetricFamily(
        "apportion_would_deny_units",
        "Units that a shadow rule would have refused, were it enforced: why, and who knew.",
        labels=(*RULE, "reason", "place"),
    )
    for rule, count in list(counts.rules.items()):
        offered.add_metric(rule, count.offered)
        admitted.add_metric(rule, count.admitted)
        degraded.add_metric(rule, count.degraded)
        for (reason, place), units in list(count.denied.items()):
            denied.add_metric((*rule, reason.value if reason else ANOTHER_RULE, place.value), units)
        for (reason, place), units in list(count.would_deny.items()):
            would_deny.add_metric((*rule, reason.value if reason else ANOTHER_RULE, place.value), units)
    yield from (offered, admitted, denied, would_deny, degraded)


def _request_metrics(counts: Counts) -> Iterator[Metric]:
    seconds = HistogramMetricFamily(
        "apportion_decision_seconds", "From the question to the decision, crossings included; requests of any rule."
    )
    bounds = [*map(str, SECONDS_BOUNDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(counts.seconds), strict=True))
    seconds.add_metric((), buckets, counts.nanoseconds / 1e9)
    yield seconds
    for name, text, value in (
        ("apportion_peeked_requests", "Requests that only looked; they are in no rule's units.", counts.peeks),
        ("apportion_failed_requests", "Requests that met a fault of this program; the log has it.", counts.failed),
        ("apportion_abandoned_requests", "Requests whose caller went away before the answer.", counts.abandoned),
    ):
        yield CounterMetricFamily(name, text, value=value)


def _edge_metrics(gauges: Gauges) -> Iterator[Metric]:
    yield GaugeMetricFamily("apportion_holdings", "Quotas (rule and key) known here now.", value=gauges.holdings)
    if gauges.crossings is not None:
        yield CounterMetricFamily("apportion_crossings", "Exchanges with the region.", value=gauges.crossings)
    if gauges.tickets_waiting is not None:
        yield GaugeMetricFamily(
            "apportion_tickets_waiting", "Requests that wait for a crossing now.", value=gauges.tickets_waiting
        )
    if gauges.reports_given_up is not None:
        yield CounterMetricFamily(
            "apportion_reports_given_up",
            "Reports that no region took in time, or that were too much to keep: counted there as spent in full.",
            value=gauges.reports_given_up,
        )
    if gauges.stages is not None:
        answers = CounterMetricFamily(
            "apportion_stage_answers",
            "Requests that a stage of when_unavailable answered for a rule, and what it said.",
            labels=(*RULE, "stage", "answer"),
        )
        for (domain, rule, stage, passed), number in list(gauges.stages.items()):
            answers.add_metric((domain, rule, stage, "passed" if passed else "refused"), number)
        yield answers
    if gauges.rules_version is not None:
        yield GaugeMetricFamily(
            "apportion_rules_version", "Version of the rules that the region sent last.", value=gauges.rules_version
        )
    if gauges.epoch_error_ns is not None:
        yield GaugeMetricFamily(
            "apportion_epoch_mapping_error_seconds",
            "How far the region's epochs may be off on the clock of this edge.",
            value=gauges.epoch_error_ns / 1e9,
        )
