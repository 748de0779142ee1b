"""The replica's view of the register, and the changes it wants: one compare-and-set at a time, tried again when it
lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from apportion.core.messages import Register
from apportion.core.value import value
from apportion.region.events import Swapped, SwapRegister
from apportion.region.register import lead

Transition = Callable[[Register, int], Register | None]
"""The register after a change at a store time; None = refused."""

WAITING_MAX = 64
"""Changes waiting; more than any number of allocators asks for in a second."""


@value
class Change:
    """A wanted change. `session` is the allocator to be told, None for the replica's own."""

    transition: Transition
    session: int | None


@value
class Settled:
    """A change that took effect, or never will."""

    change: Change
    done: bool


class Registrar:
    """Holds `register`, the latest copy seen. `ask` and `swapped` return the compare-and-set to do next, if any."""

    def __init__(self, register: Register) -> None:
        self.register = register
        self._waiting: deque[Change] = deque()
        self._asked: tuple[int, Register] | None = None
        self._requests = 0

    def ask(self, transition: Transition, session: int | None, now_ns: int) -> tuple[list[Settled], list[SwapRegister]]:
        """Want a change; it is settled at once when refused by the copy at hand and nothing is in flight."""
        if len(self._waiting) >= WAITING_MAX:
            return [Settled(Change(transition, session), done=False)], []
        self._waiting.append(Change(transition, session))
        return self._next(now_ns)

    def swapped(self, event: Swapped, now_ns: int) -> tuple[list[Settled], list[SwapRegister]]:
        """The store answered; a change that lost against another writer is tried again on the register as it is now."""
        if self._asked is None or self._asked[0] != event.request:
            return [], []
        self._asked = None
        settled = []
        if event.register is not None:
            self.register = event.register
        if event.done or event.register is None:
            settled.append(Settled(self._waiting.popleft(), event.done))
        more, commands = self._next(now_ns)
        return settled + more, commands

    def _next(self, now_ns: int) -> tuple[list[Settled], list[SwapRegister]]:
        settled: list[Settled] = []
        while self._waiting and self._asked is None:
            new = self._waiting[0].transition(self.register, now_ns)
            if new is None:
                settled.append(Settled(self._waiting.popleft(), done=False))
                continue
            self._requests += 1
            self._asked = (self._requests, new)
            return settled, [SwapRegister(self._requests, self.register, new)]
        return settled, []


def is_lead(change: Change) -> bool:
    """Whether the change is somebody taking the lead."""
    return isinstance(change.transition, partial) and change.transition.func is lead
