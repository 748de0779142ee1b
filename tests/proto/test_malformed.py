"""Whatever a peer sends, decoding raises nothing but ProtocolError, and what it lets through can be said again."""

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.errors import ProtocolError
from tests.proto.directions import DIRECTIONS, Direction
from tests.proto.values import plain

NUMBERS = st.sampled_from([0, 1, 2, 2**24, 2**31, 2**32 - 1]) | st.integers(0, 8)
LARGE_NUMBERS = NUMBERS | st.sampled_from([2**53 - 1, 2**53, 2**63, 2**64 - 1])
COLUMNS = st.binary(max_size=24) | st.builds(
    lambda values, size: b"".join(value.to_bytes(size, "little") for value in values),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([1, 4, 8]),
)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_BYTES: COLUMNS,
    FieldDescriptor.TYPE_ENUM: st.integers(-1, 8),
    FieldDescriptor.TYPE_STRING: st.text(max_size=3) | st.just("x" * 1025),
    FieldDescriptor.TYPE_UINT32: NUMBERS,
    FieldDescriptor.TYPE_UINT64: LARGE_NUMBERS,
}


@st.composite
def anything(draw: st.DrawFn, descriptor: Descriptor) -> Any:
    """A message of that type in which each field is absent or holds whatever its type can."""
    message = GetMessageClass(descriptor)()
    if descriptor.oneofs:
        fields = [draw(st.sampled_from(list(descriptor.oneofs[0].fields)))]
    else:
        fields = [field for field in descriptor.fields if draw(st.booleans())]
    for field in fields:
        one = SCALARS[field.type] if field.message_type is None else anything(field.message_type)
        if field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(one, max_size=3)))
        elif field.message_type is None:
            setattr(message, field.name, draw(one))
        else:
            getattr(message, field.name).CopyFrom(draw(one))
            getattr(message, field.name).SetInParent()
    return message


def decode_or_refuse(direction: Direction, sent: bytes) -> None:
    """Decode; what is not refused must survive being said again."""
    try:
        envelope = direction.envelope.FromString(sent)
    except DecodeError:
        return  # not protobuf at all, or text that is not UTF-8: gRPC closes the stream by itself
    try:
        message = direction.decode(envelope)
    except ProtocolError:
        return
    again = direction.envelope.FromString(direction.encode(message).SerializeToString())
    assert plain(direction.decode(again)) == plain(message)


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
@given(data=st.data())
def test_any_message_is_understood_or_refused(direction: Direction, data: st.DataObject) -> None:
    """Fields of the right type with any content."""
    message = data.draw(anything(direction.envelope.DESCRIPTOR))
    decode_or_refuse(direction, message.SerializeToString())


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
@given(sent=st.binary(max_size=60))
def test_any_bytes_are_understood_or_refused(direction: Direction, sent: bytes) -> None:
    """Bytes that nobody meant."""
    decode_or_refuse(direction, sent)


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS)
@given(data=st.data())
def test_a_damaged_message_is_understood_or_refused(direction: Direction, data: st.DataObject) -> None:
    """A right message with one byte replaced, inserted or cut away."""
    message = data.draw(st.one_of(list(direction.values.values())))
    sent = direction.encode(message).SerializeToString()
    at = data.draw(st.integers(0, len(sent)))
    width = data.draw(st.integers(0, 2))
    decode_or_refuse(direction, sent[:at] + data.draw(st.binary(max_size=1)) + sent[at + width :])
