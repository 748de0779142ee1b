"""What every process of the fault world has: a life that can end, a pause from which it wakes, a clock of its own, and
a trap that strikes at one chosen point between two of its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apportion.simulations.world import World


class Clock:
    """A monotonic clock that started at some other time and runs at a slightly other speed."""

    def __init__(self, offset_ns: int, millionths: int) -> None:
        self.offset_ns = offset_ns
        self.millionths = millionths

    def read(self, true_ns: int) -> int:
        """What this clock shows."""
        return self.offset_ns + true_ns + true_ns * self.millionths // 1_000_000

    def step(self, by_ns: int) -> None:
        """Set it, as nothing but a fault does."""
        self.offset_ns += by_ns

    def lasting(self, shown_ns: int) -> int:
        """How much time passes while it shows that much passing."""
        return shown_ns * 1_000_000 // (1_000_000 + self.millionths)

    def when(self, shown_ns: int) -> int:
        """When it shows that, rounded up."""
        return -(-(shown_ns - self.offset_ns) * 1_000_000 // (1_000_000 + self.millionths)) + 1


@dataclass(frozen=True, slots=True)
class Trap:
    """Strikes once, when a command that `fits` is about to be performed, or has been (`after`)."""

    fits: Callable[[Any], bool]
    after: bool
    strike: Callable[[], None]


class Node:
    """A process: `handle(event)` performs what its core answers."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.life = 0
        self.up = False
        self.paused_ns = 0
        self.blocked_ns = 0
        self.trap: Trap | None = None
        self.clock = Clock(
            world.random.randrange(10**12), world.random.randint(-world.options.clock_drift, world.options.clock_drift)
        )
        self._deferred: list[Callable[[], None]] = []
        self._due_ns = 0  # when the core wants to be polled, and the earliest instant at which the world will look
        self._timer_ns: int | None = None

    @property
    def now_ns(self) -> int:
        """This node's own clock."""
        return self.clock.read(self.world.now_ns)

    def start(self) -> None:
        """Begin a life."""
        raise NotImplementedError

    def core(self, event: Any, now_ns: int) -> Sequence[Any]:
        """Hand the event to the core, at an instant of this node's clock."""
        raise NotImplementedError

    def act(self, command: Any) -> None:
        """Perform one command."""
        raise NotImplementedError

    def wake_ns(self, now_ns: int) -> int:
        """When the core wants to be polled, on this node's clock, which shows `now_ns`."""
        raise NotImplementedError

    def poll(self) -> Any:
        """The event that says that time passed."""
        raise NotImplementedError

    def feed(self, event: Any) -> None:
        """Let an event happen to this node, after its pause if it has one."""
        self._soon(partial(self._handle, event))

    def pause(self, duration_ns: int) -> None:
        """Stop for a while, as a process does whose machine is suspended; it knows nothing of it."""
        self.paused_ns = self.world.now_ns + duration_ns
        self.world.at(self.paused_ns, partial(self._wake, self.life))

    def crash(self) -> None:
        """Die at once."""
        self.up = False
        self.life += 1
        self._timer_ns = None
        self.trap = None
        self.paused_ns = 0
        self._deferred.clear()

    def _soon(self, work: Callable[[], None]) -> None:
        if not self.up:
            return
        if self.paused_ns > self.world.now_ns or self._deferred:
            self._deferred.append(work)
        else:
            work()

    def _wake(self, life: int) -> None:
        if life != self.life or self.paused_ns > self.world.now_ns:
            return
        deferred, self._deferred = self._deferred, []
        for at, work in enumerate(deferred):
            if self.life != life:
                return
            work()
            if self.paused_ns > self.world.now_ns:
                self._deferred = deferred[at + 1 :] if not self._deferred else self._deferred + deferred[at + 1 :]
                return

    def _handle(self, event: Any) -> None:
        now_ns = self.now_ns
        self.perform(self.core(event, now_ns))
        if self.up:
            self._due_ns = max(self.clock.when(self.wake_ns(now_ns)), self.world.now_ns + 1)
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer_ns is None or self._due_ns < self._timer_ns:
            self._timer_ns = self._due_ns
            self.world.at(self._timer_ns, partial(self._timed, self.life, self._timer_ns))

    def _timed(self, life: int, timer_ns: int) -> None:
        if life != self.life or timer_ns != self._timer_ns:
            return
        self._timer_ns = None
        if self._due_ns > timer_ns:
            self._set_timer()  # something has happened since, and was followed by a poll
        else:
            self.feed(self.poll())

    def perform(self, commands: Sequence[Any]) -> None:
        """Perform commands in order, as far as this life goes."""
        life = self.life
        for at, command in enumerate(commands):
            struck = self.trap is not None and self._strike(command, after=False)
            if self.life != life:
                return
            if struck and self.paused_ns > self.world.now_ns:
                self._deferred.insert(0, partial(self.perform, commands[at:]))
                return
            self.act(command)
            if self.trap is not None:
                self._strike(command, after=True)
            if self.life != life:
                return

    def _strike(self, command: Any, after: bool) -> bool:
        trap = self.trap
        if trap is None or trap.after != after or not trap.fits(command):
            return False
        self.trap = None
        trap.strike()
        return True
