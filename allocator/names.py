"""What the leader calls quotas, by dense ids of its own, and what each link's peer calls them.

An id is used again only `EPOCHS_RESTED` epochs after its quota was last heard of, so no plan that may still be sent
again refers to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from apportion.allocator.fill import Indexes
from apportion.core.messages import Ids, Quota, QuotaName

NAMES_MAX = 1 << 20
"""Quotas named at once, and names that one peer may declare; a further quota is not divided, so it is lent directly."""

PEER_ID_MAX = (1 << 24) - 1
"""Largest id of the wire."""

EPOCHS_RESTED = 16
"""Epochs between the last word of a quota and another use of its id: more than history and plans remember."""

UNKNOWN = -1
"""In place of an id of ours: not looked up yet, or never declared."""

IGNORED = -2
"""In place of an id of ours: looked up, and nothing that is divided, or there was no room."""


class Names:
    """The leader's ids. `stamps[id]` changes whenever `id` gets a new meaning; 0 = it has none."""

    def __init__(self, names_max: int = NAMES_MAX) -> None:
        self._names_max = names_max
        self._ids: dict[Quota, int] = {}
        self._quotas: list[Quota | None] = []
        self._free: deque[int] = deque()
        self._given = 0
        self._heard: Indexes = np.zeros(0, np.int64)
        self._stamps: Indexes = np.zeros(0, np.int64)

    def __len__(self) -> int:
        """How many ids there are, used or not: every id is below."""
        return len(self._quotas)

    def intern(self, quota: Quota, epoch: int) -> int:
        """The id of `quota`, a new one if it has none; IGNORED when there is no room."""
        known = self._ids.get(quota)
        if known is not None:
            return known
        if self._free:
            given = self._free.popleft()
        elif len(self._quotas) < self._names_max:
            given = len(self._quotas)
            self._quotas.append(None)
            self._heard, self._stamps = _sized(self._heard, given + 1, 0), _sized(self._stamps, given + 1, 0)
        else:
            return IGNORED
        self._given += 1
        self._ids[quota] = given
        self._quotas[given], self._heard[given], self._stamps[given] = quota, epoch, self._given
        return given

    def quota(self, identity: int) -> Quota:
        """What `identity` means now."""
        quota = self._quotas[identity]
        assert quota is not None, "an id is read only while it means something"
        return quota

    def named(self) -> Sequence[tuple[int, Quota]]:
        """Every id that means something, with its quota."""
        return [(identity, quota) for quota, identity in self._ids.items()]

    def hear(self, ids: Indexes, epoch: int) -> None:
        """Note that these quotas were spoken of in `epoch`."""
        self._heard[ids] = np.maximum(self._heard[ids], epoch)

    def retire(self, uses: Indexes, epoch: int) -> Indexes:
        """Free the ids without uses that were not heard of for EPOCHS_RESTED epochs; returns them."""
        size = len(self._quotas)
        rested = (uses == 0) & (self._stamps[:size] > 0) & (self._heard[:size] < epoch - EPOCHS_RESTED)
        retired = np.flatnonzero(rested)
        for identity in retired.tolist():
            del self._ids[self.quota(identity)]
            self._quotas[identity] = None
            self._free.append(identity)
        self._stamps[retired] = 0
        return retired

    def stamps(self, ids: Indexes) -> Indexes:
        """The present stamp of each id."""
        return self._stamps[ids]


class Declared:
    """Which of the leader's names one peer knows."""

    def __init__(self) -> None:
        self._stamps: Indexes = np.zeros(0, np.int64)

    def declare(self, names: Names, ids: Indexes) -> tuple[QuotaName, ...]:
        """What must be declared before the peer can read `ids`, each once; it counts as declared from here on."""
        self._stamps = _sized(self._stamps, len(names), 0)
        stamps = names.stamps(ids)
        new = self._stamps[ids] != stamps
        self._stamps[ids[new]] = stamps[new]
        return tuple(QuotaName(identity, names.quota(identity)) for identity in ids[new].tolist())


class Heard:
    """What one peer calls quotas."""

    def __init__(self) -> None:
        self._quotas: dict[int, Quota] = {}
        self._ours: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def learn(self, declared: tuple[QuotaName, ...]) -> int:
        """Take a peer's declarations; returns how many were refused for want of room."""
        refused = 0
        for name in declared:
            if name.id > PEER_ID_MAX or (name.id not in self._quotas and len(self._quotas) >= NAMES_MAX):
                refused += 1
                continue
            self._quotas[name.id] = name.quota
            self._ours = _sized(self._ours, name.id + 1, UNKNOWN)
            self._ours[name.id] = UNKNOWN
        return refused

    def translate(self, ids: Ids, intern: Callable[[Quota], int]) -> Indexes:
        """Our ids for the peer's; UNKNOWN or IGNORED where there is none. `intern` says what ours is, once for each."""
        theirs = ids.astype(np.int64)
        inside = theirs < len(self._ours)
        if inside.all():
            ours = self._ours[theirs]
        else:
            ours = np.full(len(theirs), UNKNOWN, np.int64)
            ours[inside] = self._ours[theirs[inside]]
        unknown = ours == UNKNOWN
        for at in np.flatnonzero(unknown).tolist() if unknown.any() else ():
            quota = self._quotas.get(int(theirs[at]))
            if quota is not None:
                ours[at] = self._ours[theirs[at]] = intern(quota)
        return ours

    def forget(self, retired: Indexes) -> None:
        """These ids of ours mean nothing any more; what was ignored may find room now."""
        if len(retired):
            self._ours[np.isin(self._ours, retired) | (self._ours == IGNORED)] = UNKNOWN

    def reset(self) -> None:
        """Ask `intern` again for every name."""
        self._ours[:] = UNKNOWN


def _sized(values: Indexes, size: int, fill: int) -> Indexes:
    """`values` grown to at least `size` by `fill`, doubling so that growing stays cheap."""
    if size <= len(values):
        return values
    return np.concatenate([values, np.full(max(size, 2 * len(values)) - len(values), fill, np.int64)])
