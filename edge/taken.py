"""What a request took of what the edge holds. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Taken(NamedTuple):
    """Units taken from what the edge holds, to be spent under label `epoch`, or put back; of a period quota, with the
    `chunk` that they were of.
    """

    epoch: int
    units: int
    borrowed: bool
    chunk: object = None
