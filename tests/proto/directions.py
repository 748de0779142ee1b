"""The four directions of the two links, as rows for tests that hold for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from apportion.proto.v1 import region_pb2
from apportion.proto.wire import (
    allocator_from_wire,
    allocator_reply_from_wire,
    allocator_reply_to_wire,
    allocator_to_wire,
    edge_from_wire,
    edge_to_wire,
    reply_from_wire,
    reply_to_wire,
)
from tests.proto.values import FROM_ALLOCATOR, FROM_EDGE, TO_ALLOCATOR, TO_EDGE


@dataclass(frozen=True)
class Direction:
    """One direction: its envelope, its translators, and strategies for what is said in it."""

    envelope: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    values: dict[str, st.SearchStrategy[Any]]


DIRECTIONS = {
    "from edge": Direction(region_pb2.FromEdge, edge_to_wire, edge_from_wire, FROM_EDGE),
    "to edge": Direction(region_pb2.ToEdge, reply_to_wire, reply_from_wire, TO_EDGE),
    "from allocator": Direction(region_pb2.FromAllocator, allocator_to_wire, allocator_from_wire, FROM_ALLOCATOR),
    "to allocator": Direction(region_pb2.ToAllocator, allocator_reply_to_wire, allocator_reply_from_wire, TO_ALLOCATOR),
}
