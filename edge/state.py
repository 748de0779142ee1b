"""The disk of an edge's state (`--state DIR`): one file, replaced as a whole, so that a crash leaves the former one.

What is in it is `kept`'s. Here is only how it gets there and back, and how old it is: a process of the same boot knows
by the monotonic clock, one of a later boot by the wall clock, and where that went back nothing is known to be fresh.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG
from typing import Any

from apportion.core.errors import InputError
from apportion.edge.kept import Kept, decode, encode

FILE = "edge.state"

UNKNOWN_NS = 2**62
"""Age of a state whose age nobody knows: every stage but the last has run out."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

STATE_BYTES_MAX = 256 << 20
"""A larger file is no state of an edge."""


class StateFile:
    """The state of one edge in `folder`, which is made if it is not there. InputError: it cannot be written."""

    def __init__(self, folder: str, edge: str, clock: Callable[[], int]) -> None:
        self.path = Path(folder) / FILE
        self._edge = edge
        self._clock = clock
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            probe = self.path.with_suffix(".probe")
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"--state {folder}: {error.strerror or error}; name a folder that can be written"
            ) from None

    def read(self) -> Kept | None:
        """What was kept, aged until now; None when nothing was. InputError: the file is of no use, and why."""
        try:
            found = self.path.stat()
            if not S_ISREG(found.st_mode):  # a pipe could be waited on for ever
                raise InputError(f"{self.path} is not the state of an edge: it is no file")
            if found.st_size > STATE_BYTES_MAX:
                raise InputError(f"{self.path} is not the state of an edge: it has more than {STATE_BYTES_MAX} bytes")
            record = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        try:
            kept, written = decode(record, self._edge)
        except InputError as error:
            raise InputError(f"{self.path} {error}") from None
        return replace(kept, silent_ns=min(kept.silent_ns + self._age_ns(written), UNKNOWN_NS))

    def write(self, kept: Kept) -> None:
        """Replace the file. OSError: it was not."""
        written = {"boot": _boot_id(), "clock_ns": self._clock(), "wall_ns": time.time_ns()}
        new = self.path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(encode(kept, written))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def _age_ns(self, written: dict[str, Any]) -> int:
        boot, clock_ns, wall_ns = written.get("boot"), written.get("clock_ns"), written.get("wall_ns")
        if boot and boot == _boot_id() and isinstance(clock_ns, int):
            return max(self._clock() - clock_ns, 0)
        age_ns = time.time_ns() - wall_ns if isinstance(wall_ns, int) else -1
        return age_ns if age_ns >= 0 else UNKNOWN_NS


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
