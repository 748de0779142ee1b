"""Named maxima of the wire, so that nothing a peer sends is unbounded. Constants and the reasons for them, no code.

A sender that may exceed one splits what it says; the encoders assert it. The decoders refuse with ProtocolError.
"""

from __future__ import annotations

MESSAGE_BYTES_MAX = 64 * 2**20
"""Bytes of one message: a plan of 10,000 quotas x 50 edges is 6 MB of columns, and gRPC's own maximum is 4 MB."""

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
"""Options that every server and channel of `apportion.v1.Region` needs; gRPC's own refuse a large plan, and wait for a
second and more when a connection was refused: a region that is restarted is back sooner (design 5.10).
"""

UNITS_MAX = 2**53 - 1
"""Units in a cell, epochs and generations: what a store's scripts count in doubles, and what SQLite's integers hold.

2000 holders x this is below 2^64, so a plan's rows can be added up in u64."""

COST_MAX = 2**64 - 1
"""Units of one request. Callers may name any 64-bit cost; above a limit's burst it is impossible, not malformed."""

NUMBER_MAX = 2**63 - 1
"""Numbers of crossings and reports, counts and times of the store: what SQLite's integers hold."""

NEVER = 2**64 - 1
"""In `member_wait_ns`: waiting cannot help."""

NO_BACKLOG = 2**64 - 1
"""In `member_backlog`: a pool decided, or a period is counted; there is no bucket."""

NO_RESET = 2**64 - 1
"""In `member_reset_ns`: the quota has no period."""

PERIOD_BYTES_MAX = 64
"""Bytes of a period's name, such as `2026-10-25T00:15Z/15min`."""

CHUNK_NS_MAX = 10_000_000_000
"""How long a chunk may be spent."""

EPOCH_LEFT_NS_MAX = 1_000_000_000
"""An epoch lasts a second."""

ID_MAX = 2**24 - 1
"""Ids of one stream and direction: a receiver keeps a name for each. A sender with more keys declares ids anew."""

NAMES_MAX = 2**20
"""Names declared in one message: as many as a column has rows. Ids stay declared, so this is a peer that just came."""

NAME_BYTES_MAX = 1024
"""Bytes of a domain, a rule, an edge's id, a location, a file's name."""

KEY_BYTES_MAX = 4096
"""Bytes of an encoded key: at most 66 for each value, so 62 dimensions."""

ROWS_MAX = 2**20
"""Rows of a column."""

GROUPS_MAX = 2**11
"""Groups of an Acquire, twice what an edge sends at once: more would keep all other streams waiting while they are
decided, about 30 microseconds each.
"""

GROUP_REQUESTS_MAX = 2**20
"""Requests in a group."""

GROUP_MEMBERS_MAX = 256
"""Quotas that one request needs."""

HOLDERS_MAX = 2000
"""Edges and replicas of a region: columns of a plan, holders of a governance."""

MARKS_MAX = 8
"""Epochs that the register remembers."""

RULES_TEXTS_MAX = 1024
"""Files of the rules."""

REASON_BYTES_MAX = 4096
"""Bytes of the reason of a Refused; a longer one is cut by its sender."""

HEAVY_MAX = 20
"""Quotas of which a report says that most was refused: as many as anybody reads."""

DEGRADED_RULES_MAX = 1_024
"""Rules of which a report says that they were answered without the authority."""
