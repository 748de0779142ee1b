"""The streams a region holds: edges and allocators, each with the names it declared and the names declared to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from apportion.core.allocator_messages import AllocatorHello, Holder, Plan
from apportion.core.messages import Hello, Ids, Quota, QuotaName, Refused
from apportion.core.space_saving import Counted
from apportion.region.events import Close, Command, Send
from apportion.region.quotas import QuotaTable

NAMES_MAX = 1 << 20
"""Names one peer may have declared at once on a stream."""

UNKNOWN = 2**32 - 1
"""In place of an id of this region: no quota. Above every id of the wire."""

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
        self.attached_epoch = 0
        self.returns = 0  # number of the latest
        self.crossings = 0
        self.degraded = 0
        self.demand: dict[int, int] = {}
        self.demand_epoch = 0
        self.most_refused: tuple[Counted[Quota], ...] = ()
        self.rules_version = 0  # acknowledged

    @property
    def incarnation(self) -> int:
        """The edge process that speaks here."""
        return self.hello.incarnation

    def holder(self) -> Holder:
        """This edge as the leader sees it."""
        return Holder(self.hello.incarnation, self.hello.edge, self.hello.location, replica=False)


class AllocatorSession:
    """One allocator's stream."""

    def __init__(self, session: int, hello: AllocatorHello) -> None:
        self.session = session
        self.hello = hello
        self.declared = Declared()
        self._names: dict[int, Quota] = {}

    def learn(self, names: tuple[QuotaName, ...]) -> None:
        """Take the allocator's declarations."""
        self._names.update((name.id, name.quota) for name in names)

    def localizer(self, plan: Plan, table: QuotaTable) -> Callable[[Ids], Ids]:
        """Translates the ids of `plan` to this region's; UNKNOWN for what limits nothing here or was never declared.

        Looked up by name for each plan, which also keeps a planned quota from being forgotten: an id kept from an
        earlier plan may mean another quota by now.
        """
        used = np.unique(np.concatenate([plan.held_ids, plan.slowed_ids, *(column.ids for column in plan.columns)]))
        local = np.full(int(used.max()) + 1 if len(used) else 0, UNKNOWN, np.uint32)
        for identity in used.tolist():
            quota = self._names.get(identity)
            known = table.recall(quota, plan.epoch) if quota is not None else None
            if known is not None:
                local[identity] = known.id
        return lambda ids: local[ids]


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


def refuse(session: int, reason: str, retry: bool) -> list[Command]:
    """Say why the stream ends, and end it. `retry`: whether to come again with the same."""
    return [Send(session, Refused(reason, retry)), Close(session)]
