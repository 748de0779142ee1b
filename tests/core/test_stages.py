"""Stages of `when_unavailable`: how they are read, what each gives, and what they add to the bound (design 4.1)."""

from __future__ import annotations

import pytest

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.rule import Fallback, Rule, Stage
from apportion.core.rules_file import parse_rules
from apportion.core.stages import fair_share, lasting_ns, stage_at, stages_between

S = 1_000_000_000


def rule(stages: str, enforce: str = "lease", limit: str = "{rate: 100/s}", edges_max: int = 40) -> Rule:
    """A rule with these stages."""
    text = (
        f"version: 1\ndomain: api\nedges_max: {edges_max}\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [], limit: {limit}, enforce: {enforce}, when_unavailable: {stages}}}\n"
    )
    found = parse_rules([("r", text)]).rule("api", "r")
    assert found is not None
    return found


def test_stages_are_read_in_order_with_their_durations() -> None:
    """Each but the last has one."""
    assert rule("[keep_share for 30s, fair_share for 5m, deny]").when_unavailable == (
        Stage(Fallback.KEEP_SHARE, 30 * S),
        Stage(Fallback.FAIR_SHARE, 300 * S),
        Stage(Fallback.DENY),
    )


@pytest.mark.parametrize(
    "silent_s,expected",
    [(0, "keep_share"), (2.999, "keep_share"), (3, "fair_share"), (7.999, "fair_share"), (8, "deny"), (900, "deny")],
)
def test_each_stage_lasts_as_long_as_it_says(silent_s: float, expected: str) -> None:
    """To the nanosecond, counted from the last word of the region."""
    stages = rule("[keep_share for 3s, fair_share for 5s, deny]").when_unavailable
    assert stage_at(stages, int(silent_s * S)).fallback.value == expected


@pytest.mark.parametrize(
    "least,most,expected", [(0, 2, {"keep_share"}), (2, 4, {"keep_share", "fair_share"}), (9, 9, set())]
)
def test_an_edge_may_be_in_any_stage_between_two_times(least: int, most: int, expected: set[str]) -> None:
    """`deny` is a stage like any other, but it spends nothing."""
    stages = rule("[keep_share for 3s, fair_share for 5s, deny]").when_unavailable
    found = {fallback.value for fallback in stages_between(stages, least * S, most * S)}
    assert found - {"deny"} == expected


def test_a_last_stage_that_admits_is_counted_for_a_quarter_of_an_hour() -> None:
    """After that nobody holds anything back for it."""
    assert lasting_ns(rule("[keep_share for 10s, fair_share]")) == 910 * S
    assert lasting_ns(rule("[deny]")) == 0


@pytest.mark.parametrize("limit,share", [("{rate: 100/s}", 2), ("{rate: 39/s}", 0), ("{rate: 4800/min}", 2)])
def test_a_fair_share_is_whole_units_an_epoch(limit: str, share: int) -> None:
    """floor(Q / edges_max)."""
    assert fair_share(rule("[fair_share]", "region", limit)) == share


@pytest.mark.parametrize(
    "stages,enforce,limit,units",
    [
        ("[deny]", "lease", "{rate: 100/s}", 0),
        ("[keep_share for 10s, deny]", "lease", "{rate: 100/s}", 100),
        ("[keep_share for 10s, deny]", "lease", "{rate: 45/2s}", 23),
        ("[keep_share for 10s, deny]", "lease", "{rate: 15/s}", 0),
        ("[fair_share]", "lease", "{rate: 100/s}", 80),
        ("[keep_share for 10s, fair_share]", "lease", "{rate: 100/s}", 100),
        ("[fair_share]", "region", "{rate: 100/s}", 105),
        ("[fair_share]", "region", "{rate: 30/s}", 0),
        ("[keep_share for 10s, deny]", "edge+region", "{rate: 100/s}", 125),
        ("[allow for 1m, deny]", "region", "{rate: 100/s}", None),
    ],
)
def test_the_bound_has_a_term_for_each_stage(stages: str, enforce: str, limit: str, units: int | None) -> None:
    """deny 0, the last slices, edges_max fair shares; the burst once more where a bucket fills unaware; allow: none."""
    assert bound_of(rule(stages, enforce, limit), StoreKind.SQLITE).units == units


@pytest.mark.parametrize(
    "stages,said",
    [
        ("[deny]", "deny, which adds 0"),
        ("[keep_share for 10s, deny]", "the last slice of each edge that is cut off, together at most 100 an epoch"),
        ("[fair_share]", "`fair_share` adds 2 an epoch for each edge that is cut off, at most 40 x 2"),
        ("[fair_share]", "after 15m of the last stage"),
        (
            "[keep_share for 10s, deny]",
            "only until the silence is noticed (2 epochs), in epochs that no leader divided",
        ),
        (
            "[keep_share for 10s, deny]",
            "a killed edge leaves its share idle until it returns or its stages have run out",
        ),
        ("[keep_share for 10s, deny]", "if region and allocator lose their memory at the same time"),
        ("[allow for 1m, deny]", "`allow` has no bound"),
    ],
)
def test_the_sentence_says_what_a_stage_costs(stages: str, said: str) -> None:
    """In words for a design review."""
    assert said in bound_of(rule(stages), StoreKind.SQLITE).sentence


def test_a_share_that_is_nothing_is_said() -> None:
    """A quota too small for so many edges, and one that is not divided."""
    assert "`fair_share` adds 0 and admits nothing" in bound_of(rule("[fair_share]", limit="{rate: 30/s}")).sentence
    kept = bound_of(rule("[keep_share for 1s, deny]", limit="{rate: 15/s}")).sentence
    assert "`keep_share` adds 0: so small a quota is not divided" in kept
