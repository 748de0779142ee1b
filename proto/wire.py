"""The wire's one door: `apportion.core.messages` to protobuf and back. Pure functions; how they do it is in `wire_*`.

Encoding asserts what our own side must keep; decoding raises `ProtocolError`, which names the field, for anything
that a peer could send wrong, and nothing else. Decoded columns are read-only views of the received bytes.
"""

from __future__ import annotations

from apportion.proto.wire_allocator import (
    allocator_from_wire,
    allocator_reply_from_wire,
    allocator_reply_to_wire,
    allocator_to_wire,
)
from apportion.proto.wire_edge import edge_from_wire, edge_to_wire, reply_from_wire, reply_to_wire
from apportion.proto.wire_limits import CHANNEL_OPTIONS, GROUPS_MAX, ID_MAX, MESSAGE_BYTES_MAX, NAMES_MAX

__all__ = [
    "CHANNEL_OPTIONS",
    "GROUPS_MAX",
    "ID_MAX",
    "MESSAGE_BYTES_MAX",
    "NAMES_MAX",
    "allocator_from_wire",
    "allocator_reply_from_wire",
    "allocator_reply_to_wire",
    "allocator_to_wire",
    "edge_from_wire",
    "edge_to_wire",
    "reply_from_wire",
    "reply_to_wire",
]
