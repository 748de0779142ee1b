"""What a replica remembers of edges, tells allocators, and lets buckets do (design 4.1)."""

from __future__ import annotations

import numpy as np

from apportion.core.allocator_messages import AllocatorHello, Claim, Column, Lead, Plan, Remembered
from apportion.core.messages import Hello, Leave, Quota, QuotaName, Register, Report, Rules
from apportion.core.rules_file import parse_rules
from apportion.region.authority import Authority
from apportion.region.events import AllocatorSpoke, Closed, Command, Consume, EdgeSpoke, Event, Polled, Send, Swapped
from apportion.region.events import SwapRegister as Swap

S = 1_000_000_000
TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: kept, match: {a: "*"}, key: [a], limit: {rate: 100/s}, enforce: lease,
     when_unavailable: [keep_share for 3s, deny]}
  - {name: fair, match: {b: "*"}, key: [b], limit: {rate: 40/s}, enforce: region, when_unavailable: [fair_share]}
"""
KEPT, FAIR = Quota("api", "kept", b"\x01x"), Quota("api", "fair", b"\x01x")
EDGE, ALLOCATOR = 1, 2


class Region:
    """An authority whose compare-and-set always succeeds, at second 100 of its store; epoch 50 began then."""

    def __init__(self) -> None:
        rules = Rules(1, (("r", TEXT),))
        register = Register(anchor_epoch=50, anchor_ns=100 * S, last_ns=100 * S, highest=49)
        self.authority = Authority(rules, parse_rules(rules.texts), register, 9)
        self.now_ns = 100 * S
        self.sent: list[tuple[int, object]] = []
        self.consumed: list[Consume] = []
        self.feed(Polled())
        self.feed(EdgeSpoke(EDGE, Hello("e1", "", 7, 0, 0)))
        self.feed(AllocatorSpoke(ALLOCATOR, AllocatorHello("a", 1)))

    def feed(self, event: Event) -> None:
        """Let it happen, and all that follows."""
        commands: list[Command] = list(self.authority.step(event, self.now_ns))
        for command in commands:
            match command:
                case Send(session, message):
                    self.sent.append((session, message))
                case Swap(request, _, new):
                    self.feed(Swapped(request, True, new))
                case Consume():
                    self.consumed.append(command)

    def at(self, second: int) -> None:
        """It is so many seconds after the start."""
        self.now_ns = (100 + second) * S
        self.feed(Polled())

    def plan(self, epoch: int, slice_units: int, slowed: int = 0) -> None:
        """The allocator claims the epoch and divides it: the slice to the edge, the rest to this replica."""
        self.feed(AllocatorSpoke(ALLOCATOR, Claim(1, epoch)))
        names = (QuotaName(0, KEPT), QuotaName(1, FAIR))
        columns = tuple(
            Column(holder, np.array([0], np.uint32), np.array([units], np.uint64))
            for holder, units in ((7, slice_units), (9, 100 - slice_units))
        )
        ids, units = np.array([1] if slowed else [], np.uint32), np.array([slowed] if slowed else [], np.uint64)
        plan = Plan(1, epoch, 1, names, columns, slowed_ids=ids, slowed=units)
        self.feed(AllocatorSpoke(ALLOCATOR, plan))

    def told(self) -> list[Remembered]:
        """What allocators were told of edges, and forget it."""
        told = [message for _, message in self.sent if isinstance(message, Remembered)]
        self.sent.clear()
        return told


def planned() -> Region:
    """Epoch 51 is planned with a slice of 30; the edge has reported 50."""
    region = Region()
    region.feed(AllocatorSpoke(ALLOCATOR, Lead(1)))
    region.plan(51, 30)
    region.at(1)
    region.feed(EdgeSpoke(EDGE, Report(1, 50)))
    region.told()
    return region


def test_a_new_leader_is_told_before_it_hears_that_it_leads() -> None:
    """The last slices, the last report, and the epoch in which the stream ended."""
    region = planned()
    region.feed(Closed(EDGE))
    region.feed(AllocatorSpoke(ALLOCATOR, Lead(2)))
    kinds = [type(message).__name__ for _, message in region.sent]
    assert kinds.index("Remembered") < kinds.index("RegisterAnswer")
    (told,) = region.told()
    assert (told.edge, told.incarnation, told.reported_epoch, told.gone_epoch, told.left) == ("e1", 7, 50, 51, False)
    assert told.units.tolist() == [30]
    known = region.authority.table.by_id(int(told.ids[0]))
    assert known is not None
    assert known.quota == KEPT


def test_slices_are_remembered_by_name_when_they_are_old() -> None:
    """Ids of quotas that nobody asks for are used again."""
    region = planned()
    region.feed(Closed(EDGE))
    region.at(12)
    assert region.authority.memory._edges["e1"].slices == {KEPT: 30}
    region.feed(AllocatorSpoke(ALLOCATOR, Lead(2)))
    (told,) = region.told()
    assert told.units.tolist() == [30]


def test_an_edge_that_leaves_is_forgotten_and_allocators_are_told() -> None:
    """It spends nothing more."""
    region = planned()
    region.feed(EdgeSpoke(EDGE, Leave()))
    (told,) = region.told()
    assert (told.edge, told.left) == ("e1", True)
    region.feed(AllocatorSpoke(ALLOCATOR, Lead(2)))
    assert region.told() == []


def test_an_attached_edge_whose_reports_stay_out_is_taken_off() -> None:
    """It has not heard this replica either, and what it still spends is counted from here on."""
    region = planned()
    region.at(6)
    assert EDGE in region.authority.edges
    region.at(7)
    assert EDGE not in region.authority.edges
    assert region.authority.memory._edges["e1"].gone == 57


def test_a_bucket_is_told_to_fill_slower_at_the_start_of_the_epoch() -> None:
    """By a question that charges nothing; in the epoch after, without such a plan, it is itself again."""
    region = planned()
    region.plan(52, 30, slowed=10)
    assert region.consumed == []
    region.at(2)
    (told,) = region.consumed
    (group,) = told.groups
    assert (group.peek, group.members[0].cost, group.members[0].limit.units) == (True, 0, 30)
    known = region.authority.table.find(FAIR, 52)
    assert known is not None
    assert region.authority.lending.limit_of(known, 52).units == 30
    assert region.authority.lending.limit_of(known, 53).units == 40


def test_a_bucket_never_stands_still() -> None:
    """Where silent edges may spend all of it, one unit a period is left: a rate of 0 would mean never."""
    region = Region()
    known = region.authority.table.find(FAIR, 50)
    assert known is not None
    assert known.slower(40).units == 1
    assert known.slower(0) is known.limit
