"""What the transactions of `sqlite_file` read and write, one function each. Blocking; for the worker thread only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from apportion.core.limit import RateLimit
from apportion.core.messages import EpochKind, EpochMark, Register
from apportion.region.buckets import StoredBucket
from apportion.region.reports import REPORTS_KEPT_NS, Numbers
from apportion.region.rollup import UNITS_MAX
from apportion.region.store import ROLLUP_EPOCHS_KEPT, RollupRow

INTEGER_MAX = 2**63 - 1
ROWS_PER_STATEMENT = 64
"""Each statement hands Python's lock over twice, so one for 64 rows leaves the event loop alone for longer."""

TIME_MAX_NS = 2**62
"""A time after this (the year 2116) was not written by a region; the next one could not be written any more."""

Value = bytes | int | str | None

BucketRow = tuple[bytes, int, int, int, int, int]
"""store key, units, period in ns, burst, backlog in unit-ticks, tick of the last decision."""

SCHEMA = """
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1), last_ns INTEGER NOT NULL, register TEXT NOT NULL,
    rules_digest TEXT, rules_version INTEGER NOT NULL);
CREATE TABLE bucket (
    store_key BLOB PRIMARY KEY, units INTEGER NOT NULL, period_ns INTEGER NOT NULL, burst INTEGER NOT NULL,
    backlog INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rollup (
    epoch INTEGER, store_key BLOB, units INTEGER NOT NULL, PRIMARY KEY (epoch, store_key)) WITHOUT ROWID;
CREATE TABLE report (
    source TEXT PRIMARY KEY, ranges TEXT NOT NULL, last_ns INTEGER NOT NULL) WITHOUT ROWID;
"""

OVERRIDES = "CREATE TABLE IF NOT EXISTS overrides (id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT NOT NULL)"
"""Made when a file is opened: files of the first format have no such table."""

SWEEP = """
DELETE FROM bucket WHERE store_key > ?1 AND store_key <= ?2
AND backlog <= units * (?3 / CASE WHEN period_ns <= 60000000000 THEN 1000 ELSE 1000000 END - last)
"""


class DamagedError(Exception):
    """A row holds what no region wrote; the text says which. `sqlite_file` adds the file."""


def row_of(key: bytes, bucket: StoredBucket) -> BucketRow:
    """The bucket as its row. Numbers saturate at 64 bits: such a backlog is over every capacity, before and after."""
    limit = bucket.limit
    units, backlog = min(limit.units, INTEGER_MAX), min(bucket.backlog, INTEGER_MAX)
    return key, units, limit.period_ns, limit.burst, backlog, bucket.last


def bucket_of(row: BucketRow, limit: RateLimit, now_ns: int) -> StoredBucket:
    """The bucket of a row. One that is damaged counts as without tokens of the limit asked, the worst it can be."""
    _, units, period_ns, burst, backlog, last = row
    try:
        kept = RateLimit(units, period_ns, burst)
        if min(backlog, last) < 0 or {type(value) for value in row[1:]} != {int}:
            raise ValueError("a row holds whole numbers")
    except (TypeError, ValueError):
        return StoredBucket(limit, now_ns, True, limit.burst * limit.period_ticks)
    bucket = StoredBucket(kept, now_ns, True, backlog)
    bucket.last = min(bucket.last, last)
    return bucket


def put_buckets(connection: sqlite3.Connection, rows: Sequence[BucketRow]) -> None:
    """Write these buckets as they are now."""
    insert(connection, "INSERT OR REPLACE INTO bucket VALUES", "", rows)


def load_buckets(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[BucketRow]:
    """The rows of those keys that have one."""
    query = "SELECT store_key, units, period_ns, burst, backlog, last FROM bucket WHERE store_key"
    return select_keys(connection, query, keys)


def select_keys(connection: sqlite3.Connection, query: str, keys: Sequence[bytes]) -> list[Any]:
    """What `query`, which ends with the column of keys, finds of them; many in a statement."""
    query += f" IN ({','.join('?' * ROWS_PER_STATEMENT)})"
    rows: list[Any] = []
    for start in range(0, len(keys), ROWS_PER_STATEMENT):
        part = keys[start : start + ROWS_PER_STATEMENT]
        padded = [*part, *[part[0]] * (ROWS_PER_STATEMENT - len(part))]
        rows += connection.execute(query, padded).fetchall()
    return rows


def sweep_buckets(connection: sqlite3.Connection, start: bytes, steps: int, now_ns: int) -> bytes:
    """Delete the drained ones of the `steps` buckets after `start`; returns where to go on, b"" after the last."""
    go_on, end = stretch_end(connection, "bucket", "store_key", start, steps)
    if end is not None:
        connection.execute(SWEEP, (start, end, now_ns))
    return go_on


def stretch_end(
    connection: sqlite3.Connection, table: str, column: str, start: bytes, steps: int
) -> tuple[bytes, bytes | None]:
    """The key `steps` rows after `start`, twice; near the table's end b"" and the last key, None where it is empty."""
    query = f"SELECT {column} FROM {table} WHERE {column} > ? ORDER BY {column} LIMIT 1 OFFSET ?"  # noqa: S608
    found = connection.execute(query, (start, steps)).fetchone()
    if found is not None:
        return bytes(found[0]), found[0]
    return b"", connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0]  # noqa: S608


def sweep_history(connection: sqlite3.Connection, now_ns: int) -> None:
    """Delete labels and reports that are too old: of labels the oldest two, since one comes in a second."""
    query = """DELETE FROM rollup WHERE epoch = (SELECT min(epoch) FROM rollup)
        AND epoch <= (SELECT max(epoch) FROM rollup) - ?"""
    for _ in range(2):
        connection.execute(query, (ROLLUP_EPOCHS_KEPT,))
    connection.execute("DELETE FROM report WHERE last_ns < ?", (now_ns - REPORTS_KEPT_NS,))


def add_rollup(connection: sqlite3.Connection, rows: Sequence[RollupRow]) -> None:
    """Add units to their labels."""
    conflict = f" ON CONFLICT (epoch, store_key) DO UPDATE SET units = min(units + excluded.units, {INTEGER_MAX})"
    values = [(row.epoch, row.store_key, min(row.units, UNITS_MAX)) for row in rows]
    insert(connection, "INSERT INTO rollup VALUES", conflict, values)


def add_report(
    connection: sqlite3.Connection, source: int, number: int, rows: Sequence[RollupRow], now_ns: int
) -> bool:
    """Add the rows of a report unless it was added before."""
    if not note_number(connection, str(source), number, now_ns):
        return False
    add_rollup(connection, rows)
    return True


def note_number(connection: sqlite3.Connection, source: str, number: int, now_ns: int) -> bool:
    """Note a number of a source; False if it was noted before."""
    found = connection.execute("SELECT ranges FROM report WHERE source = ?", (source,)).fetchone()
    try:
        numbers = Numbers(json.loads(found[0]) if found else [])
        new = numbers.add(number)
    except (TypeError, ValueError, IndexError) as error:
        raise DamagedError(f"the row of reporter {source} in table report cannot be read") from error
    if new:
        values = source, json.dumps(numbers.ranges), now_ns
        connection.execute("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", values)
    return new


def swap_register(connection: sqlite3.Connection, old: Register, new: Register) -> bool:
    """Set the register to `new` if it is `old`."""
    if read_state(connection)[1] != old:
        return False
    connection.execute("UPDATE state SET register = ?", (register_text(new),))
    return True


def rules_version(connection: sqlite3.Connection, digest: str) -> tuple[int, bool]:
    """The version of the rules with that digest, and whether they are other than the rules before."""
    before, version = _state(connection, "rules_digest, rules_version")
    if type(version) is not int or not 0 <= version < TIME_MAX_NS:
        raise DamagedError(f"rules_version in table state is {_shown(version)}, no version number")
    if digest == before:
        return int(version), False
    connection.execute("UPDATE state SET rules_digest = ?, rules_version = ?", (digest, version + 1))
    return int(version) + 1, True


def overrides(connection: sqlite3.Connection) -> str:
    """The operator's overrides as they were kept; "" before the first."""
    found = connection.execute("SELECT text FROM overrides").fetchone()
    return str(found[0]) if found is not None else ""


def keep_overrides(connection: sqlite3.Connection, text: str) -> None:
    """Keep them in the place of those before."""
    connection.execute("INSERT OR REPLACE INTO overrides VALUES (1, ?)", (text,))


def rollup_rows(connection: sqlite3.Connection, first_epoch: int) -> list[RollupRow]:
    """Rows of labels >= `first_epoch` that are kept, labels ascending."""
    query = """SELECT store_key, epoch, units FROM rollup
        WHERE epoch >= ? AND epoch > (SELECT max(epoch) FROM rollup) - ? ORDER BY epoch"""
    return [RollupRow(*row) for row in connection.execute(query, (first_epoch, ROLLUP_EPOCHS_KEPT))]


def insert(connection: sqlite3.Connection, start: str, end: str, rows: Sequence[tuple[Value, ...]]) -> None:
    """Insert rows, many in a statement."""
    if not rows:
        return
    mark = f"({','.join('?' * len(rows[0]))})"
    whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
    if whole:
        many = f"{start} {','.join([mark] * ROWS_PER_STATEMENT)}{end}"
        for at in range(0, whole, ROWS_PER_STATEMENT):
            connection.execute(many, _flat(rows[at : at + ROWS_PER_STATEMENT]))
    connection.executemany(f"{start} {mark}{end}", rows[whole:])


def _flat(rows: Iterable[tuple[Value, ...]]) -> list[Value]:
    return [value for row in rows for value in row]


def register_text(register: Register) -> str:
    """The register as its column."""
    return json.dumps(asdict(register))


def read_state(connection: sqlite3.Connection) -> tuple[int, Register]:
    """The last time recorded and the register. DamagedError: one of them cannot be read."""
    last_ns, text = _state(connection, "last_ns, register")
    if type(last_ns) is not int or not 0 <= last_ns < TIME_MAX_NS:
        raise DamagedError(f"last_ns in table state is {_shown(last_ns)}, no time in nanoseconds")
    return last_ns, parse_register(text)


def parse_register(text: object) -> Register:
    """The register of its column. DamagedError: it holds none."""
    try:
        fields = json.loads(text)  # type: ignore[arg-type]
        marks = tuple(EpochMark(each["epoch"], EpochKind(each["kind"]), each["generation"]) for each in fields["marks"])
        register = Register(**{**fields, "marks": marks})
        numbers = [register.anchor_epoch, register.anchor_ns, register.last_ns, register.generation, register.highest]
        numbers += [number for mark in marks for number in (mark.epoch, mark.generation)]
        if type(register.run_id) is not str or not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("a field is no number that a region writes")
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError(f"the register in table state is {_shown(text)}, which cannot be read") from error
    return register


def _state(connection: sqlite3.Connection, columns: str) -> tuple[object, ...]:
    found = connection.execute(f"SELECT {columns} FROM state").fetchone()  # noqa: S608  no text from outside
    if found is None:
        raise DamagedError("table state has no row")
    return tuple(found)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
