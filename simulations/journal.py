"""What a world tells of itself as it happens. Oracles and measures read nothing else (algorithms 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from apportion.core.decision import Decision, Verdict
from apportion.core.messages import AcquireAnswer, Quota, Rules, Slices
from apportion.core.request import Application
from apportion.region.authority import Authority
from apportion.region.events import Consume, RollUp
from apportion.region.store import ChargesAnswer
from apportion.simulations.rows import Clocked


class Journal(Protocol):
    """Told in the order of virtual time, `now_ns`."""

    def started(self, edge: str, incarnation: int) -> int:
        """A process of an edge begins to live; returns the number by which it is told of."""

    def offered(self, now_ns: int, process: int, applications: tuple[Application, ...], peek: bool) -> None:
        """A request came to an edge."""

    def decided(self, now_ns: int, process: int, decision: Decision) -> None:
        """A decision was given."""

    def shadowed(self, now_ns: int, process: int, verdict: Verdict) -> None:
        """A shadow rule said what no decision waited for."""

    def settled(self, now_ns: int, came_ns: int, deadline_ns: int) -> None:
        """A request that waited has its decision."""

    def region_sent(self, now_ns: int, authority: Authority, session: int, message: Slices | AcquireAnswer) -> None:
        """The region gave rights to an edge: a column, or units ahead."""

    def edge_sent(self, now_ns: int, edge: str, message: Any) -> None:
        """An edge said something."""

    def returned(self, incarnation: int, epoch: int, units: dict[Quota, int]) -> None:
        """An edge gave rights back: from this instant on it has them no more, whatever becomes of the message."""

    def anchored(self, now_ns: int, epoch: int, start_ns: int, length_ns: int) -> None:
        """A region started in `epoch`, which began at `start_ns`; its epochs last so long."""

    def consumed(self, store_ns: int, command: Consume, answers: tuple[ChargesAnswer, ...]) -> None:
        """The store decided, by its clock."""

    def clocked(self, row: Clocked) -> None:
        """What the region's clocks show from now on; told where there are quotas of a period."""

    def tallied(
        self, now_ns: int, store_ns: int, wall_ns: int, command: Consume, answers: tuple[ChargesAnswer, ...]
    ) -> None:
        """The same as `consumed`, where there are quotas of a period."""

    def filed(self, now_ns: int, made: Sequence[bytes], reclaimed: Sequence[bytes]) -> None:
        """The store made and reclaimed counters of these quotas of a period."""

    def gave_back(self, now_ns: int, command: RollUp) -> None:
        """The store took a report for the first time that gives back units lent of a period."""

    def rolled_up(self, store_ns: int, command: RollUp, new: bool) -> None:
        """The store took a report, for the first time or again."""

    def ruled(self, now_ns: int, epoch: int, rules: Rules) -> None:
        """The region goes by other rules."""

    def error(self, who: str, event: str, fields: Any) -> None:
        """A core wrote an error into its log."""
