"""Struct as bytes: what protobuf's own classes read back is what was meant."""

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import given
from hypothesis import strategies as some

from apportion.edge.struct_bytes import boolean, field, key, number, record, text, values, varint

texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=300)


@given(texts, texts, some.floats(allow_nan=False, allow_infinity=False), some.booleans())
def test_protobuf_reads_what_was_written(name: str, value: str, amount: float, flag: bool) -> None:
    """Text, numbers, booleans, lists and records, in any nesting."""
    inner = record([field(key("amount"), number(amount)), field(key("flag"), boolean(flag))])
    raw = field(key("name" + name), text(value)) + field(key("list"), values([inner, text(name)]))
    read = MessageToDict(Struct.FromString(raw))
    assert read == {"name" + name: value, "list": [{"amount": amount, "flag": flag}, name]}


@pytest.mark.parametrize("length", [0, 127, 128, 16_383, 16_384, 2**21])
def test_lengths_at_the_borders_of_a_varint(length: int) -> None:
    """A length of one, two, three and four bytes."""
    assert Value.FromString(text("x" * length)).string_value == "x" * length


@pytest.mark.parametrize("amount", [0, 1, 2**32, 2**53 - 1, 2**53])
def test_whole_numbers_are_exact_up_to_two_to_the_53(amount: int) -> None:
    """An epoch's label survives being a double."""
    assert int(Value.FromString(number(amount)).number_value) == amount


def test_a_varint_is_seven_bits_a_byte() -> None:
    """Least significant first, the top bit says that more follow."""
    assert [varint(n).hex() for n in (0, 1, 127, 128, 300, 2**32)] == ["00", "01", "7f", "8001", "ac02", "8080808010"]
