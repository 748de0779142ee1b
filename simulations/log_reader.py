"""Reads an access log of any size from its beginning to its end: never more of it in memory than a line.

A file that begins as gzip is read as gzip, whatever its name. Bad lines are counted, the first few with number and
reason, and skipped.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from apportion.core.errors import InputError
from apportion.simulations.access_log import GOOD_LINES, Entry, Format, LineError, format_of

LINE_BYTES_MAX = 65_536
"""Servers cut lines long before; without an end a file of zeros would be one line."""

BAD_SHOWN_MAX = 10
"""Bad lines that are reported one by one; the rest is counted."""

_GZIP = b"\x1f\x8b"


class LogReader:
    """One reading of a log. `good` and `bad` count lines; `problems` says why the first bad ones are.

    `location_from`, `key_from`: the column or field that says where a request came, and which key it has.
    """

    def __init__(self, path: Path, location_from: str | None = None, key_from: str | None = None) -> None:
        self.path = path
        self.good = 0
        self.bad = 0
        self.problems: list[str] = []
        self.by_column = False
        self._columns = (location_from, key_from)
        self._raw: BufferedReader | None = None
        self._size = 0

    @property
    def share(self) -> float:
        """How much of the file has been read, 0 to 1."""
        if self._raw is None or self._raw.closed:
            return 1.0 if self.good or self.bad else 0.0
        return min(1.0, self._raw.tell() / max(self._size, 1))

    def entries(self) -> Iterator[Entry]:
        """The requests, in the order of the file. InputError: it cannot be read, or no line of it is good."""
        try:
            with self.path.open("rb") as raw:
                self._raw, self._size = raw, self.path.stat().st_size
                packed = raw.peek(2)[:2] == _GZIP
                yield from self._entries(gzip.GzipFile(fileobj=raw) if packed else raw)
        except OSError as error:
            raise InputError(f"--replay {self.path}: {error.strerror or error}; name an access log") from error
        if not self.good:
            first = f"; line {self.problems[0]}" if self.problems else "; it is empty"
            raise InputError(f"--replay {self.path}: no line can be read{first}. A good line is {GOOD_LINES}")

    def _entries(self, file: BufferedIOBase) -> Iterator[Entry]:
        form: Format | None = None
        for number, line in self._lines(file):
            if form is None:
                form = format_of(line, *self._columns)
                self.by_column = form.by_column
                if form.has_header:
                    continue
            try:
                entry = form.parse(line)
            except LineError as error:
                self._refuse(number, str(error))
                continue
            self.good += 1
            yield entry

    def _lines(self, file: BufferedIOBase) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, with their number from 1."""
        number = 0
        while True:
            try:
                line = file.readline(LINE_BYTES_MAX)
                number += 1
                if not line:
                    return
                if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = file.readline(LINE_BYTES_MAX)
                    self._refuse(number, f"is longer than {LINE_BYTES_MAX:,} bytes")
                    continue
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self._refuse(number, f"the gzip file is damaged here, what follows is lost ({error})")
                return
            if line.strip():
                yield number, line.decode("utf-8", "replace").rstrip("\r\n")

    def _refuse(self, number: int, why: str) -> None:
        self.bad += 1
        if len(self.problems) < BAD_SHOWN_MAX:
            self.problems.append(f"{number}: {why}")
