"""The quotas a region knows by name: the id each has on outgoing streams, its rule, its store key, its part of the
pool.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator

from apportion.core.budget import Budget
from apportion.core.key import encode_quota
from apportion.core.limit import RateLimit
from apportion.core.messages import Quota
from apportion.core.rule import Rule, RuleSet

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
    one.
    """

    __slots__ = ("id", "limit", "pool", "quota", "rule", "store_key", "used")

    def __init__(self, identity: int, quota: Quota, rule: Rule, limit: RateLimit) -> None:
        self.id = identity
        self.quota = quota
        self.rule = rule
        self.limit = limit
        self.store_key = encode_quota(quota.domain, quota.rule, quota.key)
        self.pool: Budget | None = None
        self.used = 0


class QuotaTable:
    """Quotas by name and by id. A plan holds its quotas by id, so none is forgotten while a plan could name it."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = {(d.name, rule.name): rule for d in rules.domains.values() for rule in d.rules}
        self._by_name: OrderedDict[Quota, KnownQuota] = OrderedDict()
        self._by_id: list[KnownQuota | None] = []
        self._resting: deque[tuple[int, int]] = deque()

    def find(self, quota: Quota, epoch: int) -> KnownQuota | None:
        """The quota, known from now on; None when no rule of that name limits anything here, or the table is full."""
        known = self._by_name.get(quota)
        if known is None:
            rule = self._rules.get((quota.domain, quota.rule))
            if rule is None or not isinstance(rule.limit, RateLimit) or len(self._by_name) >= QUOTAS_MAX:
                return None
            identity = self._new_id(epoch)
            if identity is None:
                return None
            known = KnownQuota(identity, quota, rule, rule.limit)
            self._by_name[quota] = known
            self._by_id[known.id] = known
        if known.used < epoch:
            known.used = epoch
            self._by_name.move_to_end(quota)
        return known

    def by_id(self, identity: int) -> KnownQuota | None:
        """The quota with that id."""
        return self._by_id[identity] if identity < len(self._by_id) else None

    def forget_idle(self, epoch: int) -> list[int]:
        """Forget what nobody named for IDLE_EPOCHS; returns the ids that will mean other quotas one day."""
        freed = []
        while self._by_name:
            oldest = next(iter(self._by_name.values()))
            if oldest.used > epoch - IDLE_EPOCHS:
                break
            del self._by_name[oldest.quota]
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
