"""One request that cannot be answered from what the edge holds: it waits here for the region, or for its deadline."""

from __future__ import annotations

from apportion.core.decision import Verdict
from apportion.core.request import Application
from apportion.edge.holding import Holding, Taken


class Ticket:
    """A waiting request. `holdings[i]` is the holding of `applications[i]`, None for an unlimited rule; `taken` what
    was reserved locally by index; `crossing` the indexes that the region must decide. `settled` once answered.
    """

    __slots__ = (
        "applications",
        "crossing",
        "deadline_ns",
        "epoch",
        "holdings",
        "not_before_ns",
        "number",
        "peek",
        "settled",
        "taken",
    )

    def __init__(
        self,
        number: int,
        applications: tuple[Application, ...],
        holdings: tuple[Holding | None, ...],
        crossing: tuple[int, ...],
        taken: dict[int, Taken],
        peek: bool,
        epoch: int,
        deadline_ns: int,
    ) -> None:
        self.number = number
        self.applications = applications
        self.holdings = holdings
        self.crossing = crossing
        self.taken = taken
        self.peek = peek
        self.epoch = epoch
        self.deadline_ns = deadline_ns
        self.not_before_ns = 0
        self.settled = False

    def shape(self) -> tuple[object, ...]:
        """Requests of one shape are alike to the region, which then decides them by a count."""
        return (self.peek, *((self._crossing_holding(i).id, self.applications[i].cost) for i in self.crossing))

    def members(self) -> list[tuple[Holding, int]]:
        """What the region must decide: holdings and costs."""
        return [(self._crossing_holding(i), self.applications[i].cost) for i in self.crossing]

    def _crossing_holding(self, index: int) -> Holding:
        holding = self.holdings[index]
        assert holding is not None, "an unlimited rule never crosses"
        return holding


def verdict(application: Application, allowed: bool, **fields: object) -> Verdict:
    """A verdict on `application`; `fields` as `Verdict`."""
    return Verdict(application.rule, application.key, application.cost, allowed, **fields)  # type: ignore[arg-type]
