"""Columns of numbers as bytes, checked, without a loop over cells; and the checks of single fields. Knows no message.

Decoded columns are views of the message's bytes: read-only, and copied only on a big-endian host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from apportion.core.errors import ProtocolError
from apportion.core.messages import Ids, Units
from apportion.proto.wire_limits import (
    COST_MAX,
    GROUP_MEMBERS_MAX,
    GROUPS_MAX,
    ID_MAX,
    ROWS_MAX,
    UNITS_MAX,
)

_ID = np.dtype("<u4")
_UNIT = np.dtype("<u8")
Flags = npt.NDArray[np.uint8]


def ids_to_wire(ids: Ids) -> bytes:
    """A column of ids, or of other numbers below 2^32."""
    assert (ids.dtype.kind, ids.dtype.itemsize, ids.ndim) == ("u", 4, 1), "ids are a column of uint32"
    return ids.astype(_ID, copy=False).tobytes()


def units_to_wire(units: Units) -> bytes:
    """A column of units, or of other numbers below 2^64."""
    assert (units.dtype.kind, units.dtype.itemsize, units.ndim) == ("u", 8, 1), "units are a column of uint64"
    return units.astype(_UNIT, copy=False).tobytes()


def demand_to_wire(demand: Units) -> bytes:
    """A column of offered cost. A caller may ask for any cost, so it saturates: it is divided by, never charged."""
    return units_to_wire(np.minimum(demand, np.uint64(UNITS_MAX)))


def pack_ids(values: Sequence[int]) -> bytes:
    """Python ints below 2^32 as a column; OverflowError for others."""
    return np.array(values, _ID).tobytes()


def pack_units(values: Sequence[int]) -> bytes:
    """Python ints below 2^64 as a column; OverflowError for others."""
    return np.array(values, _UNIT).tobytes()


def numbers_from_wire(column: bytes, field: str, maximum: int, rows_max: int = ROWS_MAX) -> Ids:
    """A column of u32, each at most `maximum`."""
    values = np.frombuffer(_rows(column, field, _ID.itemsize, rows_max), _ID).astype(np.uint32, copy=False)
    _check_maximum(values, field, maximum)
    return values


def ids_from_wire(column: bytes, field: str) -> Ids:
    """A column of ids that may name a quota in several rows."""
    return numbers_from_wire(column, field, ID_MAX)


def ids_once_from_wire(column: bytes, field: str) -> Ids:
    """A column of ids in which each quota has one row: of two, a receiver would count either or both."""
    ids = ids_from_wire(column, field)
    ordered = np.sort(ids)
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise ProtocolError(f"{field}: a quota has two rows")
    return ids


def kept_from_wire(column: bytes, field: str, ids: Ids) -> Ids:
    """A column of ids, each of which is among `ids`."""
    kept = ids_once_from_wire(column, field)
    if not bool(np.isin(kept, ids).all()):
        raise ProtocolError(f"{field}: a quota that `ids` does not have")
    return kept


def units_from_wire(column: bytes, field: str, maximum: int = UNITS_MAX) -> Units:
    """A column of u64, each at most `maximum`."""
    values = np.frombuffer(_rows(column, field, _UNIT.itemsize, ROWS_MAX), _UNIT).astype(np.uint64, copy=False)
    if maximum < COST_MAX:
        _check_maximum(values, field, maximum)
    return values


def flags_from_wire(column: bytes, field: str) -> Flags:
    """A column of flags, each 0 or 1."""
    values = np.frombuffer(_rows(column, field, 1, ROWS_MAX), np.uint8)
    _check_maximum(values, field, 1)
    return values


def check_rows(rows: int, columns: Iterable[tuple[str, Sequence[object] | Ids | Units | Flags]]) -> None:
    """Every column, given with the name of its field, must have `rows` rows."""
    for field, column in columns:
        if len(column) != rows:
            raise ProtocolError(f"{field}: {len(column)} rows beside {rows}")


def member_counts_from_wire(column: bytes, field: str, groups: int, members: int) -> list[int]:
    """How many of `members` members each of `groups` groups has; they must add up."""
    counts = numbers_from_wire(column, field, GROUP_MEMBERS_MAX, GROUPS_MAX)
    check_rows(groups, ((field, counts),))
    if groups and not int(counts.min()):
        raise ProtocolError(f"{field}: a group without members")
    if (total := int(counts.sum(dtype=np.uint64))) != members:
        raise ProtocolError(f"{field}: adds up to {total}, but there are {members} members")
    sizes: list[int] = counts.tolist()
    return sizes


def check_number(value: int, field: str, maximum: int, minimum: int = 0) -> int:
    """`value`, which must lie between the two, both included."""
    if not minimum <= value <= maximum:
        raise ProtocolError(f"{field}: {value} is not between {minimum} and {maximum}")
    return value


def check_text(text: str, field: str, bytes_max: int, bytes_min: int = 0) -> str:
    """`text`, whose length in UTF-8 must lie between the two, both included."""
    check_number(len(text.encode()), f"{field} (length)", bytes_max, bytes_min)
    return text


def check_count(count: int, field: str, maximum: int) -> None:
    """A repeated field may have at most `maximum` entries."""
    if count > maximum:
        raise ProtocolError(f"{field}: {count} entries, at most {maximum} are allowed")


def _rows(column: bytes, field: str, row_bytes: int, rows_max: int) -> bytes:
    """`column`, once its length is known to be whole rows and not too many."""
    if len(column) % row_bytes:
        raise ProtocolError(f"{field}: {len(column)} bytes are not whole rows of {row_bytes}")
    check_count(len(column) // row_bytes, field, rows_max)
    return column


def _check_maximum(values: Ids | Units | Flags, field: str, maximum: int) -> None:
    if values.size and (largest := int(values.max())) > maximum:
        raise ProtocolError(f"{field}: {largest} is above {maximum}")
