"""What edge, region and allocator say to each other, as plain values; `apportion.proto.wire` puts them on the wire.

Names are interned per stream and direction: a sender declares `QuotaName`s before it uses their ids, in the same
message or an earlier one; declaring an id again gives it a new meaning from there on. Columns of one message have
equal lengths. All epochs are region epochs; nothing here carries an absolute time.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apportion.core.space_saving import Counted
from apportion.core.value import value

Ids = npt.NDArray[np.uint32]
Units = npt.NDArray[np.uint64]


def no_ids() -> Ids:
    """An empty column of ids."""
    return np.empty(0, np.uint32)


def no_units() -> Units:
    """An empty column of units."""
    return np.empty(0, np.uint64)


class Quota(NamedTuple):
    """A quota by name: rule x key. `key` is encoded by `core.key.encode_key`. A tuple, since what is hashed for each
    member of each crossing is hashed in C.
    """

    domain: str
    rule: str
    key: bytes


@value
class QuotaName:
    """Declares that `id` means `quota` on this stream, in this direction, from this message on."""

    id: int
    quota: Quota


class EpochKind(IntEnum):
    """How an epoch's divided quotas may be lent (design 5.1, 5.6)."""

    VOID = 0  # passed over: nobody lends a divided quota under this label
    PLANNED = 1  # a leader claimed it; only its plan says who holds what
    DIRECT = 2  # nobody claimed it in time: all divided quotas are taken in the store


@value
class EpochMark:
    """One epoch of the register: its kind, and the generation that claimed it (0 unless PLANNED)."""

    epoch: int
    kind: EpochKind
    generation: int = 0


@value
class Register:
    """The one record that is changed only by compare-and-set. `marks` are the last 8 epochs, ascending.

    Epoch `anchor_epoch` starts at `anchor_ns` of the store's clock; `last_ns` is the store time of the last change.
    """

    generation: int = 0
    highest: int = 0
    marks: tuple[EpochMark, ...] = ()
    anchor_epoch: int = 0
    anchor_ns: int = 0
    last_ns: int = 0
    run_id: str = ""

    def mark(self, epoch: int) -> EpochMark | None:
        """What the register says of `epoch`; None when it says nothing (not begun, or longer ago than 8 epochs)."""
        for mark in self.marks:
            if mark.epoch == epoch:
                return mark
        return None


@value
class Rules:
    """The rules in force: a version that only rises, and the texts of the files by name."""

    version: int
    texts: tuple[tuple[str, str], ...]


# --- edge to region -------------------------------------------------------------------------------------------------


@value
class Hello:
    """First message of an edge. `incarnation` is random at its start; `epoch` the highest it has seen, 0 if none."""

    edge: str
    location: str
    incarnation: int
    epoch: int
    rules_version: int


@value
class Member:
    """One quota that a group of requests needs: `cost` units for each request, 0 = a peek at it."""

    quota: int
    cost: int


@value
class Group:
    """`count` requests that are alike; each needs all `members` or none. `peek`: look, charge nothing."""

    count: int
    members: tuple[Member, ...]
    peek: bool = False


@value
class Acquire:
    """One crossing: what waits at the edge, as groups in order of arrival, and units to borrow `ahead` as (id,
    units).
    """

    number: int
    names: tuple[QuotaName, ...]
    groups: tuple[Group, ...]
    ahead: tuple[tuple[int, int], ...] = ()


@value
class Report:
    """What an edge did in `epoch`, sent until acknowledged. Every row is one quota.

    `demand_*`: offered cost that no other rule refused. `spent_*`: units spent by label `spent_epoch`, which may be
    earlier than `epoch` for what settled late; only slices, borrowed units and degraded answers, never what the
    store decided. `spent_degraded`: units of `spent` that no slice or loan covered (design 4.1); no rows: none of any.
    """

    number: int
    epoch: int
    names: tuple[QuotaName, ...] = ()
    demand_ids: Ids = field(default_factory=no_ids)
    demand: Units = field(default_factory=no_units)
    spent_ids: Ids = field(default_factory=no_ids)
    spent_epoch: Units = field(default_factory=no_units)
    spent: Units = field(default_factory=no_units)
    crossings: int = 0
    degraded: int = 0
    spent_degraded: Units = field(default_factory=no_units)
    over_threshold: Units = field(default_factory=no_units)  # of `demand`: refused at the edge, above a threshold
    most_refused: tuple[Counted[Quota], ...] = ()  # by any rule, wherever; those too that have no demand
    degraded_rules: tuple[tuple[str, str, int], ...] = ()  # domain, name, answers that were degraded in it


@value
class Return:
    """Unspent units of `epoch` that the edge gives back: its own right is already lowered; never sent twice.

    `number` counts the returns of a stream, so that a copy is known for one. `ready`: how many of the units its
    smoothing would have let it spend at once; no rows: none of any.
    """

    epoch: int
    ids: Ids
    units: Units
    number: int
    ready: Units = field(default_factory=no_units)


@value
class Leave:
    """The edge stops in good order; it reports nothing more."""


@value
class RulesAck:
    """The edge decides by this version of the rules, and the first plan that names it, or a later one, is current."""

    version: int


# --- region to edge -------------------------------------------------------------------------------------------------


@value
class Tick:
    """The epoch now and the nanoseconds it still lasts at the sender. Sent each second and with every answer."""

    epoch: int
    left_ns: int


@value
class Welcome:
    """Answer to Hello: the rules, the time, and the region replica's incarnation."""

    rules: Rules
    tick: Tick
    replica: int


@value
class Slices:
    """The edge's column of the plan of `epoch`, complete: a quota it does not name, this edge does not hold. `kept`:
    as in Column.
    """

    epoch: int
    generation: int
    rules_version: int
    names: tuple[QuotaName, ...] = ()
    ids: Ids = field(default_factory=no_ids)
    units: Units = field(default_factory=no_units)
    kept: Ids = field(default_factory=no_ids)


class Outcome(IntEnum):
    """What the region says of one member of a group."""

    ADMITTED = 0
    OVER_LIMIT = 1  # does not fit now; `wait_ns` says when it can
    IMPOSSIBLE = 2  # never fits
    NO_PLAN = 3  # no answer: the plan is not here yet; ask again until the deadline
    UNKNOWN_QUOTA = 4  # the region has no such rule: edge and region have different rules
    UNAVAILABLE = 5  # the store did not answer


@value
class MemberAnswer:
    """State of one member after the group's admitted requests were charged.

    `outcome` is that of the first request of the group that was not admitted, ADMITTED if all were. `epoch` is the
    label charged. `remaining` whole units left; `wait_ns` until one more request of the group's cost can fit (0 now,
    None never). `backlog` unit-ticks of the store's bucket, None where a pool decided. `store`: decided, and rolled
    up, in the store; otherwise the units were borrowed from a pool and the edge reports what it spends of them.
    """

    outcome: Outcome
    epoch: int
    remaining: int
    wait_ns: int | None
    backlog: int | None = None
    store: bool = True


@value
class GroupAnswer:
    """`admitted` of the group's requests passed, the first ones; the rest did not."""

    admitted: int
    members: tuple[MemberAnswer, ...]


@value
class Lent:
    """Units borrowed ahead, spendable only while the edge's epoch is `epoch`."""

    quota: int
    epoch: int
    units: int


@value
class AcquireAnswer:
    """Answer to the Acquire of the same number; `groups` in its order."""

    number: int
    tick: Tick
    groups: tuple[GroupAnswer, ...]
    lent: tuple[Lent, ...] = ()


@value
class ReportAck:
    """The report of that number is in the rollup; it need not be sent again."""

    number: int


@value
class Refused:
    """The region will not keep this stream; `retry` says whether the same peer may try again."""

    reason: str
    retry: bool


FromEdge = Hello | Acquire | Report | Return | Leave | RulesAck
ToEdge = Welcome | Tick | Rules | Slices | AcquireAnswer | ReportAck | Refused
