"""What is said arrives as it was said."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.allocator_messages import Demand
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    Group,
    GroupAnswer,
    Lent,
    Member,
    MemberAnswer,
    Outcome,
    Refused,
    Slices,
    Tick,
)
from apportion.proto.v1 import region_pb2
from apportion.proto.wire import (
    allocator_reply_from_wire,
    allocator_reply_to_wire,
    edge_to_wire,
    reply_from_wire,
    reply_to_wire,
)
from tests.proto.directions import DIRECTIONS, Direction
from tests.proto.values import column_of_ids, column_of_units, plain

KINDS = [
    pytest.param(direction, kind, id=f"{name}: {kind}")
    for name, direction in DIRECTIONS.items()
    for kind in direction.values
]


@pytest.mark.parametrize("direction, kind", KINDS)
@given(data=st.data())
def test_what_is_said_arrives_as_it_was_said(direction: Direction, kind: str, data: st.DataObject) -> None:
    """Every message survives the way over bytes: same values, same types."""
    message: Any = data.draw(direction.values[kind])
    sent = direction.encode(message).SerializeToString()
    assert plain(direction.decode(direction.envelope.FromString(sent))) == plain(message)


def test_columns_are_little_endian() -> None:
    """The bytes of a column are the same whatever machine wrote them."""
    slices = Slices(7, 1, 1, (), column_of_ids([1, 0x01020304]), column_of_units([5, 8_000_000_000]))
    wire = reply_to_wire(slices).slices
    assert wire.ids == bytes.fromhex("01000000 04030201")
    assert wire.units == bytes.fromhex("0500000000000000 0050d6dc01000000")


def test_columns_of_the_other_byte_order_are_written_alike() -> None:
    """A big-endian column, which is what a big-endian host has, gives the same bytes."""
    ids, units = np.array([1, 515], ">u4"), np.array([2**40], ">u8")
    wire = reply_to_wire(Slices(7, 1, 1, (), ids, units)).slices
    assert (wire.ids, wire.units) == (bytes.fromhex("01000000 03020000"), bytes.fromhex("0000000000010000"))


def test_an_acquire_is_columnar() -> None:
    """Groups and members lie one after the other in columns; no message is made for each."""
    acquire = Acquire(
        3,
        (),
        (Group(2, (Member(1, 5), Member(9, 2**64 - 1))), Group(1, (Member(1, 0),), peek=True)),
        ahead=((4, 100),),
    )
    wire = edge_to_wire(acquire).acquire
    assert np.frombuffer(wire.group_count, "<u4").tolist() == [2, 1]
    assert np.frombuffer(wire.group_member_count, "<u4").tolist() == [2, 1]
    assert wire.group_peek == b"\x00\x01"
    assert np.frombuffer(wire.member_quota, "<u4").tolist() == [1, 9, 1]
    assert np.frombuffer(wire.member_cost, "<u8").tolist() == [5, 2**64 - 1, 0]
    assert np.frombuffer(wire.ahead_quota, "<u4").tolist() == [4]
    assert np.frombuffer(wire.ahead_units, "<u8").tolist() == [100]


def test_an_answer_says_never_and_none_by_the_largest_number() -> None:
    """What never fits, and what no bucket decided, is the largest u64; zero stays zero."""
    never = MemberAnswer(Outcome.IMPOSSIBLE, 5, 0, None, None, store=False)
    now = MemberAnswer(Outcome.ADMITTED, 5, 8_000_000_000, 0, 0)
    answer = AcquireAnswer(3, Tick(5, 10**9), (GroupAnswer(1, (never, now)),), (Lent(2, 5, 70),))
    wire = reply_to_wire(answer).acquire_answer
    assert np.frombuffer(wire.member_outcome, "<u4").tolist() == [
        region_pb2.OUTCOME_IMPOSSIBLE,
        region_pb2.OUTCOME_ADMITTED,
    ]
    assert np.frombuffer(wire.member_wait_ns, "<u8").tolist() == [2**64 - 1, 0]
    assert np.frombuffer(wire.member_backlog, "<u8").tolist() == [2**64 - 1, 0]
    assert np.frombuffer(wire.member_remaining, "<u8").tolist() == [0, 8_000_000_000]
    assert wire.member_store == b"\x00\x01"


def test_numbers_beyond_64_bits_saturate() -> None:
    """A wait, a backlog or a remainder that no column can hold is the largest that one can, and not `never`."""
    huge = MemberAnswer(Outcome.OVER_LIMIT, 5, 2**70, 2**70, 2**70)
    wire = reply_to_wire(AcquireAnswer(3, Tick(5, 0), (GroupAnswer(0, (huge,)),)))
    answer = reply_from_wire(wire)
    assert isinstance(answer, AcquireAnswer)
    member = answer.groups[0].members[0]
    assert (member.remaining, member.wait_ns, member.backlog) == (2**64 - 1, 2**64 - 2, 2**64 - 2)


def test_demand_saturates() -> None:
    """A caller may ask for 2^64 - 1 units; the demand that comes of it must not close the stream."""
    wire = allocator_reply_to_wire(Demand(1, 5, (), column_of_ids([3]), column_of_units([2**64 - 1])))
    demand = allocator_reply_from_wire(wire)
    assert isinstance(demand, Demand)
    assert demand.demand.tolist() == [2**53 - 1]


def test_no_more_than_a_second_is_left_of_an_epoch() -> None:
    """While the store's clock is behind the register's anchor the epoch has all of its second left, not more."""
    assert reply_from_wire(reply_to_wire(Tick(5, 1_300_000_000))) == Tick(5, 1_000_000_000)


def test_a_long_reason_is_cut() -> None:
    """A refusal always arrives, however long its reason is and whatever is in it."""
    refused = reply_from_wire(reply_to_wire(Refused("a\udcff" + "é" * 5000, retry=True)))
    assert refused == Refused("a?" + "é" * 2047, retry=True)


def test_decoded_columns_are_read_only() -> None:
    """A column is a view of the message: writing to it is an error, not a change of what was said."""
    slices = reply_from_wire(reply_to_wire(Slices(7, 1, 1, (), column_of_ids([1]), column_of_units([5]))))
    assert isinstance(slices, Slices)
    with pytest.raises(ValueError, match="read-only"):
        slices.units[0] = 6
