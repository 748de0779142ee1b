"""Writes google.protobuf.Struct as bytes. Built by protobuf's own classes the same takes about three times as long,
and every answer of the RLS door carries one.

Only what those answers need: text, numbers, booleans, lists, and records of them. No message class is used here, the
tests compare with protobuf's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_double = struct.Struct("<d").pack
_ONE_BYTE = [bytes((number,)) for number in range(128)]


def varint(number: int) -> bytes:
    """A base-128 number, at least 0."""
    if number < 128:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(tag: bytes, content: bytes) -> bytes:
    """A field of variable length."""
    return tag + varint(len(content)) + content


def text(value: str) -> bytes:
    """A Value that is a string."""
    return sized(b"\x1a", value.encode())


def number(value: float) -> bytes:
    """A Value that is a number. It is a double: whole numbers are exact up to 2^53."""
    return b"\x11" + _double(value)


def boolean(value: bool) -> bytes:
    """A Value that is true or false."""
    return b"\x20\x01" if value else b"\x20\x00"


def values(items: Iterable[bytes]) -> bytes:
    """A Value that is a list of Values."""
    return sized(b"\x32", b"".join([sized(b"\n", item) for item in items]))


def record(fields: Iterable[bytes]) -> bytes:
    """A Value that is a Struct of `field`s."""
    return sized(b"\x2a", b"".join(fields))


def key(name: str) -> bytes:
    """The name of a field, to be made once."""
    return sized(b"\n", name.encode()) + b"\x12"


def field(name: bytes, value: bytes) -> bytes:
    """One field of a Struct; `name` is a `key`, `value` a Value."""
    content = name + varint(len(value)) + value
    return b"\n" + varint(len(content)) + content
