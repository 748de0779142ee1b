"""The simulated world with the rules and the log of the fault tests."""

from __future__ import annotations

import numpy as np

from apportion.simulations.log import NO_EPOCH, Answers, Flags, Offers
from apportion.simulations.recording import Recording
from apportion.simulations.rows import Answered
from apportion.simulations.sums import Sums
from apportion.simulations.world import SECOND, Options
from apportion.simulations.world import World as SimulatedWorld
from tests.faults.rules import RULES

__all__ = ["SECOND", "Options", "World"]

USUAL = Options()


class World(SimulatedWorld):
    """Region, allocators, edges, and a log of everything that happens."""

    def __init__(self, seed: int, options: Options = USUAL) -> None:
        self.recording = Recording()
        self._read, self._sums = 0, Sums(self.recording.log)
        super().__init__(seed, RULES, self.recording, options)

    @property
    def sums(self) -> Sums:
        """What the log adds up to so far."""
        log = self.recording.log
        if len(log) != self._read:
            self._read, self._sums = len(log), Sums(log)
        return self._sums

    @property
    def answers(self) -> list[Answered]:
        """What rules said so far."""
        return [row for row in self.recording.log if isinstance(row, Answered)]

    def demand(self, from_s: float, until_s: float, name: str | None = None) -> int:
        """Units that were asked of a rule alone in that stretch of the run; None: of any."""
        offers = self.recording.log.offers()
        return self._units(offers, offers.alone & ~offers.peek, (from_s, until_s), name)

    def admitted(self, from_s: float, until_s: float, name: str | None = None) -> int:
        """Of such requests, units that were charged."""
        answers = self.recording.log.answers()
        return self._units(answers, answers.alone & (answers.epoch != NO_EPOCH), (from_s, until_s), name)

    def _units(self, of: Offers | Answers, which: Flags, stretch: tuple[float, float], name: str | None) -> int:
        """Units of some lines, in a stretch of the run."""
        start_ns, end_ns = (int(each * SECOND) for each in stretch)
        quotas = [number for number, (_, rule, _) in enumerate(self.recording.log.quotas) if name in (None, rule)]
        within = (of.at_ns >= start_ns) & (of.at_ns < end_ns) & np.isin(of.quota, quotas)
        return int(of.cost[which & within].sum())
