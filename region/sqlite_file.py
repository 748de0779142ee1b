"""The SQLite file of `sqlite_store`: lock, format, transactions, errors. Blocking; for the store's worker thread only.

An error of SQLite never leaves this module: what the operator must mend is an `InputError`, the rest a `StoreError`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from apportion.core.errors import InputError, StoreError
from apportion.core.messages import Register
from apportion.region import sqlite_counters, sqlite_rows
from apportion.region.sqlite_counters import CounterRow
from apportion.region.sqlite_rows import BucketRow, DamagedError
from apportion.region.store import ClosedPeriod, RollupRow

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4150504F
"""`APPO` in the file's header: tells our files from other SQLite databases."""

BUSY_SECONDS = 1.0
"""How long to wait for a person with the sqlite3 shell; a second region cannot be there."""

SWEEP_ROWS = 256
"""Rows looked at for sweeping each time, beside two for each that was written since."""

COUNTER_SWEEP_ROWS = 1024
"""The same for period counters, which end in crowds."""

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], object]
OPERATOR_CODES = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
"""Primary codes of what a person mends; all others are the machine's."""


class SqliteFile:
    """The open file at `path`, held by this process. `created`: it was new; `last_ns`: the last time it records.

    `commits` counts transactions. `audited`: it has had a period that is to be told of when it is closed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.created = False
        self.last_ns = 0
        self.commits = 0
        self.audited = False
        self.register = Register()
        self._lock: int | None = None
        self._lock_made = False
        self._database: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._inodes: dict[Path, tuple[int, int]] = {}
        self._swept_to = b""
        self._written_since_sweep = 0
        self._counters_swept_to = b""
        self._counters_since_sweep = 0

    # --- opening and closing ----------------------------------------------------------------------------------------

    def open(self, wall_ns: int) -> None:
        """Lock, open, create what is missing, and record the time: a file that cannot be written is found now."""
        try:
            self.path = _usable(self.path)
            self._take_lock()
            self._lock_database()
            self._write_holder()
            self._connect(wall_ns)
        except BaseException as error:
            self.close()
            if self._lock_made:  # nobody's file gets a neighbour for having been named by mistake
                Path(f"{self.path}.lock").unlink(missing_ok=True)
            if isinstance(error, sqlite3.Error):
                raise _opening_error(self.path, error) from error
            if isinstance(error, DamagedError):
                raise self._damaged(error) from error
            if isinstance(error, OSError):
                raise StoreError(f"cannot open {self.path}: {error.filename or ''} {error.strerror}") from error
            raise

    def close(self) -> None:
        """Let go of file and lock; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        # After the connection: closing any descriptor of the database drops SQLite's own locks on it.
        database, self._database = self._database, None
        if database is not None:
            os.close(database)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _take_lock(self) -> None:
        # The side file goes first and says who holds the database.
        name = Path(f"{self.path}.lock")
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            try:
                self._lock = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o644)
                self._lock_made = True
            except FileExistsError:
                self._lock = os.open(name, flags)
        except OSError as error:
            raise InputError(
                f"cannot create {name} beside the store's file: {error.strerror}; "
                "let the region's user write in that directory, or name another file"
            ) from error
        if not stat.S_ISREG(os.fstat(self._lock).st_mode):
            raise InputError(f"{name} is no plain file, and the store's lock must be one; move it away")
        if not _locked(self._lock, name):
            holder = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            raise InputError(
                f"another region has {self.path}: process {holder or 'unknown'} is still running with it; "
                "stop that one first, or give this region a file of its own"
            )

    def _lock_database(self) -> None:
        """Lock the database itself: it has one inode, whatever names it has and whoever removed the side file.

        SQLite locks with fcntl, which flock does not meet.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        except OSError as error:
            raise InputError(
                f"cannot open {self.path}: {error.strerror}; let the region's user read and write it"
            ) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f"the store's file {self.path} is no plain file; name another")
        if not _locked(descriptor, self.path):
            # The descriptor stays open until the process ends: were the holder in this process, closing it would drop
            # SQLite's locks.
            raise InputError(
                f"another region has {self.path}, by this name or another one of the same file, and is still running; "
                "stop that one first, or give this region a file of its own"
            )
        self._database = descriptor

    def _write_holder(self) -> None:
        assert self._lock is not None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}.lock: {error.strerror}") from error

    def _damaged(self, error: DamagedError) -> StoreError:
        return StoreError(f"{self.path} is damaged: {error}; restore it from a copy, or start on a new file")

    def _connect(self, wall_ns: int) -> None:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._connection = connection
        self._check_schema(connection)
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise InputError(f"{self.path}: its file system cannot hold a write-ahead log; use a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if self.created:
            self._create(connection)
        connection.execute(sqlite_rows.OVERRIDES)
        connection.execute(sqlite_counters.SCHEMA)
        self.audited = sqlite_counters.are_audited(connection)
        last_ns, self.register = sqlite_rows.read_state(connection)
        self.last_ns = max(last_ns, wall_ns)
        connection.execute("UPDATE state SET last_ns = ?", (self.last_ns,))
        connection.execute("COMMIT")
        for path in (self.path, Path(f"{self.path}-wal")):
            found = path.stat()
            self._inodes[path] = (found.st_dev, found.st_ino)

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        """Whether the file is new; InputError for a file of somebody else or of a newer version."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        self.created = not tables and not version and not application
        if self.created:
            return
        if application != APPLICATION_ID:
            raise InputError(f"{self.path} is an SQLite database of another program; name a file of the region's own")
        if version > SCHEMA_VERSION:
            raise InputError(
                f"{self.path} was written by a newer Apportion (format {version}, this one knows up to "
                f"{SCHEMA_VERSION}); start that version, or name another file"
            )

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        for statement in sqlite_rows.SCHEMA.split(";"):
            connection.execute(statement)
        # The run id belongs to the file, so that a restart on it is no loss (design 5.11).
        register = sqlite_rows.register_text(Register(run_id=uuid4().hex))
        connection.execute("INSERT INTO state VALUES (1, 0, ?, NULL, 0)", (register,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    # --- reading and writing ----------------------------------------------------------------------------------------

    def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a query; StoreError when it fails."""
        try:
            return work(self._open_connection())
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        except DamagedError as error:
            raise self._damaged(error) from error

    def commit(
        self, now_ns: int, buckets: Sequence[BucketRow], rollup: Sequence[RollupRow], works: Sequence[Work]
    ) -> list[object]:
        """Write everything in one transaction and return what `works` returned. When it raises, nothing was written."""
        self._check_files()
        connection = self._open_connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            sqlite_rows.put_buckets(connection, buckets)
            sqlite_rows.add_rollup(connection, rollup)
            results = [work(connection) for work in works]
            connection.execute("UPDATE state SET last_ns = max(last_ns, ?)", (now_ns,))
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot write {self.path}: {error}; nothing of this batch was written") from error
            if isinstance(error, DamagedError):
                raise self._damaged(error) from error
            raise
        self.commits += 1
        self._written_since_sweep += len(buckets)
        return results

    def put_counters(self, connection: sqlite3.Connection, rows: Sequence[CounterRow]) -> None:
        """Write these counters as they are now. In a transaction."""
        sqlite_counters.put(connection, rows)
        self._counters_since_sweep += len(rows)
        self.audited = self.audited or any(row[-1] is not None for row in rows)

    def sweep(self, connection: sqlite3.Connection, now_ns: int, wall_ns: int) -> list[tuple[bytes, ClosedPeriod]]:
        """Delete a few of the rows that mean nothing any more. In a transaction. Periods to be told of, with the keys
        of their counters.
        """
        steps = SWEEP_ROWS + 2 * self._written_since_sweep
        self._swept_to = sqlite_rows.sweep_buckets(connection, self._swept_to, steps, now_ns)
        self._written_since_sweep = 0
        sqlite_rows.sweep_history(connection, now_ns)
        steps, self._counters_since_sweep = COUNTER_SWEEP_ROWS + 2 * self._counters_since_sweep, 0
        start = self._counters_swept_to
        self._counters_swept_to, closed = sqlite_counters.sweep(connection, start, steps, now_ns, wall_ns)
        return closed

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"the store {self.path} is closed: nothing was done")
        return self._connection

    def _check_files(self) -> None:
        """SQLite goes on writing into a file that was deleted; what it acknowledged would be gone with the process."""
        for path, inode in self._inodes.items():
            try:
                found = path.stat()
            except OSError as error:
                raise StoreError(
                    f"{path} is gone ({error.strerror}): nothing was written; restart the region"
                ) from error
            if (found.st_dev, found.st_ino) != inode:
                raise StoreError(f"{path} was replaced by another file: nothing was written; restart the region")


def _locked(descriptor: int, name: Path) -> bool:
    """Whether the file is this process's alone from now on, as long as the descriptor is open."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise InputError(f"cannot lock {name}: {error.strerror}; use a file on a local disk") from error
    return True


def _usable(path: Path) -> Path:
    """The real path, which all names of a file share; InputError where no file can be."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise InputError(f"the store's file {path} is a directory; name a file in it, such as {path}/region.db")
    if not real.parent.is_dir():
        hint = "" if path.is_absolute() else f"; an absolute path takes four slashes: sqlite:////{path}"
        raise InputError(f"the directory of the store's file {path} does not exist; create {real.parent}{hint}")
    return real


def _opening_error(path: Path, error: sqlite3.Error) -> InputError | StoreError:
    """What to tell a person whose file cannot be opened."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not an SQLite database; name another file, or move this one away")
    if code in OPERATOR_CODES:
        return InputError(
            f"cannot write {path}: {error}; let the region's user read and write the file and its directory, "
            "on a disk that is not read-only"
        )
    return StoreError(f"cannot open {path}: {error}")
