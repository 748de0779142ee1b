"""Rows of the event log of a run: plain values, one for each thing that happened."""

from __future__ import annotations

from typing import NamedTuple


class Offered(NamedTuple):
    """What a request that came to an edge asks of one rule: of the `first` in the order of rule names, or of another.

    `alone`: no other rule was asked with it.
    """

    at_ns: int
    edge: str
    incarnation: int
    domain: str
    rule: str
    key: tuple[str, ...]
    cost: int
    peek: bool
    first: bool
    alone: bool


class Answered(NamedTuple):
    """One rule's verdict in a decision that was given, or of a shadow rule later.

    `epoch`: the label of the units charged, None where nothing was. `reason`: of the verdict, None when it allows.
    `alone`: no other rule was asked with it. `decided`: whether the request as a whole was admitted.
    """

    at_ns: int
    edge: str
    incarnation: int
    domain: str
    rule: str
    key: tuple[str, ...]
    cost: int
    decided: bool
    allowed: bool
    charged: bool
    epoch: int | None
    at_edge: bool
    degraded: bool
    shadow: bool
    reason: str | None
    alone: bool


class Waited(NamedTuple):
    """A request that had to cross has its decision."""

    at_ns: int
    came_ns: int
    deadline_ns: int


class Crossed(NamedTuple):
    """An edge sent a crossing with requests for these rules, sorted."""

    at_ns: int
    edge: str
    rules: tuple[str, ...]


class Issued(NamedTuple):
    """The region gave units of a quota and label to an edge: by a column, or lent ahead."""

    incarnation: int
    rule: str
    quota: bytes
    epoch: int
    units: int
    lent: bool


class Returned(NamedTuple):
    """An edge gave units of its slice back; it has them no more, whatever becomes of the message."""

    incarnation: int
    rule: str
    quota: bytes
    epoch: int
    units: int


class Sliced(NamedTuple):
    """Slices of an epoch were sent under a generation."""

    at_ns: int
    edge: str
    incarnation: int
    epoch: int
    generation: int
    units: int


class Anchored(NamedTuple):
    """A region started: `epoch` began at `start_ns` of virtual time, and lasts `length_ns` of it."""

    at_ns: int
    epoch: int
    start_ns: int
    length_ns: int


class Stored(NamedTuple):
    """Units that the store decided (`reported` False) at `store_ns` of its clock, or was told of by a report that was
    new.
    """

    store_ns: int
    quota: bytes
    epoch: int
    units: int
    reported: bool


class Ruled(NamedTuple):
    """The region is told other rules in `epoch`; `texts` of the rules files by name."""

    at_ns: int
    epoch: int
    version: int
    texts: tuple[tuple[str, str], ...]


class Counted(NamedTuple):
    """At the end, the rollup of the region's store has so many units of a quota and label."""

    quota: bytes
    epoch: int
    units: int


class Open(NamedTuple):
    """At the end, a request that came to this process has no decision."""

    at_ns: int
    edge: str
    came_ns: int
    deadline_ns: int


class Failed(NamedTuple):
    """A core wrote an error into its log."""

    who: str
    event: str
    fields: str


class Clocked(NamedTuple):
    """From `at_ns` of virtual time on, the region's store time and wall clock show that and run so much too fast, in
    millionths. Of rules with quotas of a period only, as all rows that follow.
    """

    at_ns: int
    store_ns: int
    wall_ns: int
    store_fast: int
    wall_fast: int


class Tallied(NamedTuple):
    """The store decided requests of `cost` each on a quota of a period: it charged `units`, and `refused` so many of
    them as did not fit it. `lent`: units ahead, charged when they are lent; what was not lent is not refused.
    """

    at_ns: int
    store_ns: int
    wall_ns: int
    quota: bytes
    epoch: int
    units: int
    cost: int
    refused: int
    lent: bool


class GaveBack(NamedTuple):
    """The store took back units that it had lent of a period, by its name."""

    at_ns: int
    quota: bytes
    period: str
    units: int


class Filed(NamedTuple):
    """A counter of a quota was made in the store, or (`made` False) reclaimed."""

    at_ns: int
    quota: bytes
    made: bool


class Kept(NamedTuple):
    """At the end, the store has this counter of a period that began at `start_ns`."""

    quota: bytes
    start_ns: int
    used: int


class Lifetimes(NamedTuple):
    """At the end: how often a fault took the lifetime of a counter, and how often the store found one missing."""

    stripped: int
    missing: int


class Told(NamedTuple):
    """A caller who was over a quota of a period was told to wait so long."""

    at_ns: int
    rule: str
    key: tuple[str, ...]
    cost: int
    wait_ns: int


OfPeriods = Clocked | Tallied | GaveBack | Filed | Kept | Lifetimes | Told
"""What only quotas of a period make happen."""

Rare = Crossed | Issued | Returned | Sliced | Anchored | Stored | Ruled | Counted | Open | Failed | OfPeriods
"""What does not happen for each request."""

Row = Offered | Answered | Waited | Rare
