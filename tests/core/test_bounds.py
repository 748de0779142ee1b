"""What a rule can be exceeded by, in numbers and sentences (design 4.1)."""

from __future__ import annotations

import pytest

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.rule import Rule
from apportion.core.rules_file import parse_rules


def rule(limit: str, enforce: str) -> Rule:
    """A rule with this limit."""
    text = (
        "version: 1\ndomain: api\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [], limit: {limit}, enforce: {enforce}, when_unavailable: [deny]}}\n"
    )
    found = parse_rules([("r", text)]).rule("api", "r")
    assert found is not None
    return found


@pytest.mark.parametrize("enforce", ["lease", "region"])
@pytest.mark.parametrize("limit", ["{rate: 10000/s}", "{rate: 1/min, burst: 5}", "{rate: 0/s}"])
def test_lease_and_region_are_never_over_by_label(limit: str, enforce: str) -> None:
    """On a store that keeps what it acknowledged, whatever fails."""
    assert bound_of(rule(limit, enforce)).units == 0
    assert bound_of(rule(limit, enforce), StoreKind.SQLITE).units == 0


def test_a_store_that_forgets_adds_a_burst_for_each_restart() -> None:
    """memory: starts full (design 4.2)."""
    bound = bound_of(rule("{rate: 1/min, burst: 5}", "region"), StoreKind.MEMORY)
    assert bound.units == 5
    assert "on memory: 5 (one burst) for each restart of the region" in bound.sentence
    assert bound_of(rule("{rate: 0/s}", "region"), StoreKind.MEMORY).units == 0


def test_a_divided_quota_says_what_a_true_second_adds() -> None:
    """The mapping's error, borrowed chunks, depths, and an epoch that turns direct; with numbers."""
    sentence = bound_of(rule("{rate: 20000/s}", "lease"), StoreKind.SQLITE, edges_max=40).sentence
    assert (
        "e x 20000/s (e is the largest error of an edge's epochs, measured and exported; 10 ms of it are 200"
        in sentence
    )
    assert "one borrowed chunk per edge (at most 40)" in sentence
    assert "5000 (the burst) where an epoch turns direct" in sentence
    assert "crosses on every request" not in sentence.lower()


def test_an_undivided_quota_says_that_it_crosses_on_every_request() -> None:
    """Below 20 units a second a slice loses more than it gains."""
    assert "crosses on every request" in bound_of(rule("{rate: 19/s}", "lease")).sentence
    assert "Crosses on every request" in bound_of(rule("{rate: 20000/s}", "region")).sentence


def test_deny_adds_nothing_and_is_said() -> None:
    """The stages of when_unavailable are part of the bound."""
    assert "has not answered within 100ms: deny, which adds 0" in bound_of(rule("{rate: 9/s}", "region")).sentence


def test_without_a_store_the_sentence_speaks_of_each() -> None:
    """check-config without --store."""
    sentence = bound_of(rule("{rate: 10/min}", "region")).sentence
    assert "on sqlite: 0, an acknowledged decision is on disk; on memory: 10 (one burst)" in sentence


def test_what_has_no_limit_has_no_bound() -> None:
    """There is nothing to be over."""
    assert bound_of(rule("{unlimited: true}", "region")).units is None
