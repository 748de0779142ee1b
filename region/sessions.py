"""The streams a region holds: edges and allocators, each with the names it declared and the names declared to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from apportion.core.messages import AllocatorHello, Hello, Holder, Ids, Quota, QuotaName
from apportion.region.quotas import QuotaTable

NAMES_MAX = 1 << 20
"""Names one peer may have declared at once on a stream."""

SUPERSEDED_KEPT = 1_000
"""Incarnations remembered as replaced by a newer process with the same --id."""


class EdgeSession:
    """One edge's stream."""

    def __init__(self, session: int, hello: Hello) -> None:
        self.session = session
        self.hello = hello
        self.names: dict[int, Quota] = {}
        self.declared = Declared()
        self.last_report = 0
        self.crossings = 0
        self.degraded = 0
        self.demand: dict[int, int] = {}
        self.demand_epoch = 0

    @property
    def incarnation(self) -> int:
        """The edge process that speaks here."""
        return self.hello.incarnation

    def holder(self) -> Holder:
        """This edge as the leader sees it."""
        return Holder(self.hello.incarnation, self.hello.edge, self.hello.location, replica=False)


class AllocatorSession:
    """One allocator's stream. `to_local[id]` is this region's id of the quota that the allocator calls `id`."""

    def __init__(self, session: int, hello: AllocatorHello) -> None:
        self.session = session
        self.hello = hello
        self.declared = Declared()
        self.to_local: Ids = np.empty(0, np.uint32)

    def learn(self, names: tuple[QuotaName, ...], table: QuotaTable, epoch: int) -> str | None:
        """Take the allocator's declarations; a text when one names no limited quota."""
        if not names:
            return None
        size = max(name.id for name in names) + 1
        if size > len(self.to_local):
            self.to_local = np.concatenate([self.to_local, np.zeros(size - len(self.to_local), np.uint32)])
        for name in names:
            known = table.find(name.quota, epoch)
            if known is None:
                return f"the plan names {name.quota.rule}, which limits nothing here"
            self.to_local[name.id] = known.id
        return None


class Declared:
    """Which of this region's ids a peer has been told the meaning of."""

    def __init__(self) -> None:
        self._flags: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def names_for(self, ids: Ids, table: QuotaTable) -> tuple[QuotaName, ...]:
        """Declarations that must go with a message that uses `ids`; counted as made."""
        if not len(ids):
            return ()
        size = int(ids.max()) + 1
        if size > len(self._flags):
            self._flags = np.concatenate([self._flags, np.zeros(size - len(self._flags), np.bool_)])
        new = np.unique(ids[~self._flags[ids]])
        self._flags[new] = True
        known = ((identity, table.by_id(identity)) for identity in new.tolist())
        return tuple(QuotaName(identity, found.quota) for identity, found in known if found is not None)

    def forget(self, identity: int) -> None:
        """That id will mean another quota."""
        if identity < len(self._flags):
            self._flags[identity] = False
