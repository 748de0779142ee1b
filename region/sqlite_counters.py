"""Period counters in the SQLite file: a row for each, with totals. Blocking; for the store's worker thread only."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Sequence

from apportion.core.counter import GRACE_MAX_NS, PARTS, Count, Counter, Ring
from apportion.core.key import encode_period, is_period_of
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.region import sqlite_rows
from apportion.region.counters import StoredCounter
from apportion.region.sqlite_rows import INTEGER_MAX, insert, select_keys, stretch_end
from apportion.region.store import ClosedPeriod, GivenBack, RollupRow

CounterRow = tuple[bytes, int, str, int, int, int, str | None, int | None, int | None]
"""key, bytes of it that are the quota's store key, anchor, start in ns (of a rolling one: of its newest part), when
nothing of it counts any more in ns, units used, a rolling one's parts as pairs of number and units, lifetime's end in
ns, and the allowance where the period is to be told of.
"""

COLUMNS = "key, quota_bytes, anchor, start_ns, over_ns, used, parts, expires_ns, allowance"

SCHEMA = """CREATE TABLE IF NOT EXISTS counter (
    key BLOB PRIMARY KEY, quota_bytes INTEGER NOT NULL, anchor TEXT NOT NULL, start_ns INTEGER NOT NULL,
    over_ns INTEGER NOT NULL, used INTEGER NOT NULL, parts TEXT, expires_ns INTEGER, allowance INTEGER) WITHOUT ROWID"""
"""Made when a file is opened: files from before there were period counters have no such table."""

RECLAIMED = f"""key > ?1 AND key <= ?2 AND coalesce(expires_ns, over_ns + {GRACE_MAX_NS}) <= ?3
    AND over_ns <= CASE anchor WHEN 'calendar' THEN ?4 ELSE ?3 END"""
"""Both the lifetime and what it was for have passed; a row without a lifetime has the longest that it may have had."""


def row_of(key: bytes, record: StoredCounter) -> CounterRow:
    """The counter as its row."""
    counter, limit = record.counter, record.limit
    allowance = limit.units if limit.audit_periods else None
    if isinstance(counter, Ring):
        newest = counter.parts[-1][0] if counter.parts else 0
        start_ns, parts, allowance = newest * counter.part_ns, json.dumps(list(counter.parts)), None
    else:
        start_ns, parts = counter.start_ns, None
    used, over_ns, anchor = counter.used, counter.over_ns, limit.anchor.value
    return key, len(record.store_key), anchor, start_ns, over_ns, used, parts, record.expires_ns, allowance


def record_of(row: CounterRow, store_key: bytes, limit: PeriodLimit, fresh: Counter) -> StoredCounter:
    """The counter of a quota's row, in the place of the `fresh` one that it would have now without it. One that is
    damaged counts as used up, the worst it can be, and has no lifetime, so that it is mended on disk too; neither has
    one whose lifetime cannot be read.
    """
    _, _, _, start_ns, over_ns, used, parts, expires_ns, _ = row
    try:
        if {type(start_ns), type(used)} != {int} or min(start_ns, used) < 0:
            raise ValueError("a row holds whole numbers")
        if isinstance(fresh, Ring):
            _fill(fresh, start_ns, used, parts)
        else:
            fresh = _count(fresh, limit, start_ns, over_ns, used)
    except (TypeError, ValueError):
        fresh.charge(limit.units)
        expires_ns = None
    return StoredCounter(store_key, limit, fresh, expires_ns if type(expires_ns) is int else None)


def _count(fresh: Count, limit: PeriodLimit, start_ns: int, over_ns: int, used: int) -> Count:
    """The count of a row; ValueError: it began when none did, or ends when it does not."""
    if limit.anchor is PeriodAnchor.CALENDAR:
        if start_ns != fresh.start_ns:
            raise ValueError("its key names another start")
        return Count(start_ns, fresh.end_ns, used)
    if start_ns > fresh.start_ns:
        raise ValueError("it begins in the future")
    if limit.ends_ns(start_ns) != over_ns:
        raise ValueError("it ends when its length does not have it")
    return Count(start_ns, over_ns, used)


def _fill(ring: Ring, start_ns: int, used: int, text: object) -> None:
    """Give the ring what the row holds; ValueError: no ring has that."""
    parts = [(part, units) for part, units in json.loads(text)]  # type: ignore[arg-type]
    numbers = [part for part, _ in parts]
    if {type(value) for pair in parts for value in pair} - {int} or any(units < 1 for _, units in parts):
        raise ValueError("parts are whole numbers")
    if sum(units for _, units in parts) != used or numbers != sorted(set(numbers)) or len(parts) > PARTS + 1:
        raise ValueError("its parts are not what was used")
    if parts and (numbers[-1] * ring.part_ns != start_ns or numbers[-1] > ring.last):
        raise ValueError("its newest part is another one, or in the future")
    ring.parts, ring.used = deque(parts), used


# --- transactions


def put(connection: sqlite3.Connection, rows: Sequence[CounterRow]) -> None:
    """Write these counters as they are now."""
    insert(connection, "INSERT OR REPLACE INTO counter VALUES", "", rows)


def load(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[CounterRow]:
    """The rows of those keys that have one."""
    return select_keys(connection, f"SELECT {COLUMNS} FROM counter WHERE key", keys)  # noqa: S608


def sweep(
    connection: sqlite3.Connection, start: bytes, steps: int, now_ns: int, wall_ns: int
) -> tuple[bytes, list[tuple[bytes, ClosedPeriod]]]:
    """Delete those of the `steps` counters after `start` whose time has passed. Where to go on, b"" after the last, and
    which periods of them are to be told of; of a damaged row nothing can be.
    """
    go_on, end = stretch_end(connection, "counter", "key", start, steps)
    if end is None:
        return go_on, []
    marks = (start, end, now_ns, wall_ns)
    told = connection.execute(
        "SELECT key, quota_bytes, start_ns, over_ns, used, allowance FROM counter "  # noqa: S608
        f"WHERE allowance IS NOT NULL AND {RECLAIMED}",
        marks,
    ).fetchall()
    connection.execute(f"DELETE FROM counter WHERE {RECLAIMED}", marks)  # noqa: S608
    return go_on, [
        (key, ClosedPeriod(key[:length], *values))
        for key, length, *values in told
        if {type(value) for value in (length, *values)} == {int} and is_period_of(key, length)
    ]


def are_audited(connection: sqlite3.Connection) -> bool:
    """Whether there is a period that is to be told of."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM counter WHERE allowance IS NOT NULL)").fetchone()[0])


def add_report(
    connection: sqlite3.Connection,
    source: int,
    number: int,
    rows: Sequence[RollupRow],
    given_back: Sequence[GivenBack],
    now_ns: int,
) -> bool:
    """Add a report's rows and take back what it gives back, unless it was added before. A damaged counter, which counts
    as used up, stays it.
    """
    if not sqlite_rows.add_report(connection, source, number, rows, now_ns):
        return False
    statement = """UPDATE counter SET used = max(0, used - ?) WHERE key = ? AND parts IS NULL
        AND typeof(used) = 'integer'"""
    values = [(min(row.units, INTEGER_MAX), encode_period(row.store_key, row.period)) for row in given_back]
    connection.executemany(statement, values)
    return True
