"""The period counters of a store: one for each period of a quota, in a bounded table. Pure: both clocks are arguments.

A calendar period is named by the wall clock, so a new one is a new counter, and a clock that steps back over a boundary
finds the former one. What began with a first use, and a rolling window, have one counter each, which follows the
store's time. Lifetimes are housekeeping: what decides is in the counter, and one that was lost is mended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from zlib import crc32

from apportion.core.counter import GRACE_MAX_NS, Count, Counter, Ring
from apportion.core.key import encode_period
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.region.store import ChargedPeriod, ClosedPeriod, GivenBack

FULL_WAIT_NS = EPOCH_NS
"""Who finds the table full may find room this much later."""

PLACES_MAX = 10_000
"""Limits whose period under way is remembered; there is one for each rule and zone."""

CLOSED_MAX = 100_000
"""Closed periods that wait to be told; above it the oldest are not told."""

ALWAYS_NS = 2**63


class StoredCounter:
    """A period counter of the quota under `store_key`. `expires_ns`: in the store's time, when it may be reclaimed;
    None: that was lost. `told`: the disk has told that its period is closed.
    """

    __slots__ = ("counter", "expires_ns", "limit", "store_key", "told")

    def __init__(self, store_key: bytes, limit: PeriodLimit, counter: Counter, expires_ns: int | None = None) -> None:
        self.store_key = store_key
        self.limit = limit
        self.counter = counter
        self.expires_ns = expires_ns
        self.told = False

    def clock_ns(self, now_ns: int, wall_ns: int) -> int:
        """The time that its periods go by."""
        return wall_ns if self.limit.anchor is PeriodAnchor.CALENDAR else now_ns

    def closed(self) -> ClosedPeriod | None:
        """Its period, as one that is to be told of; None where nobody asked to be."""
        counter = self.counter
        if isinstance(counter, Ring) or not self.limit.audit_periods:
            return None
        return ClosedPeriod(self.store_key, counter.start_ns, counter.end_ns, counter.used, self.limit.units)


@dataclass(frozen=True, slots=True)
class _Place:
    """What makes a store key of `limit` the key of its counter, while the wall clock stands between the two times."""

    limit: PeriodLimit
    start_ns: int
    end_ns: int
    suffix: bytes


class PeriodNeed:
    """What one group asks of one period: `cost` units a request, of `counter` at `clock_ns`. `record`: the one in the
    table, None for a new one; its counter is another if it was begun by a first use and has ended.
    """

    __slots__ = ("clock_ns", "cost", "counter", "key", "limit", "record")

    def __init__(
        self, key: bytes, cost: int, limit: PeriodLimit, record: StoredCounter | None, counter: Counter, clock_ns: int
    ) -> None:
        self.key = key
        self.cost = cost
        self.limit = limit
        self.record = record
        self.counter = counter
        self.clock_ns = clock_ns

    @property
    def new(self) -> bool:
        """Whether a charge adds a counter to the table."""
        return self.record is None

    def requests(self) -> int | None:
        """How many requests fit; None = any number."""
        return max(0, self.limit.units - self.counter.used) // self.cost if self.cost else None

    def fits(self, taken: int) -> bool:
        """Whether one more request fits beside `taken` that are not charged."""
        return self.counter.used + (taken + 1) * self.cost <= self.limit.units

    def state(self, fits: bool, cost: int, epoch: int) -> ChargedPeriod:
        """A member's part of the answer, which asks for `cost`."""
        counter, limit, clock_ns = self.counter, self.limit, self.clock_ns
        start_ns = counter.start_ns if isinstance(counter, Count) else clock_ns - limit.length_ns
        wait_ns = counter.wait_ns(limit.units, self.cost, clock_ns) if cost else 0
        return ChargedPeriod(fits, counter.used, start_ns, wait_ns, counter.reset_ns(clock_ns), epoch)

    def full(self, epoch: int) -> ChargedPeriod:
        """The answer when the table has no room for it: as if nothing were left, for a moment."""
        state = self.state(False, self.cost, epoch)
        return ChargedPeriod(False, self.limit.units, state.start_ns, FULL_WAIT_NS, state.reset_ns, epoch)


class PeriodCounters:
    """Period counters by `encode_period`. `durable`: they must be on disk before an answer that charged one is given,
    and it is the disk that tells of closed periods.

    `spread_reclaim`: False has all counters of a calendar period end together, to compare.
    """

    def __init__(self, durable: bool) -> None:
        self.durable = durable
        self.spread_reclaim = True
        self.created = 0
        self.lifetimes_missing = 0
        self.changed: dict[bytes, StoredCounter] = {}
        self._closed: deque[ClosedPeriod] = deque(maxlen=CLOSED_MAX)
        self._table: dict[bytes, StoredCounter] = {}
        self._sweep_order: deque[bytes] = deque()
        self._writing: dict[bytes, StoredCounter] = {}
        self._places: dict[int, _Place] = {}

    def __len__(self) -> int:
        return len(self._table)

    def get(self, key: bytes) -> StoredCounter | None:
        """The counter in memory; None when there is none."""
        return self._table.get(key)

    def key(self, store_key: bytes, limit: PeriodLimit, wall_ns: int) -> bytes:
        """The key of the quota's counter at that time of the wall clock."""
        return store_key + self._place(limit, wall_ns).suffix

    def put(self, key: bytes, record: StoredCounter) -> None:
        """Add a counter that was read from disk; the one in memory, if there is one, is the truth and stays."""
        if key not in self._table:
            self._table[key] = record
            self._sweep_order.append(key)

    def _place(self, limit: PeriodLimit, wall_ns: int) -> _Place:
        place = self._places.get(id(limit))
        # The limit is held by its place, so no other can have its id meanwhile.
        if place is None or place.limit is not limit or not place.start_ns <= wall_ns < place.end_ns:
            if len(self._places) >= PLACES_MAX:
                self._places.clear()
            place = self._places[id(limit)] = _place(limit, wall_ns)
        return place

    # --- deciding ---------------------------------------------------------------------------------------------------

    def need(self, store_key: bytes, limit: PeriodLimit, cost: int, now_ns: int, wall_ns: int) -> PeriodNeed:
        """What a member asks, of the counter as it is now; a lifetime that is missing is mended."""
        place = self._place(limit, wall_ns)
        key = store_key + place.suffix
        record = self._table.get(key)
        calendar = limit.anchor is PeriodAnchor.CALENDAR
        clock_ns = wall_ns if calendar else now_ns
        if record is None:
            return PeriodNeed(key, cost, limit, None, self.fresh(limit, now_ns, wall_ns), clock_ns)
        if record.limit is not limit:
            self._change_limit(key, record, place, now_ns, wall_ns)
        if record.expires_ns is None:
            self._mend(key, record, now_ns, wall_ns)
        counter = record.counter
        if isinstance(counter, Count) and counter.end_ns <= clock_ns:
            counter = self.fresh(limit, now_ns, wall_ns)
        counter.begin(clock_ns)
        return PeriodNeed(key, cost, limit, record, counter, clock_ns)

    def charge(self, store_key: bytes, need: PeriodNeed, units: int, now_ns: int, wall_ns: int) -> None:
        """Charge `units` that fit. The lifetime is set when the period begins, never by a later hit."""
        record, counter = need.record, need.counter
        counter.charge(units)
        assert counter.used <= need.limit.units, "a period never takes more than fits"
        if record is None:
            record = StoredCounter(store_key, need.limit, counter)
            self.put(need.key, record)
            self.created += 1
            record.expires_ns = self._lifetime_ns(need.key, record, now_ns, wall_ns)
        elif record.counter is not counter:
            self._close(record)
            record.counter, record.told = counter, False
            record.expires_ns = counter.over_ns
        elif isinstance(counter, Ring):
            record.expires_ns = counter.over_ns
        if self.durable:
            self.changed[need.key] = record

    def give_back(self, row: GivenBack) -> None:
        """Take back units of the row's period, if it is kept."""
        record = self._table.get(encode_period(row.store_key, row.period))
        if record is not None and isinstance(record.counter, Count):
            record.counter.give_back(row.units)

    def fresh(self, limit: PeriodLimit, now_ns: int, wall_ns: int) -> Counter:
        """The counter that a quota has now if it has none."""
        match limit.anchor:
            case PeriodAnchor.CALENDAR:
                place = self._place(limit, wall_ns)
                return Count(place.start_ns, place.end_ns)
            case PeriodAnchor.FIRST_USE:
                return Count(now_ns, limit.ends_ns(now_ns))
            case PeriodAnchor.ROLLING:
                return Ring(limit.length_ns, now_ns)

    def _change_limit(self, key: bytes, record: StoredCounter, place: _Place, now_ns: int, wall_ns: int) -> None:
        """Another limit under the same key holds at once, and what was used stays used."""
        counter, record.limit = record.counter, place.limit
        if place.limit.anchor is PeriodAnchor.CALENDAR and counter.over_ns != place.end_ns:
            # Two months may begin on one day and end on two.
            record.counter = Count(place.start_ns, place.end_ns, counter.used)
            record.expires_ns = self._lifetime_ns(key, record, now_ns, wall_ns)
            self._note(key, record)

    # --- lifetimes --------------------------------------------------------------------------------------------------

    def _lifetime_ns(self, key: bytes, record: StoredCounter, now_ns: int, wall_ns: int) -> int:
        """When the counter may be reclaimed, in the store's time; nothing but its value and its key say so."""
        counter = record.counter
        if record.limit.anchor is not PeriodAnchor.CALENDAR or not isinstance(counter, Count):
            return counter.over_ns
        grace = min(counter.end_ns - counter.start_ns, GRACE_MAX_NS)
        if self.spread_reclaim:
            grace = grace // 2 + (crc32(key) * (grace - grace // 2) >> 32)
        return counter.end_ns + now_ns - wall_ns + grace

    def _mend(self, key: bytes, record: StoredCounter, now_ns: int, wall_ns: int) -> None:
        """Set a lifetime that was lost to what it was."""
        record.expires_ns = self._lifetime_ns(key, record, now_ns, wall_ns)
        self.lifetimes_missing += 1
        self._note(key, record)

    def _note(self, key: bytes, record: StoredCounter) -> None:
        if self.durable:
            self.changed[key] = record

    def _close(self, record: StoredCounter) -> None:
        closed = record.closed()
        if closed is not None and not record.told:
            self._closed.append(closed)

    def sweep(self, now_ns: int, wall_ns: int, steps: int, crowded: bool, asked: set[bytes]) -> None:
        """Look at a few counters; reclaim those whose lifetime has passed and whose period is over, and while memory is
        short (`crowded`) let those go that are safe on disk, but for the ones that are `asked` for.
        """
        table, order = self._table, self._sweep_order
        for _ in range(min(steps, len(order))):
            key = order.popleft()
            record = table[key]
            if record.expires_ns is None:
                self._mend(key, record, now_ns, wall_ns)
            assert record.expires_ns is not None
            over = record.expires_ns <= now_ns and record.counter.over_ns <= record.clock_ns(now_ns, wall_ns)
            goes = over or (crowded and self.durable and key not in asked)
            if goes and key not in self.changed and key not in self._writing:
                del table[key]
                if over and not self.durable:
                    self._close(record)
            else:
                order.append(key)

    # --- writing ----------------------------------------------------------------------------------------------------

    def take_changed(self) -> dict[bytes, StoredCounter]:
        """The counters to write now. They stay in memory until `written` or `not_written` is called."""
        assert not self._writing, "one write at a time"
        self._writing, self.changed = self.changed, {}
        return self._writing

    def written(self) -> None:
        """What `take_changed` gave is on disk."""
        self._writing = {}

    def not_written(self) -> None:
        """What `take_changed` gave may not be on disk: it is given again. What was charged stays charged."""
        self._writing.update(self.changed)
        self.changed, self._writing = self._writing, {}

    def take_closed(self) -> tuple[ClosedPeriod, ...]:
        """Periods that have ended and were not told of yet; see `Store.take_closed`."""
        closed = tuple(self._closed)
        self._closed.clear()
        return closed

    def reclaimed(self, key: bytes, closed: ClosedPeriod) -> None:
        """Tell of a period whose counter the disk has reclaimed; memory, if it has it still, must not tell again."""
        self._closed.append(closed)
        record = self._table.get(key)
        if record is not None and isinstance(record.counter, Count) and record.counter.start_ns == closed.start_ns:
            record.told = True


def _one_name(limit: PeriodLimit) -> str:
    """The name of the one counter that a quota without a calendar has."""
    return f"{limit.anchor.value}/{limit.period_text}"


def _place(limit: PeriodLimit, wall_ns: int) -> _Place:
    if limit.anchor is PeriodAnchor.CALENDAR:
        period = limit.calendar.period(wall_ns // EPOCH_NS)
        return _Place(limit, period.start_s * EPOCH_NS, period.end_s * EPOCH_NS, encode_period(b"", period.name))
    return _Place(limit, -ALWAYS_NS, ALWAYS_NS, encode_period(b"", _one_name(limit)))
