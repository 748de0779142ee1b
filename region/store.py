"""What the region asks of its store, and the one vocabulary of every implementation (design 6).

A store is also the region's clock: epochs, buckets and labels follow `now_ns()` and nothing else. Every operation is
atomic. An operation that raises `StoreError` may or may not have happened.
"""

from __future__ import annotations

from typing import Protocol

from apportion.core.limit import RateLimit
from apportion.core.messages import Register
from apportion.core.value import value


@value
class Charge:
    """One member of a request: `cost` units of the quota filed under `store_key`, against `limit`.

    `direct_epoch`: for a divided quota that is lent directly, the epoch it must fall in; its label counter is then
    held to Q_k = limit.units_in_epoch(k) as well. None for an undivided quota.
    """

    store_key: bytes
    limit: RateLimit
    cost: int
    direct_epoch: int | None = None


@value
class Charges:
    """`count` requests that are alike, each of which needs all members or none. `peek`: look, charge nothing."""

    count: int
    members: tuple[Charge, ...]
    peek: bool = False


@value
class Anchor:
    """Epoch `epoch` started at store time `at_ns`; how a store turns its time into a label."""

    epoch: int
    at_ns: int


@value
class Charged:
    """State of one member after the admitted requests of its group were charged (at a peek nothing was charged).

    `fits`: whether one more request's cost would have fitted this member (true for all members when all were
    admitted and for a zero cost). `backlog`: unit-ticks of `limit`, drained to the store time used; it may stand above
    burst x period after the limit was lowered. A key that a full store has no room for does not fit, and its backlog is
    that of a bucket without tokens. `epoch`: label of the store time used. `label_units`: units the direct label still
    holds, None for an undivided quota. `wrong_epoch`: `direct_epoch` was asked and the store's time is in another;
    nothing was charged.
    """

    fits: bool
    backlog: int
    epoch: int
    label_units: int | None = None
    wrong_epoch: bool = False


@value
class ChargesAnswer:
    """`admitted` of `count` requests passed, the first ones."""

    admitted: int
    members: tuple[Charged, ...]


@value
class Counters:
    """What a store has counted since it was opened: buckets at hand now, buckets created, and requests that it refused
    because there was no room for a further bucket.
    """

    at_hand: int
    created: int
    refused_full: int


@value
class RollupRow:
    """Units admitted of a quota under one label."""

    store_key: bytes
    epoch: int
    units: int


ROLLUP_EPOCHS_KEPT = 600
"""Epochs of the rollup that a store keeps readable."""


class Store(Protocol):
    """The region's durable memory. `now_ns` may be called at any time after `open`; all other calls are serialised
    by nobody: an implementation must keep each of them atomic under concurrent callers.
    """

    async def open(self) -> None:
        """Open, creating what is missing. InputError: the URL is wrong or another region holds the file; StoreError:
        broken.
        """

    async def close(self) -> None:
        """Flush and let go of everything; idempotent."""

    def now_ns(self) -> int:
        """The store's time, nanoseconds; never less than any time it has returned in this process, nor than any it has
        recorded in a file, by this process or an earlier one: with each durable write the time of that write.
        """

    def counters(self) -> Counters:
        """For metrics; at any time after `open`."""

    async def consume(self, groups: tuple[Charges, ...], anchor: Anchor) -> tuple[ChargesAnswer, ...]:
        """Decide each group in order: check all members, then charge all or none; what is charged is rolled up under
        its label in the same operation. When it returns, what was admitted of durable buckets is on disk. Another limit
        for a key holds from this call on and keeps what was used, rescaled and rounded up if the period is another. A
        peek, a zero cost and a refusal create nothing.
        """

    def tidy(self) -> None:
        """Forget some buckets that are no different from ones that never were; never waits. Called each half second,
        so that memory goes back while nobody asks.
        """

    async def register(self) -> Register:
        """The register as it is now."""

    async def swap_register(self, old: Register, new: Register) -> bool:
        """Set the register to `new` if it equals `old`; durable when it returns true. `last_ns` is set by the
        caller.
        """

    async def roll_up(self, source: int, number: int, rows: tuple[RollupRow, ...]) -> bool:
        """Add `rows` unless report `number` of incarnation `source` was added before; durable when it returns. False
        = was.
        """

    async def rolled_up(self, first_epoch: int) -> tuple[RollupRow, ...]:
        """Rows of labels >= `first_epoch`, one per quota and label; complete but for what no edge has reported."""

    async def rules_version(self, digest: str) -> int:
        """Version number of the rules with this digest: that of the current ones, or one more if they differ from
        them.
        """

    async def overrides(self) -> str:
        """What `keep_overrides` kept last; "" when it was never called."""

    async def keep_overrides(self, text: str) -> None:
        """Keep the operator's overrides, in the place of those before; as durable as the store when it returns."""
