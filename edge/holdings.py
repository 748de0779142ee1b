"""All holdings of one edge: found by rule and key, named on streams by id, given their slices, forgotten when idle.
Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from apportion.core.epoch import EpochClock
from apportion.core.key import encode_key
from apportion.core.limit import RateLimit
from apportion.core.messages import Quota, QuotaName, Slices
from apportion.core.request import Application
from apportion.core.rule import Rule
from apportion.edge.holding import Holding, Ids

HOLDINGS_MAX = 200_000
"""Quotas known at once, about 1 KiB each; a further key is refused (KEYS_FULL) until idle ones are forgotten."""

IDLE_EPOCHS = 10
"""A holding unused for so long is forgotten: what the region said of it has drained or is asked for again."""

SLICES_KEPT = 3
"""Plans kept: of the present epoch and the next; one more for a plan that overtakes the edge's clock."""

KEY_CHARACTERS_MAX = 256
"""Longer values than these together are filed as the wire has them, digested: callers choose them."""

Key = tuple[str, str, tuple[str, ...] | bytes]


class Holdings:
    """Holdings by domain, rule name and key values, in the order in which they were looked at."""

    def __init__(self, clock: EpochClock) -> None:
        self._clock = clock
        self._by_key: OrderedDict[Key, Holding] = OrderedDict()
        self._ids = Ids()
        self._by_quota: dict[Quota, Holding] = {}  # of divided rules
        self._slices: dict[int, dict[Quota, int]] = {}
        self._kept: dict[int, frozenset[Quota]] = {}  # of slices that came by the present stream: not returned early
        self._came_late = 0  # the latest epoch whose slices came when it had begun
        self._names: dict[int, Quota] = {}
        self._shadows = 0  # holdings of shadow rules, which take no room from others

    def find(self, application: Application, epoch: int) -> Holding | None:
        """The holding of an application of a limited rule, with the slice of `epoch` begun; None: no room for it."""
        rule = application.rule
        key: Key = (rule.domain, rule.name, application.key)
        holding = self._by_key.get(key)
        if holding is None and sum(map(len, application.key)) > KEY_CHARACTERS_MAX:
            key = (rule.domain, rule.name, encode_key(application.key))
            holding = self._by_key.get(key)
        if holding is None:
            if (self._shadows if rule.shadow else len(self._by_key) - self._shadows) >= HOLDINGS_MAX:
                return None
            self._shadows += rule.shadow
            quota = Quota(rule.domain, rule.name, encode_key(application.key))
            holding = self._by_key[key] = Holding(self._ids, rule, limit_of(rule), quota)
            self._index(holding)
        elif holding.rule is not rule:
            self._shadows += rule.shadow - holding.rule.shadow
            holding.change(rule, limit_of(rule))
            self._index(holding)
        if holding.used != epoch:
            holding.used = holding.looked_at = epoch
            self._by_key.move_to_end(key)
            if rule.planned and epoch in self._slices:
                self._begin(holding, epoch)
        return holding

    def _index(self, holding: Holding) -> None:
        if holding.rule.divided:
            self._by_quota[holding.quota] = holding
        else:
            self._by_quota.pop(holding.quota, None)

    def new_stream(self) -> None:
        """A fresh stream: the region has declared nothing on it yet, and no slice came by it."""
        self._names.clear()
        self._kept.clear()

    def receive(self, slices: Slices, epoch: int) -> None:
        """Take this edge's column of a plan; the first for an epoch wins, one for an epoch that has begun fills in what
        the edge holds nothing of yet, one for a past epoch is void.
        """
        self._names.update((name.id, name.quota) for name in slices.names)
        if slices.epoch < epoch or slices.epoch in self._slices:
            return
        quotas = (self._names.get(identity) for identity in slices.ids.tolist())
        pairs = zip(quotas, slices.units.tolist(), strict=True)
        column = {quota: units for quota, units in pairs if quota is not None}
        self._slices[slices.epoch] = column
        # How a slice that came late is used says nothing yet.
        if slices.epoch == epoch:
            self._came_late = epoch
        kept = column if slices.epoch == epoch else map(self._names.get, slices.kept.tolist())
        self._kept[slices.epoch] = frozenset(quota for quota in kept if quota is not None)
        for old in sorted(self._slices)[:-SLICES_KEPT]:
            del self._slices[old]
            self._kept.pop(old, None)
        if slices.epoch == epoch:
            for holding in reversed(self._by_key.values()):
                if holding.looked_at < epoch:
                    break
                if holding.used == epoch and holding.rule.planned:
                    self._begin(holding, epoch)

    def _begin(self, holding: Holding, epoch: int) -> None:
        holding.begin(epoch, self._slices[epoch].get(holding.quota), self._clock.start_ns(epoch))

    def last_slice(self, quota: Quota, epoch: int) -> int:
        """Units of the latest slice of `epoch` or earlier that came here; 0 when there is none."""
        latest = max((each for each in self._slices if each <= epoch), default=None)
        return 0 if latest is None else self._slices[latest].get(quota, 0)

    def last_slices(self, epoch: int) -> dict[Quota, int]:
        """All of them."""
        latest = max((each for each in self._slices if each <= epoch), default=None)
        return {} if latest is None else self._slices[latest]

    def restore(self, slices: dict[Quota, int]) -> None:
        """Take the last slices of a former process of this edge. They are no right to spend any label: only what
        `last_slice` names.
        """
        self._slices = {0: slices}

    def relabel(self, shift: int) -> None:
        """Every epoch so far was counted by this edge alone: `shift` later is what the region calls it."""
        for holding in self._by_key.values():
            holding.relabel(shift)

    def sliced_epochs(self, epoch: int) -> list[int]:
        """Epochs from `epoch` on of which slices are here, in order."""
        return sorted(each for each in self._slices if each >= epoch)

    def sliced(self, epoch: int, early: bool) -> Iterator[Holding]:
        """Holdings with a slice of `epoch`, the present one or later, that came by the present stream, begun where the
        epoch has; `early`: but those whose slices are kept.
        """
        kept = self._kept.get(epoch)
        if kept is None:
            return
        for quota in self._slices[epoch]:
            holding = self._by_quota.get(quota)
            if holding is None or (early and quota in kept):
                continue
            self._begin(holding, epoch)
            if holding.budget is not None:
                yield holding

    def spared(self, epoch: int) -> Iterator[Holding]:
        """Those that `sliced(epoch, early=True)` leaves out though their slices came before the epoch."""
        if epoch == self._came_late:
            return
        kept = self._kept.get(epoch, frozenset())
        for quota in self._slices[epoch] if kept else ():
            holding = self._by_quota.get(quota) if quota in kept else None
            if holding is not None:
                self._begin(holding, epoch)
                if holding.budget is not None:
                    yield holding

    def disown(self, now_ns: int) -> None:
        """Nothing of slices that came may be spent any more."""
        self._slices = {each: {} for each in self._slices}
        for holding in self._by_key.values():
            if holding.budget is not None:
                holding.budget.give_up(holding.budget.units, now_ns)

    def forget_idle(self, epoch: int, now_ns: int) -> None:
        """Forget what has not been used for IDLE_EPOCHS; costs as much as was used in the epochs that are judged."""
        while self._by_key:
            key, holding = next(iter(self._by_key.items()))
            if holding.looked_at > epoch - IDLE_EPOCHS:
                break
            if holding.idle(epoch, now_ns):
                del self._by_key[key]
                self._by_quota.pop(holding.quota, None)
                self._shadows -= holding.rule.shadow
            else:
                holding.looked_at = epoch
                self._by_key.move_to_end(key)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)


def limit_of(rule: Rule) -> RateLimit:
    """The limit of a rule that has one."""
    assert isinstance(rule.limit, RateLimit), "of a rule without a limit nothing is held"
    return rule.limit


def declare(holdings: Iterable[Holding], stream: int) -> tuple[QuotaName, ...]:
    """Declarations that must go with a message on `stream` that names `holdings`; counted as made."""
    names = []
    for holding in holdings:
        if holding.stream != stream:
            holding.stream = stream
            names.append(QuotaName(holding.id, holding.quota))
    return tuple(names)
