"""The quotas a region knows by name: the id each has on outgoing streams, its rule, its store key, its part of the
pool.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator

from apportion.core.budget import Budget
from apportion.core.key import encode_quota
from apportion.core.limit import EPOCH_NS, Finite, RateLimit
from apportion.core.messages import Quota
from apportion.core.rule import Rule
from apportion.core.stages import admits
from apportion.region.versions import Lookup

QUOTAS_MAX = 1_000_000
"""Quotas known at once; about 600 bytes each. A further one is not taken in until others are forgotten."""

IDLE_EPOCHS = 30
"""A quota unused for so long is forgotten: longer than any plan or answer that could still name it."""

REST_EPOCHS = 1_000
"""The id of a forgotten quota rests for so long before it means another: longer than any book in which it stands."""

ID_MAX = 2**24 - 1
"""The largest id that the wire carries."""


class KnownQuota:
    """One quota. `used` is the last epoch in which anybody named it; `pool` this replica's part, None until it has
    one. `limited`: false once no rule limits it any more; `rule` and `limit` are then those of before.
    """

    __slots__ = ("_slower", "for_leader", "id", "limit", "limited", "pool", "quota", "rule", "store_key", "used")

    def __init__(self, identity: int, quota: Quota, rule: Rule, limit: Finite) -> None:
        self.id = identity
        self.quota = quota
        self.rule = rule
        self.limit = limit
        self.limited = True
        self.store_key = encode_quota(quota.domain, quota.rule, quota.key)
        self.pool: Budget | None = None
        self.used = 0
        self._slower = (0, limit)
        self.for_leader = rule.planned or (admits(rule) and not rule.local and isinstance(limit, RateLimit))

    def slower(self, units: int) -> Finite:
        """The limit filled by `units` less each epoch, but by one a period at least: a rate of 0 would promise nothing.
        The same object for the same units: a store compares by identity first. An allowance does not fill.
        """
        if self._slower[0] != units and isinstance(self.limit, RateLimit):
            less = units * self.limit.period_ns // EPOCH_NS
            limit = RateLimit(max(self.limit.units - less, 1), self.limit.period_ns, self.limit.burst)
            self._slower = (units, limit)
        return self._slower[1] if units else self.limit

    @property
    def rate(self) -> RateLimit:
        """The limit of a quota that is divided: only rates are."""
        assert isinstance(self.limit, RateLimit)
        return self.limit


class QuotaTable:
    """Quotas by name and by id. A plan holds its quotas by id, so none is forgotten while a plan could name it."""

    def __init__(self, rules: Lookup) -> None:
        self._rules = rules
        self._by_name: OrderedDict[Quota, KnownQuota] = OrderedDict()
        self._by_id: list[KnownQuota | None] = []
        self._by_store_key: dict[bytes, KnownQuota] = {}
        self._resting: deque[tuple[int, int]] = deque()

    def find(self, quota: Quota, epoch: int) -> KnownQuota | None:
        """The quota, known from now on; None when no rule of that name limits anything here, or the table is full."""
        known = self.recall(quota, epoch)
        return known if known is not None and known.limited else None

    def recall(self, quota: Quota, epoch: int) -> KnownQuota | None:
        """As `find`, and also a quota that is known although no rule limits it any more."""
        known = self._by_name.get(quota)
        if known is None:
            limited = self._rules.find(quota)
            if limited is None or len(self._by_name) >= QUOTAS_MAX:
                return None
            identity = self._new_id(epoch)
            if identity is None:
                return None
            known = KnownQuota(identity, quota, *limited)
            self._by_name[quota] = self._by_store_key[known.store_key] = known
            self._by_id[known.id] = known
        if known.used < epoch:
            known.used = epoch
            self._by_name.move_to_end(quota)
        return known

    def adopt(self, rules: Lookup) -> None:
        """Go by other rules. A quota of the same rule name and key stays the same: its id, its counter, its pool.

        Each that changes is made anew, so that whatever is under way goes on by the limit that it began with.
        """
        self._rules = rules
        for quota, known in self._by_name.items():
            limited = rules.find(quota)
            changed = KnownQuota(known.id, quota, *(limited or (known.rule, known.limit)))
            changed.limited = limited is not None
            changed.pool, changed.used, changed.store_key = known.pool, known.used, known.store_key
            self._by_name[quota] = self._by_id[known.id] = self._by_store_key[known.store_key] = changed

    def by_id(self, identity: int) -> KnownQuota | None:
        """The quota with that id."""
        return self._by_id[identity] if identity < len(self._by_id) else None

    def by_store_key(self, store_key: bytes) -> KnownQuota | None:
        """The quota that a store files under that key."""
        return self._by_store_key.get(store_key)

    def forget_idle(self, epoch: int) -> list[int]:
        """Forget what nobody named for IDLE_EPOCHS; returns the ids that will mean other quotas one day."""
        freed = []
        while self._by_name:
            oldest = next(iter(self._by_name.values()))
            if oldest.used > epoch - IDLE_EPOCHS:
                break
            del self._by_name[oldest.quota], self._by_store_key[oldest.store_key]
            self._by_id[oldest.id] = None
            freed.append(oldest.id)
            self._resting.append((epoch, oldest.id))
        return freed

    def __iter__(self) -> Iterator[KnownQuota]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def _new_id(self, epoch: int) -> int | None:
        if self._resting and self._resting[0][0] < epoch - REST_EPOCHS:
            return self._resting.popleft()[1]
        if len(self._by_id) > ID_MAX:
            return None
        self._by_id.append(None)
        return len(self._by_id) - 1
