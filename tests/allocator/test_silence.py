"""Silent edges at the leader: when an edge is silent, and what is held back of which quota (design 4.1)."""

from __future__ import annotations

import numpy as np

from apportion.allocator.silence import KnownEdge, Silence
from apportion.core.allocator_messages import Column, Governance, Holder, Plan
from apportion.core.messages import Quota, Register, Tick
from apportion.core.rules_file import parse_rules

S = 1_000_000_000
TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: kept, match: {a: "*"}, key: [a], limit: {rate: 100/s}, enforce: lease,
     when_unavailable: [keep_share for 3s, fair_share for 5s, deny]}
  - {name: fair, match: {b: "*"}, key: [b], limit: {rate: 41/s}, enforce: region, when_unavailable: [fair_share]}
  - {name: none, match: {c: "*"}, key: [c], limit: {rate: 100/s}, enforce: lease, when_unavailable: [deny]}
"""
KEPT, FAIR, NONE = 0, 1, 2


def silence(epoch: int = 50) -> Silence:
    """Edge e1 is attached since `epoch`, has reported the epoch before, and was given 30 of `kept` and 40 of `none`."""
    found = Silence()
    found.adopt(parse_rules([("r", TEXT)]), ())
    for identity, name in enumerate(("kept", "fair", "none")):
        found.name(identity, Quota("api", name, b"k"))
    found.govern(governance(epoch, 7))
    found.planned(plan(epoch + 1, 7, {KEPT: 30, NONE: 40}))
    return found


def governance(epoch: int, *incarnations: int) -> Governance:
    """Who is attached to replica 1."""
    holders = tuple(Holder(each, f"e{each}", "", replica=False) for each in incarnations)
    return Governance(Tick(epoch, S), Register(), 1, holders, 1)


def plan(epoch: int, holder: int, units: dict[int, int]) -> Plan:
    """A plan with one column."""
    ids = np.array(list(units), np.uint32)
    return Plan(1, epoch, 1, (), (Column(holder, ids, np.array(list(units.values()), np.uint64)),))


def held(found: Silence, target: int) -> dict[int, int]:
    """What is held back of `target`, divided in the epoch before, by quota."""
    what = found.held(target, target - 1)
    if what is None:
        return {}
    ids = [*what.quotas.tolist(), *what.slowed_quotas.tolist()]
    return dict(zip(ids, [*what.units.tolist(), *what.slowed_units.tolist()], strict=True))


def test_an_edge_is_silent_once_the_last_finished_epoch_has_no_report() -> None:
    """Epoch 50's report may still come while 51 is divided; at the division of 52 it is missing."""
    found = silence()
    assert held(found, 51) == {}
    assert held(found, 52) == {KEPT: 30, FAIR: 10}


def test_it_is_silent_until_it_reports_again() -> None:
    """Whatever it missed."""
    found = silence()
    assert held(found, 52)
    found.report(7, 50)
    assert held(found, 52) == {}


def test_deny_holds_nothing_and_leaving_neither() -> None:
    """A rule that ends in deny at once is never named; an edge that left is forgotten."""
    found = silence()
    assert NONE not in held(found, 52)
    found.leave("e7", 7)
    assert held(found, 53) == {}


def test_what_is_held_follows_the_stages() -> None:
    """The last slice, then the larger of both where it may be in either, then floor(100 / 4), then nothing of it."""
    found = silence()
    found.govern(governance(51))  # its stream has ended
    by_epoch = {target: held(found, target) for target in range(52, 66)}
    kept = {target: units.get(KEPT, 0) for target, units in by_epoch.items()}
    assert kept == {52: 30, 53: 30, 54: 30} | dict.fromkeys(range(55, 60), 25) | dict.fromkeys(range(60, 66), 0)
    assert {units[FAIR] for units in by_epoch.values()} == {10}


def test_a_last_stage_that_admits_is_held_for_a_quarter_of_an_hour() -> None:
    """Then others have it."""
    found = silence()
    found.govern(governance(51))
    assert held(found, 51 + 900) == {FAIR: 10}
    assert held(found, 51 + 902) == {}


def test_the_largest_of_the_last_slices_counts() -> None:
    """Which of them it had is not known."""
    found = silence()
    found.report(7, 50)
    found.planned(plan(52, 7, {KEPT: 12}))
    assert held(found, 54)[KEPT] == 30


def test_an_edge_that_starts_again_is_the_same_until_it_reports() -> None:
    """Its next process may have the shares from its disk; an old report of the former process changes nothing."""
    found = silence()
    found.govern(governance(51))
    told = Governance(Tick(52, S), Register(), 1, (Holder(8, "e7", "", replica=False),), 1)
    found.govern(told)
    found.report(7, 51)
    assert held(found, 53) == {KEPT: 30, FAIR: 10}
    found.report(8, 52)
    assert held(found, 53) == {}


def test_a_replica_tells_what_a_new_leader_cannot_know() -> None:
    """Its last slices, reports and end."""
    found = Silence()
    found.adopt(parse_rules([("r", TEXT)]), ())
    found.name(KEPT, Quota("api", "kept", b"k"))
    found.remember("e7", KnownEdge(7, 50, 1, gone=51), np.array([KEPT]), np.array([30]))
    assert held(found, 53) == {KEPT: 30}
    assert held(found, 60) == {}


def test_edges_of_a_replica_that_is_gone_may_be_spending() -> None:
    """From the end of the link on their stages run."""
    found = silence()
    found.lose(1, 51)
    assert held(found, 54)[KEPT] == 30
    assert KEPT not in held(found, 61)
