"""What an attached edge does once or twice an epoch, whatever is asked: it reports, gives back what it will not use and
acknowledges rules. Pure. Requests and crossings come a hundred times as often, so what is due is known beforehand.
"""

from __future__ import annotations

from apportion.core.epoch import EpochClock
from apportion.core.limit import EPOCH_NS
from apportion.edge.events import Send
from apportion.edge.lanes import Lanes
from apportion.edge.reporting import LATEST_NS, Reports, encode
from apportion.edge.returning import Returns
from apportion.edge.ruling import Ruling


class Routine:
    """`due_ns`: before that there is nothing to do, unless something happens that `disturb` is told of. `wake_ns`: when
    to look again at the latest.
    """

    def __init__(self, clock: EpochClock, crossings: Lanes, reports: Reports, returns: Returns, ruling: Ruling) -> None:
        self.due_ns = self.wake_ns = 0
        self._clock = clock
        self._crossings = crossings
        self._reports = reports
        self._returns = returns
        self._ruling = ruling

    def disturb(self) -> None:
        """A message came that is no answer to a crossing, or an epoch has begun: look at everything again."""
        self.due_ns = 0

    def perform(self, epoch: int, stream: int, now_ns: int) -> list[Send]:
        """What to send now in `epoch`, the present one."""
        start_ns = self._clock.start_ns(epoch)
        late = self._close_reports(epoch, start_ns, now_ns)
        sent = [Send(encode(pending, stream)) for pending in self._reports.to_send(now_ns)]
        sent += [Send(returned) for returned in self._returns.early(epoch, stream, start_ns, now_ns)]
        if (acknowledgement := self._ruling.acknowledgement()) is not None:
            sent.append(Send(acknowledgement))
        self.wake_ns = min(
            start_ns + (LATEST_NS if late else EPOCH_NS),
            self._returns.wake_ns(epoch, start_ns, now_ns),
            self._reports.again_ns(now_ns),
        )
        self.due_ns = now_ns if late else self.wake_ns  # a late report leaves with whichever answer it waits for
        return sent

    def _close_reports(self, epoch: int, start_ns: int, now_ns: int) -> bool:
        """Close each epoch that has ended once nothing of it waits, at the latest 0.3 s after its end; whether one is
        still open.
        """
        opened = self._reports.open_epoch
        if opened is None or opened >= epoch:
            return False
        waits = any(ticket.epoch < epoch and not ticket.shadow for ticket in self._crossings.tickets())
        if waits and epoch - opened == 1 and now_ns - start_ns < LATEST_NS:
            return True
        self._reports.close(epoch - 1)
        return False
