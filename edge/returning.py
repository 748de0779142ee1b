"""What an edge gives back: early in an epoch what it will not use of its slices, and all when it leaves (design 5.7).

Pure. Each unit is given back at most once: the own right to it is lowered before the message exists, on the stream by
which the slice came, and nobody keeps the message to send it again. One that is lost wastes its units, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Return
from apportion.edge.chunks import Leased
from apportion.edge.holding import Holding
from apportion.edge.holdings import Holdings
from apportion.edge.reporting import columns

EARLY_NS = EPOCH_NS // 5
"""Into an epoch: late enough to judge the use of its slices, early enough for others to use what is left of them, and
for the leader to hear of it before it divides the next."""

EARLY_LATEST_NS = EPOCH_NS // 2
"""An edge that was held up for so long cannot tell that from requests that did not come."""

LATE_NS = EPOCH_NS * 4 // 5
"""Into an epoch: slices of small edges in overload, spared before, are judged now: what random arrivals left of them is
nearly known, and whoever waits for the pool still has time to spend it.
"""

LATE_LATEST_NS = EPOCH_NS * 9 // 10
"""As EARLY_LATEST_NS, of these."""

SLICES_MAX = 1_000
"""Slices judged in one go: requests that came meanwhile wait for no longer than some milliseconds."""

PROBES_NS = (EPOCH_NS // 4, EPOCH_NS // 2, LATE_NS + EPOCH_NS // 20)
"""A pool that was spent is asked again at these instants of an epoch: by then returns may have come."""


def probe_in_ns(left_ns: int) -> int:
    """Nanoseconds until a spent pool is worth asking again, where `left_ns` of the epoch are left."""
    passed_ns = EPOCH_NS - left_ns
    return next((probe_ns for probe_ns in PROBES_NS if probe_ns > passed_ns), EPOCH_NS) - passed_ns


class Returns:
    """Makes the returns of one edge."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._number = 0
        self._judged = (0, False)  # the latest epoch whose slices were judged, or begun to be, and whether late
        self._unjudged: Iterator[Holding] = iter(())
        self._more = False

    def new_stream(self) -> None:
        """Returns are counted by stream, and slices of the former one stay where they are."""
        self._number = 0
        self._unjudged, self._more = iter(()), False

    def wake_ns(self, epoch: int, start_ns: int, now_ns: int) -> int:
        """When `early` has something to do next in `epoch`, which began at `start_ns`."""
        if self._judged < (epoch, False):
            return max(start_ns + EARLY_NS, now_ns)
        if self._more:
            return now_ns
        return max(start_ns + LATE_NS, now_ns) if self._judged < (epoch, True) else start_ns + EPOCH_NS + EARLY_NS

    def early(self, epoch: int, stream: int, start_ns: int, now_ns: int) -> list[Return]:
        """Once for each epoch, from EARLY_NS after its start: of each slice what exceeds 1.5 times its projected use;
        from LATE_NS on of those that were spared before, what exceeds the use projected for the rest. Of SLICES_MAX
        slices a call.
        """
        elapsed_ns = now_ns - start_ns
        if elapsed_ns < EARLY_NS:
            return []
        late = elapsed_ns >= LATE_NS
        if self._judged < (epoch, late):
            self._judged = (epoch, late)
            self._unjudged = self._holdings.spared(epoch) if late else self._holdings.sliced(epoch, early=True)
        elif not self._more:
            return []
        if elapsed_ns >= (LATE_LATEST_NS if late else EARLY_LATEST_NS):
            self._unjudged = iter(())
        some = list(islice(self._unjudged, SLICES_MAX))
        self._more = len(some) == SLICES_MAX
        # The region must know the quota by the name that it has on this stream.
        own = [holding for holding in some if holding.stream == stream]
        rows = [(each, each.left_over(elapsed_ns) if late else each.surplus(elapsed_ns)) for each in own]
        return self._give_up(epoch, rows, now_ns)

    def leaving(self, epoch: int, stream: int, now_ns: int) -> list[Return]:
        """All that is left of this epoch and of those that were divided ahead."""
        returns = []
        for each in self._holdings.sliced_epochs(epoch):
            own = (holding for holding in self._holdings.sliced(each, early=False) if holding.stream == stream)
            rows = [(holding, holding.budget.units) for holding in own if holding.budget is not None]
            returns += self._give_up(each, rows, now_ns)
        self._holdings.disown(now_ns)
        return returns

    def chunks(self, now_ns: int, *, leaving: bool = False) -> list[tuple[Leased, str, int]]:
        """What is left of chunks whose time has passed, or of all, for the next report: only there is it numbered."""
        return self._holdings.unspent.take(now_ns, leaving=leaving)

    def _give_up(self, epoch: int, rows: Sequence[tuple[Holding, int]], now_ns: int) -> list[Return]:
        given, ready = [], []
        for holding, units in rows:
            budget = holding.budget
            if budget is None or (units := units - budget.lost(now_ns)) <= 0:
                continue
            given.append((holding, units))
            ready.append(budget.give_up(units, now_ns))
        if not given:
            return []
        self._number += 1
        return [Return(epoch, *columns(given), self._number, np.array(ready, np.uint64))]
