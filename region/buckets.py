"""The decision arithmetic that every embedded store shares: a bounded table of buckets, direct labels, and the roll-up.
Period counters, which are in `counters`, are decided in the same step and count for the same bound.

Pure: time is an argument, nothing here waits, reads or writes. A store decides with `Buckets.decide`, in one step that
nothing can interrupt, and, where buckets are durable, writes what `take_changed` hands it before it answers.
"""

from __future__ import annotations

from collections import deque

from apportion.core.bucket import Bucket
from apportion.core.limit import EPOCH_NS, Finite, PeriodLimit, RateLimit, ceil_div
from apportion.region.counters import PeriodCounters, PeriodNeed
from apportion.region.labels import Labels
from apportion.region.rollup import Rollup
from apportion.region.store import Anchor, Charge, Charged, ChargedPeriod, Charges, ChargesAnswer, Counters

BUCKETS_MAX = 1_000_000
"""Buckets and period counters held, about 300 bytes each with a short key. A further key is refused, never given a
fresh allowance.
"""

CACHED_MAX = 500_000
"""Above this many, live buckets that are safe on disk leave memory; they are read again when they are asked for."""

SWEEP_STEPS = 4
"""Buckets looked at for sweeping in each call, and two more for each that it created: memory follows what is live."""

SWEEP_STEPS_FULL = 256
"""The same while the table is full."""

SWEEP_STEPS_TIDY = 5_000
"""The same each half second, whether anybody asks or not: a few milliseconds, a million in less than two minutes."""

IDLE_NS = EPOCH_NS
"""A drained bucket is swept when it was not asked for this long, lest a key in steady use be made anew each time."""


class StoredBucket(Bucket):
    """A bucket of a store. `durable`: it must be on disk before an answer that charged it is given."""

    __slots__ = ("durable", "tick_ns")

    def __init__(self, limit: RateLimit, now_ns: int, durable: bool, backlog: int = 0) -> None:
        super().__init__(limit, now_ns, backlog)
        self.durable = durable
        self.tick_ns = limit.tick_ns

    def change_limit(self, limit: RateLimit, now_ns: int, durable: bool) -> None:
        """Let `limit` hold from `now_ns` on. What was used stays used, rescaled and rounded up to another period."""
        self.drain(now_ns)
        if limit.period_ns != self.limit.period_ns:
            period = limit.period_ticks
            # No instant may drain twice, once in the old ticks and once in the new; an empty bucket is as good as none.
            last = ceil_div(self.last * self.tick_ns, limit.tick_ns) if self.backlog else 0
            self.last = max(last, now_ns // limit.tick_ns)
            self.backlog = ceil_div(self.backlog * period, self.period)
            self.period = period
            self.tick_ns = limit.tick_ns
        self.limit = limit
        self.units = limit.units
        self.capacity = limit.burst * self.period
        self.durable = durable


class _Need:
    """What one group asks of one store key: `cost` units a request, of `bucket` and of its direct label if any.
    `new`: a charge adds the bucket to the table.
    """

    __slots__ = ("bucket", "cost", "label_room", "limit", "new", "wrong_epoch")

    def __init__(
        self, bucket: StoredBucket, new: bool, limit: RateLimit, cost: int, label_room: int | None, wrong_epoch: bool
    ) -> None:
        self.bucket = bucket
        self.new = new
        self.limit = limit
        self.cost = cost
        self.label_room = label_room
        self.wrong_epoch = wrong_epoch

    def requests(self) -> int | None:
        """How many requests fit; None = any number."""
        if self.wrong_epoch:
            return 0
        if not self.cost:
            return None
        bucket = self.bucket
        fit = (bucket.capacity - bucket.backlog) // (self.cost * bucket.period)
        if self.label_room is not None:
            fit = min(fit, self.label_room // self.cost)
        return max(fit, 0)


class Buckets:
    """Buckets by store key. Buckets that drain within `memory_drain_ns` are not durable; None = none is durable.

    `empty_since_ns`: a bucket that is not durable and not known here counts as empty of tokens at that instant (design
    4.2); None = as full. `decided` and `decided_durable` hold what was admitted and not taken yet, by label. `asked`:
    keys that a store is about to decide on; their buckets stay, for an absent one would be decided as full.
    """

    def __init__(self, memory_drain_ns: int | None = None, buckets_max: int = BUCKETS_MAX) -> None:
        assert buckets_max > 0
        self.memory_drain_ns = memory_drain_ns
        self.buckets_max = buckets_max
        self.cached_max = min(CACHED_MAX, buckets_max // 2)
        self.periods = PeriodCounters(memory_drain_ns is not None)
        self.empty_since_ns: int | None = None
        self.evicted_live = False
        self.asked: set[bytes] = set()
        self._refused_full = 0
        self._created = 0
        self.decided = Rollup()
        self.decided_durable = Rollup()
        self.changed: dict[bytes, StoredBucket] = {}
        self._table: dict[bytes, StoredBucket] = {}
        self._sweep_order: deque[bytes] = deque()
        self._writing: dict[bytes, StoredBucket] = {}
        self._labels = Labels()

    def __len__(self) -> int:
        return len(self._table) + len(self.periods)

    def counters(self) -> Counters:
        """What was counted here."""
        periods = self.periods
        return Counters(len(self), self._created + periods.created, self._refused_full, periods.lifetimes_missing)

    def get(self, store_key: bytes) -> StoredBucket | None:
        """The bucket in memory, as it was when it was last looked at; None when there is none."""
        return self._table.get(store_key)

    def key(self, member: Charge, wall_ns: int) -> bytes:
        """What the member's bucket or period counter is filed under at that time of the wall clock."""
        limit = member.limit
        return (
            self.periods.key(member.store_key, limit, wall_ns) if isinstance(limit, PeriodLimit) else member.store_key
        )

    def is_durable(self, store_key: bytes, limit: Finite) -> bool:
        """Whether a charge of this key under this limit must be on disk before it is answered."""
        if isinstance(limit, PeriodLimit):
            return self.periods.durable
        bucket = self._table.get(store_key)
        if bucket is not None and bucket.limit is limit:
            return bucket.durable
        return self._durable(limit)

    def put(self, store_key: bytes, bucket: StoredBucket) -> None:
        """Add a bucket that was read from disk; the one in memory, if there is one, is the truth and stays."""
        if store_key not in self._table:
            self._add(store_key, bucket)

    def tidy(self, now_ns: int, wall_ns: int | None = None) -> None:
        """Forget some of what is drained or over, while nobody asks."""
        self._sweep(now_ns, SWEEP_STEPS_TIDY)
        self._sweep_periods(now_ns, now_ns if wall_ns is None else wall_ns, SWEEP_STEPS_TIDY)

    # --- deciding ---------------------------------------------------------------------------------------------------

    def decide(
        self, groups: tuple[Charges, ...], anchor: Anchor, now_ns: int, wall_ns: int | None = None
    ) -> tuple[ChargesAnswer, ...]:
        """Decide each group in order, at `now_ns`; see `Store.consume`. `wall_ns`: the wall clock, where it is not the
        store's time; calendar periods go by it.
        """
        epoch = anchor.epoch + (now_ns - anchor.at_ns) // EPOCH_NS
        if wall_ns is None:
            wall_ns = now_ns
        before, periods_before = len(self._table), len(self.periods)
        answers = []
        for group in groups:
            members = group.members
            limit = members[0].limit if len(members) == 1 and members[0].direct_epoch is None else None
            if isinstance(limit, RateLimit):
                answers.append(self._decide_one(group, members[0], limit, epoch, now_ns))
            else:
                answers.append(self._decide(group, epoch, now_ns, wall_ns))
        self._sweep(now_ns, SWEEP_STEPS + 2 * (len(self._table) - before))
        self._sweep_periods(now_ns, wall_ns, SWEEP_STEPS + 2 * (len(self.periods) - periods_before))
        return tuple(answers)

    def _decide_one(self, group: Charges, member: Charge, limit: RateLimit, epoch: int, now_ns: int) -> ChargesAnswer:
        """`_decide` for the usual group, one member of an undivided rate; the tests hold both to the same answers."""
        key, count, cost = member.store_key, group.count, member.cost
        bucket = self._table.get(key)
        new = bucket is None
        if bucket is None or bucket.limit is not limit:
            bucket = self._current(key, limit, now_ns)
        tick = now_ns // bucket.tick_ns
        backlog = bucket.backlog
        if tick > bucket.last:
            if backlog:
                backlog -= bucket.units * (tick - bucket.last)
                bucket.backlog = backlog = backlog if backlog > 0 else 0
            bucket.last = tick
        if cost <= 0:
            assert cost == 0, "a charge never gives back"
            return ChargesAnswer(count, (Charged(True, backlog, epoch),))
        step = cost * bucket.period
        room = bucket.capacity - backlog
        admitted = count
        if room < step * count:
            admitted = room // step if room > 0 else 0
        if admitted and not group.peek:
            if new and not self._room_for(1):
                return ChargesAnswer(0, (Charged(False, bucket.capacity, epoch),))
            backlog = self._charge(key, bucket, admitted * cost, epoch)
        return ChargesAnswer(admitted, (Charged(admitted == count, backlog, epoch),))

    def _decide(self, group: Charges, epoch: int, now_ns: int, wall_ns: int) -> ChargesAnswer:
        """Decide one group: the most requests that fit every member, arithmetic all the way; then charge them all."""
        needs = self._needs(group.members, epoch, now_ns, wall_ns)
        admitted = group.count
        for need in needs.values():
            fit = need.requests()
            if fit is not None:
                admitted = min(admitted, ceil_div(fit, group.lent_over) if group.lent_over else fit)
        added = sum(need.cost > 0 and need.new for need in needs.values())
        full = admitted > 0 and added > 0 and not self._room_for(added)
        if full:
            admitted = 0
        if admitted and not group.peek:
            for key, need in needs.items():
                if not need.cost:
                    continue
                if isinstance(need, PeriodNeed):
                    self.periods.charge(key, need, admitted * need.cost, now_ns, wall_ns)
                    if not group.lent_over:
                        rollup = self.decided_durable if self.periods.durable else self.decided
                        row = rollup.label(epoch)
                        row[key] = row.get(key, 0) + admitted * need.cost
                    continue
                self._charge(key, need.bucket, admitted * need.cost, epoch)
                if need.label_room is not None:
                    self._labels.charge(key, epoch, admitted * need.cost)
        states = [self._state(group, m, needs[m.store_key], admitted, epoch, full) for m in group.members]
        return ChargesAnswer(admitted, tuple(states))

    def _needs(
        self, members: tuple[Charge, ...], epoch: int, now_ns: int, wall_ns: int
    ) -> dict[bytes, _Need | PeriodNeed]:
        """What the members ask by store key, as things are at `now_ns`; a key that stands twice is summed."""
        needs: dict[bytes, _Need | PeriodNeed] = {}
        for member in members:
            key, limit = member.store_key, member.limit
            assert member.cost >= 0, "a charge never gives back"
            need = needs.get(key)
            if need is not None:
                assert need.limit == limit, "one request meets one limit of a quota"
                need.cost += member.cost
            elif isinstance(limit, PeriodLimit):
                needs[key] = self.periods.need(key, limit, member.cost, now_ns, wall_ns)
            else:
                needs[key] = self._need(member, limit, epoch, now_ns)
        return needs

    def _need(self, member: Charge, limit: RateLimit, epoch: int, now_ns: int) -> _Need:
        bucket = self._current(member.store_key, limit, now_ns)
        bucket.drain(now_ns)
        direct = member.direct_epoch
        # A label whose counter was dropped could be lent twice: it is as wrong as one that store time has left.
        wrong_epoch = direct is not None and (direct != epoch or not self._labels.kept(epoch))
        room = None if direct is None else self._labels.room(member.store_key, limit, epoch)
        return _Need(bucket, member.store_key not in self._table, limit, member.cost, room, wrong_epoch)

    def _state(
        self, group: Charges, member: Charge, need: _Need | PeriodNeed, admitted: int, epoch: int, full: bool
    ) -> Charged | ChargedPeriod:
        """One member's part of the answer."""
        refused = full and need.cost > 0 and need.new
        taken = admitted if group.peek else 0
        passed = admitted == group.count or member.cost == 0
        if isinstance(need, PeriodNeed):
            if refused:
                return need.full(epoch)
            return need.state(passed or need.fits(taken), member.cost, epoch)
        bucket, backlog = need.bucket, need.bucket.backlog
        label_units = None if need.label_room is None else self._labels.room(member.store_key, need.limit, epoch)
        if need.wrong_epoch or refused:
            fits = False
        elif passed:
            fits = True
        else:
            fits = backlog + (taken + 1) * need.cost * bucket.period <= bucket.capacity
            fits = fits and (label_units is None or need.cost <= label_units - taken * need.cost)
        return Charged(fits, bucket.capacity if refused else backlog, epoch, label_units, need.wrong_epoch)

    # --- buckets ----------------------------------------------------------------------------------------------------

    def _durable(self, limit: RateLimit) -> bool:
        return self.memory_drain_ns is not None and limit.drain_ns > self.memory_drain_ns

    def _current(self, key: bytes, limit: RateLimit, now_ns: int) -> StoredBucket:
        """The key's bucket under `limit`; one that is in no table yet for a key that has none, which `_charge` adds."""
        bucket = self._table.get(key)
        if bucket is None:
            durable = self._durable(limit)
            if durable or self.empty_since_ns is None:
                return StoredBucket(limit, now_ns, durable)
            capacity = limit.burst * limit.period_ticks
            return StoredBucket(limit, self.empty_since_ns, durable, capacity)
        if bucket.limit is not limit:
            if bucket.limit == limit:
                bucket.limit = limit
                return bucket
            durable = self._durable(limit)
            if durable or bucket.durable:
                self.changed[key] = bucket
            bucket.change_limit(limit, now_ns, durable)
        return bucket

    def _charge(self, key: bytes, bucket: StoredBucket, units: int, epoch: int) -> int:
        """Charge `units` that fit, and roll them up; returns the backlog then."""
        if key not in self._table:
            self._add(key, bucket)
            self._created += 1
        bucket.backlog = backlog = bucket.backlog + units * bucket.period
        assert backlog <= bucket.capacity, "a bucket never takes more than fits"
        rollup = self.decided
        if bucket.durable:
            self.changed[key] = bucket
            rollup = self.decided_durable
        row = rollup.label_rows if epoch == rollup.label_last else rollup.label(epoch)
        row[key] = row.get(key, 0) + units
        return backlog

    def _room_for(self, added: int) -> bool:
        """Whether the table takes so many further keys; counted when it does not."""
        if len(self) + added <= self.buckets_max:
            return True
        self._refused_full += 1
        return False

    def _add(self, key: bytes, bucket: StoredBucket) -> None:
        self._table[key] = bucket
        self._sweep_order.append(key)

    def _sweep(self, now_ns: int, steps: int) -> None:
        """Look at a few buckets; forget those that are equal to absent ones, or safe on disk while memory is short."""
        table, order = self._table, self._sweep_order
        held = len(table) + len(self.periods)
        crowded = held > self.cached_max
        if held >= self.buckets_max:
            steps = max(steps, SWEEP_STEPS_FULL)
        for _ in range(min(steps, len(order))):
            key = order.popleft()
            bucket = table[key]
            idle = now_ns // bucket.tick_ns - bucket.last
            drained = bucket.backlog <= bucket.units * idle
            unused = drained and (crowded or idle * bucket.tick_ns >= IDLE_NS)
            # What disk does not have yet is known here only.
            live = crowded and bucket.durable and key not in self.asked
            if (unused or live) and key not in self.changed and key not in self._writing:
                del table[key]
                self.evicted_live = self.evicted_live or not drained
            else:
                order.append(key)

    def _sweep_periods(self, now_ns: int, wall_ns: int, steps: int) -> None:
        """The same for period counters."""
        held = len(self)
        if held >= self.buckets_max:
            steps = max(steps, SWEEP_STEPS_FULL)
        self.periods.sweep(now_ns, wall_ns, steps, held > self.cached_max, self.asked)

    # --- writing ----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether something durable was changed and is not written."""
        return bool(self.changed or self.periods.changed)

    def take_changed(self) -> dict[bytes, StoredBucket]:
        """The durable buckets to write now, beside `periods`. They stay in memory until `written` or `not_written` is
        called.
        """
        assert not self._writing, "one write at a time"
        self._writing, self.changed = self.changed, {}
        return self._writing

    def written(self) -> None:
        """What `take_changed` gave is on disk, of buckets and of periods."""
        self._writing = {}
        self.periods.written()

    def not_written(self) -> None:
        """What `take_changed` gave may not be on disk: it is given again. What was charged stays charged."""
        self._writing.update(self.changed)
        self.changed, self._writing = self._writing, {}
        self.periods.not_written()
