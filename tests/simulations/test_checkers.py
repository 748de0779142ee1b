"""Each checker by itself: rows in which nothing is wrong, and the row that is."""

from __future__ import annotations

import pytest

from apportion.core.key import encode_key, encode_quota
from apportion.core.messages import Rules
from apportion.simulations.checkers import violations
from apportion.simulations.checkers_quality import newcomer_refused
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import (
    Anchored,
    Answered,
    Counted,
    Failed,
    Issued,
    Open,
    Row,
    Ruled,
    Sliced,
    Stored,
    Waited,
)
from apportion.simulations.scenario import OneRule
from apportion.simulations.world import SECOND

K = ("k",)


def rules(enforce: str, rate: str = "100/s", stages: tuple[str, ...] = ("deny",)) -> Rules:
    """The rules file of a rule `search` for four edges."""
    return Rules(1, (("rules.yaml", OneRule(rate, enforce, stages=stages).text(4)),))


QUOTA = encode_quota("simulated", "search", encode_key(K))


def admitted(at_s: float, cost: int, epoch: int, **other: object) -> Answered:
    """Units that edge 7 spent of its slice."""
    row = Answered(
        int(at_s * SECOND), "edge-0", 7, "simulated", "search", K, cost, True, True, True, epoch, True, False, False,
        None, True,
    )  # fmt: skip
    return row._replace(**other)  # type: ignore[arg-type]


def issued(units: int, epoch: int) -> list[Row]:
    """A slice of edge 7."""
    return [Sliced(0, "edge-0", 7, epoch, 1, units), Issued(7, "search", QUOTA, epoch, units, lent=False)]


def found(rows: list[Row], enforce: str = "lease", stages: tuple[str, ...] = ("deny",)) -> set[str]:
    """The properties that are broken."""
    log: list[Row] = [Anchored(0, 0, 0, SECOND), *rows]
    return {each.property for each in violations(Log.of(log), parsed(rules(enforce, stages=stages)))}


WHOLE = [*issued(100, 1), *issued(100, 2), admitted(1.5, 100, 1), admitted(2.9, 100, 2)]


def test_a_run_in_which_nothing_is_wrong() -> None:
    """All of two labels, each from a slice."""
    assert found(WHOLE) == set()


@pytest.mark.parametrize(
    "rows, seen",
    [
        ([*WHOLE, admitted(2.95, 1, 2)], {"S1", "S4"}),
        ([*WHOLE, admitted(3.4, 1, 3)], {"S4"}),
        ([*WHOLE, Sliced(0, "edge-1", 8, 2, 2, 0)], {"S2"}),
        ([*WHOLE, Stored(0, QUOTA, 2, 100, reported=True), Counted(QUOTA, 2, 99)], {"S3"}),
        ([*WHOLE, Stored(0, QUOTA, 2, 101, reported=True), Counted(QUOTA, 2, 101)], {"S3"}),
        ([*WHOLE, Stored(0, QUOTA, 2, 100, reported=True), Counted(QUOTA, 2, 100)], set()),
        ([*issued(100, 1), *issued(100, 2), admitted(1.9, 100, 1), admitted(2.1, 100, 2)], {"S5"}),
        ([*WHOLE[:4], admitted(1.5, 50, 2), admitted(1.6, 50, 1)], {"S12"}),
        ([*WHOLE, admitted(3, 0, 2, decided=False, allowed=False)], {"S8"}),
        ([Waited(400, 300, 100), Waited(2_000_000, 0, 100)], {"answer"}),
        ([Open(10, "edge-0", 0, 100), Open(SECOND, "edge-0", 0, 100)], {"answer"}),
        ([Failed("region", "report_above_issued", "()")], {"error"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_seen(rows: list[Row], seen: set[str]) -> None:
    """One thing each, and nothing else is reported."""
    assert found(rows) == seen


def test_the_store_admits_rate_and_burst_and_no_more() -> None:
    """By its own clock, tick by tick: 25 at once, and one each 10 ms."""
    exact = [Stored(0, QUOTA, 1, 25, reported=False), Stored(10_000_000, QUOTA, 1, 1, reported=False)]
    assert found([*exact], "region") == set()
    assert found([*exact, Stored(19_999_000, QUOTA, 1, 1, reported=False)], "region") == {"S5"}


def test_an_edge_cut_off_spends_its_share() -> None:
    """A quarter of 100/s with four edges; its last slice where the stage says so."""
    alone = [admitted(1.5, 25, 1, degraded=True)]
    assert found([*alone], "region", ("fair_share",)) == set()
    assert found([*alone, admitted(1.6, 1, 1, degraded=True)], "region", ("fair_share",)) == {"S4"}
    kept = [*issued(40, 1), admitted(2.5, 40, 2, degraded=True)]
    assert found([*kept], "lease", ("keep_share",)) == set()
    assert found([*kept, admitted(2.6, 1, 2, degraded=True)], "lease", ("keep_share",)) == {"S4"}


def test_an_epoch_is_judged_by_the_largest_limit_in_force() -> None:
    """50/s from epoch 5 on: the former limit may count for two epochs more, and then does not."""
    changed = Ruled(5 * SECOND, 5, 2, rules("lease", "50/s").texts)
    before = [changed, *issued(100, 7), admitted(7.5, 100, 7)]
    assert found([*before]) == set()
    assert found([changed, *issued(100, 8), admitted(8.5, 100, 8)]) == {"S1", "S5"}


@pytest.mark.parametrize("spent, seen", [(10, ["L3"]), (60, [])])
def test_a_newcomer_is_served_while_there_is_room(spent: int, seen: list[str]) -> None:
    """Its first request is not over a limit that is not exhausted (L3)."""
    refused = admitted(1.6, 1, 1, incarnation=8, decided=False, allowed=False, charged=False, reason="over_limit")
    rows = [*issued(100, 1), admitted(1.5, spent, 1), refused._replace(epoch=None)]
    limits = InForce(parsed(rules("lease")), rows)
    assert [each.property for each in newcomer_refused(Log.of(rows), limits)] == seen
