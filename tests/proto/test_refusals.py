"""What a peer must not send is refused, and the refusal names the field."""

import struct
from typing import Any

import pytest

from apportion.core.errors import ProtocolError
from apportion.proto.v1 import region_pb2 as pb
from apportion.proto.wire import allocator_from_wire, allocator_reply_from_wire, edge_from_wire, reply_from_wire
from tests.proto.directions import DIRECTIONS, Direction


def u32(*values: int) -> bytes:
    """A column of u32."""
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values: int) -> bytes:
    """A column of u64."""
    return struct.pack(f"<{len(values)}Q", *values)


ONE_MEMBER: dict[str, Any] = {
    "group_count": u32(1),
    "group_member_count": u32(1),
    "group_peek": b"\x00",
    "member_quota": u32(7),
    "member_cost": u64(1),
}
ACQUIRES: list[tuple[dict[str, Any], str]] = [
    ({"group_count": b"\x01\x00\x00"}, "acquire.group_count: 3 bytes are not whole rows of 4"),
    ({"member_cost": b"\x01" * 12}, "acquire.member_cost: 12 bytes are not whole rows of 8"),
    ({"member_cost": u64(1, 1)}, "acquire.member_cost: 2 rows beside 1"),
    ({"group_peek": b""}, "acquire.group_peek: 0 rows beside 1"),
    ({"group_peek": b"\x02"}, "acquire.group_peek: 2 is above 1"),
    ({"group_member_count": u32(2)}, "acquire.group_member_count: adds up to 2, but there are 1 members"),
    ({"group_member_count": u32(0)}, "acquire.group_member_count: a group without members"),
    ({"group_member_count": u32(2**32 - 1)}, "acquire.group_member_count: 4294967295 is above 256"),
    ({"group_member_count": u32(1, 1)}, "acquire.group_member_count: 2 rows beside 1"),
    ({"group_count": u32(0)}, "acquire.group_count: a group without requests"),
    ({"group_count": u32(2**20 + 1)}, "acquire.group_count: 1048577 is above 1048576"),
    ({"group_count": u32(*[1] * 2049)}, "acquire.group_count: 2049 entries, at most 2048 are allowed"),
    ({"member_quota": u32(2**24)}, "acquire.member_quota: 16777216 is above 16777215"),
    ({"ahead_quota": u32(7)}, "acquire.ahead_units: 0 rows beside 1"),
    ({"ahead_quota": u32(7), "ahead_units": u64(2**53)}, "acquire.ahead_units: 9007199254740992 is above"),
    ({"number": 2**63}, "acquire.number: 9223372036854775808 is not between 0 and"),
    ({"names": [pb.QuotaName(id=1), pb.QuotaName(id=1)]}, "acquire.names: an id is declared twice"),
    ({"names": [pb.QuotaName(id=2**24)]}, "acquire.names.id: 16777216 is not between 0 and 16777215"),
    ({"names": [pb.QuotaName(domain="d" * 1025)]}, r"acquire.names.domain \(length\): 1025 is not between"),
    ({"names": [pb.QuotaName(rule="é" * 513)]}, r"acquire.names.rule \(length\): 1026 is not between"),
    ({"names": [pb.QuotaName(key=b"\x00" * 4098)]}, "acquire.names.key: 4098 bytes, at most 4096 are allowed"),
    ({"names": [pb.QuotaName(key=b"\x00\x05ab")]}, "acquire.names.key: not an encoded key"),
    ({"names": [pb.QuotaName(key=b"\x00")]}, "acquire.names.key: not an encoded key"),
    ({"names": [pb.QuotaName(key=b"\x02\x00")]}, "acquire.names.key: not an encoded key"),
]


@pytest.mark.parametrize("changes, error", ACQUIRES)
def test_an_acquire_with_a_fault_is_refused(changes: dict[str, Any], error: str) -> None:
    """A crossing is refused as a whole, by the field that is wrong."""
    with pytest.raises(ProtocolError, match=f"^{error}"):
        edge_from_wire(pb.FromEdge(acquire=pb.Acquire(**ONE_MEMBER | changes)))


def test_the_acquire_without_a_fault_is_not_refused() -> None:
    """What the faults above are made of is right in itself."""
    edge_from_wire(pb.FromEdge(acquire=pb.Acquire(**ONE_MEMBER)))


FROM_EDGE: list[tuple[pb.FromEdge, str]] = [
    (pb.FromEdge(hello=pb.Hello()), r"hello.edge \(length\): 0 is not between 1 and 1024"),
    (pb.FromEdge(hello=pb.Hello(edge="e", epoch=2**53)), "hello.epoch"),
    (pb.FromEdge(hello=pb.Hello(edge="e", rules_version=2**53)), "hello.rules_version"),
    (pb.FromEdge(hello=pb.Hello(edge="e", location="l" * 1025)), "hello.location"),
    (pb.FromEdge(report=pb.Report(demand_ids=u32(1))), "report.demand: 0 rows beside 1"),
    (pb.FromEdge(report=pb.Report(demand_ids=u32(1, 1))), "report.demand_ids: a quota has two rows"),
    (pb.FromEdge(report=pb.Report(spent_ids=u32(1), spent=u64(1))), "report.spent_epoch: 0 rows beside 1"),
    (pb.FromEdge(report=pb.Report(spent_ids=u32(1), spent_epoch=u64(1))), "report.spent: 0 rows beside 1"),
    (pb.FromEdge(report=pb.Report(spent=u64(2**53))), "report.spent: 9007199254740992 is above"),
    (pb.FromEdge(report=pb.Report(spent_epoch=u64(2**64 - 1))), "report.spent_epoch"),
    (pb.FromEdge(report=pb.Report(crossings=2**64 - 1)), "report.crossings"),
    (pb.FromEdge(report=pb.Report(degraded_rules=[pb.DegradedRule()] * 1025)), "report.degraded_rules"),
    (pb.FromEdge(report=pb.Report(degraded_rules=[pb.DegradedRule(requests=2**63)])), "report.degraded_rules.requests"),
    (pb.FromEdge(report=pb.Report(most_refused=[pb.HeavyQuota()] * 21)), "report.most_refused"),
    (pb.FromEdge(report=pb.Report(most_refused=[pb.HeavyQuota(units=2**53)])), "report.most_refused.units"),
    (pb.FromEdge(report=pb.Report(most_refused=[pb.HeavyQuota(units=1, error=2)])), "report.most_refused.error"),
    (pb.FromEdge(report=pb.Report(most_refused=[pb.HeavyQuota(key=b"x")])), "report.most_refused.key"),
    (pb.FromEdge(returned=pb.Return(ids=u32(1, 1), units=u64(1, 2))), "returned.ids: a quota has two rows"),
    (pb.FromEdge(returned=pb.Return(units=u64(1))), "returned.units: 1 rows beside 0"),
    (pb.FromEdge(returned=pb.Return(ids=u32(1), units=u64(1), number=0)), "returned.number: 0 is not between 1"),
    (pb.FromEdge(returned=pb.Return(ids=u32(1), units=u64(1), ready=u64(1, 1), number=1)), "returned.ready: 2 rows"),
    (pb.FromEdge(returned=pb.Return(ids=u32(1), units=u64(1), ready=u64(2), number=1)), "returned.ready: more of"),
    (pb.FromEdge(returned=pb.Return(ids=bytes(4 * (2**20 + 1)))), "returned.ids: 1048577 entries"),
]


@pytest.mark.parametrize("message, error", FROM_EDGE)
def test_what_an_edge_must_not_say_is_refused(message: pb.FromEdge, error: str) -> None:
    """An edge is refused by the field that is wrong."""
    with pytest.raises(ProtocolError, match=f"^{error}"):
        edge_from_wire(message)


TICK = pb.Tick(epoch=5, left_ns=1)


def answer(**columns: bytes) -> pb.ToEdge:
    """An answer of one group with one member, but for `columns`."""
    right: dict[str, Any] = {
        "group_admitted": u32(1),
        "group_member_count": u32(1),
        "member_outcome": u32(1),
        "member_epoch": u64(5),
        "member_remaining": u64(3),
        "member_wait_ns": u64(0),
        "member_backlog": u64(0),
        "member_store": b"\x01",
    }
    return pb.ToEdge(acquire_answer=pb.AcquireAnswer(tick=TICK, **right | columns))


TO_EDGE: list[tuple[pb.ToEdge, str]] = [
    (pb.ToEdge(tick=pb.Tick(left_ns=10**9 + 1)), "tick.left_ns: 1000000001 is not between 0 and 1000000000"),
    (pb.ToEdge(tick=pb.Tick(epoch=2**53)), "tick.epoch"),
    (pb.ToEdge(welcome=pb.Welcome(tick=TICK)), "welcome.rules: missing"),
    (pb.ToEdge(welcome=pb.Welcome(rules=pb.Rules())), "welcome.tick: missing"),
    (pb.ToEdge(rules=pb.Rules(texts=[pb.RulesText()] * 1025)), "rules.texts: 1025 entries"),
    (pb.ToEdge(rules=pb.Rules(texts=[pb.RulesText(name="n" * 1025)])), "rules.texts.name"),
    (pb.ToEdge(slices=pb.Slices(ids=u32(1))), "slices.units: 0 rows beside 1"),
    (pb.ToEdge(slices=pb.Slices(ids=u32(1), units=u64(1), kept=u32(2))), "slices.kept: a quota that `ids` does not"),
    (pb.ToEdge(slices=pb.Slices(ids=u32(1, 1), units=u64(1, 1))), "slices.ids: a quota has two rows"),
    (pb.ToEdge(acquire_answer=pb.AcquireAnswer()), "acquire_answer.tick: missing"),
    (answer(member_outcome=u32(0)), "acquire_answer.member_outcome: an outcome is unspecified"),
    (answer(member_outcome=u32(7)), "acquire_answer.member_outcome: 7 is above 6"),
    (answer(member_epoch=u64()), "acquire_answer.member_epoch: 0 rows beside 1"),
    (answer(member_remaining=u64()), "acquire_answer.member_remaining: 0 rows beside 1"),
    (answer(member_wait_ns=u64()), "acquire_answer.member_wait_ns: 0 rows beside 1"),
    (answer(member_backlog=u64()), "acquire_answer.member_backlog: 0 rows beside 1"),
    (answer(member_store=b""), "acquire_answer.member_store: 0 rows beside 1"),
    (answer(member_store=b"\x03"), "acquire_answer.member_store: 3 is above 1"),
    (answer(group_member_count=u32(2)), "acquire_answer.group_member_count: adds up to 2"),
    (answer(lent_quota=u32(1), lent_units=u64(1)), "acquire_answer.lent_epoch: 0 rows beside 1"),
    (pb.ToEdge(refused=pb.Refused(reason="r" * 4097)), "refused.reason"),
]


@pytest.mark.parametrize("message, error", TO_EDGE)
def test_what_an_edge_must_not_be_told_is_refused(message: pb.ToEdge, error: str) -> None:
    """A region is refused by the field that is wrong."""
    with pytest.raises(ProtocolError, match=f"^{error}"):
        reply_from_wire(message)


FROM_ALLOCATOR: list[tuple[pb.FromAllocator, str]] = [
    (pb.FromAllocator(hello=pb.AllocatorHello()), "hello.allocator"),
    (pb.FromAllocator(lead=pb.Lead()), "lead.generation: 0 is not between 1"),
    (pb.FromAllocator(claim=pb.Claim(epoch=5)), "claim.generation: 0 is not between 1"),
    (pb.FromAllocator(claim=pb.Claim(generation=1, epoch=2**53)), "claim.epoch"),
    (pb.FromAllocator(plan=pb.Plan()), "plan.generation: 0 is not between 1"),
    (pb.FromAllocator(plan=pb.Plan(columns=[pb.Column(ids=u32(1))])), "plan.columns.units: 0 rows beside 1"),
    (pb.FromAllocator(plan=pb.Plan(columns=[pb.Column(ids=u32(1, 1))])), "plan.columns.ids: a quota has two"),
    (pb.FromAllocator(plan=pb.Plan(columns=[pb.Column(kept=u32(1))])), "plan.columns.kept: a quota that `ids`"),
    (pb.FromAllocator(plan=pb.Plan(columns=[pb.Column()] * 2)), "plan.columns.holder: a holder has two columns"),
    (pb.FromAllocator(plan=pb.Plan(columns=[pb.Column()] * 2001)), "plan.columns: 2001 entries"),
    (pb.FromAllocator(plan=pb.Plan(held_ids=u32(1, 1))), "plan.held_ids: a quota has two rows"),
    (pb.FromAllocator(plan=pb.Plan(held=u64(1))), "plan.held: 1 rows beside 0"),
    (pb.FromAllocator(plan=pb.Plan(generation=1, slowed=u64(1))), "plan.slowed: 1 rows beside 0"),
]


@pytest.mark.parametrize("message, error", FROM_ALLOCATOR)
def test_what_an_allocator_must_not_say_is_refused(message: pb.FromAllocator, error: str) -> None:
    """An allocator is refused by the field that is wrong."""
    with pytest.raises(ProtocolError, match=f"^{error}"):
        allocator_from_wire(message)


def governance(**register: Any) -> pb.ToAllocator:
    """A governance with that register."""
    return pb.ToAllocator(governance=pb.Governance(tick=TICK, register=pb.Register(**register)))


VOID = pb.EPOCH_KIND_VOID
TO_ALLOCATOR: list[tuple[pb.ToAllocator, str]] = [
    (governance(marks=[pb.EpochMark(epoch=1)]), "governance.register.marks.kind: 0 is no kind of epoch"),
    (governance(marks=[pb.EpochMark(epoch=n, kind=VOID) for n in (2, 1)]), "governance.register.marks: not asc"),
    (governance(marks=[pb.EpochMark(epoch=n, kind=VOID) for n in (2, 2)]), "governance.register.marks: not asc"),
    (governance(marks=[pb.EpochMark(epoch=n, kind=VOID) for n in range(9)]), "governance.register.marks: 9 ent"),
    (governance(run_id="r" * 1025), "governance.register.run_id"),
    (governance(last_ns=2**63), "governance.register.last_ns"),
    (pb.ToAllocator(governance=pb.Governance(register=pb.Register())), "governance.tick: missing"),
    (pb.ToAllocator(governance=pb.Governance(tick=TICK)), "governance.register: missing"),
    (
        pb.ToAllocator(governance=pb.Governance(tick=TICK, register=pb.Register(), holders=[pb.Holder()] * 2)),
        "governance.holders.incarnation: two holders have the same",
    ),
    (
        pb.ToAllocator(governance=pb.Governance(tick=TICK, register=pb.Register(), holders=[pb.Holder()] * 2001)),
        "governance.holders: 2001 entries",
    ),
    (pb.ToAllocator(register_answer=pb.RegisterAnswer(done=True)), "register_answer.register: missing"),
    (pb.ToAllocator(demand=pb.Demand(ids=u32(1))), "demand.demand: 0 rows beside 1"),
    (pb.ToAllocator(demand=pb.Demand(ids=u32(1, 1))), "demand.ids: a quota has two rows"),
]


@pytest.mark.parametrize("message, error", TO_ALLOCATOR)
def test_what_an_allocator_must_not_be_told_is_refused(message: pb.ToAllocator, error: str) -> None:
    """A region is refused by the field that is wrong."""
    with pytest.raises(ProtocolError, match=f"^{error}"):
        allocator_reply_from_wire(message)


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
@pytest.mark.parametrize("sent", [b"", b"\xa2\x06\x00"], ids=["nothing", "a message of a later version"])
def test_a_message_that_says_nothing_is_refused(direction: Direction, sent: bytes) -> None:
    """An envelope without a message, or with one this version does not know, is no message."""
    with pytest.raises(ProtocolError, match=r"^message: none is set"):
        direction.decode(direction.envelope.FromString(sent))
