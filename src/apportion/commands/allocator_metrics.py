"""Metrics of an allocator, read when somebody scrapes (design 9)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from apportion.allocator.process import Allocator


def collect(allocator: Allocator) -> Iterator[Metric]:
    """Every metric, as it is now."""
    leader = allocator.leader
    register = leader.register
    yield GaugeMetricFamily(
        "apportion_leads", "1 while this allocator leads.", value=int(leader.generation is not None)
    )
    yield GaugeMetricFamily(
        "apportion_register_generation",
        "Generation of the latest leader that the region knows; 0: none.",
        value=register.generation if register is not None else 0,
    )
    yield GaugeMetricFamily("apportion_rules_version", "Version of the rules to divide by.", value=leader.rules_version)
    yield CounterMetricFamily(
        "apportion_epochs_divided", "Epochs that this process divided.", value=allocator.divisions
    )
    yield SummaryMetricFamily(
        "apportion_division_seconds",
        "What dividing an epoch took, the whole step.",
        count_value=allocator.divisions,
        sum_value=allocator.division_ns / 1e9,
    )
