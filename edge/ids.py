"""Ids of what an edge names on its streams. Pure."""

from __future__ import annotations


class Ids:
    """Small numbers for holdings, each used again once nothing has it any more."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._fresh = 0

    def take(self) -> int:
        """A number that no holding has."""
        if self._free:
            return self._free.pop()
        self._fresh += 1
        return self._fresh - 1

    def give_back(self, identity: int) -> None:
        """Its holding is no more."""
        self._free.append(identity)
