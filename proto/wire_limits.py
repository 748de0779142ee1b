"""Named maxima of the wire, so that nothing a peer sends is unbounded. Constants and the reasons for them, no code.

A sender that may exceed one splits what it says; the encoders assert it. The decoders refuse with ProtocolError.
"""

from __future__ import annotations

MESSAGE_BYTES_MAX = 64 * 2**20
"""Bytes of one message: a plan of 10,000 quotas x 50 edges is 6 MB of columns, and gRPC's own maximum is 4 MB."""

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
)
"""Options that every server and channel of `apportion.v1.Region` needs; gRPC's own refuse a large plan."""

UNITS_MAX = 2**53 - 1
"""Units in a cell, epochs and generations: what a store's scripts count in doubles, and what SQLite's integers hold.

2000 holders x this is below 2^64, so a plan's rows can be added up in u64."""

COST_MAX = 2**64 - 1
"""Units of one request. Callers may name any 64-bit cost; above a limit's burst it is impossible, not malformed."""

NUMBER_MAX = 2**63 - 1
"""Numbers of crossings and reports, counts and times of the store: what SQLite's integers hold."""

REASON_BYTES_MAX = 4096
"""Bytes of the reason of a Refused; a longer one is cut by its sender."""
