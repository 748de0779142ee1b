"""A decider that counts what another one decides: the one place where every door's decisions are counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from apportion.core.decision import Decision, Verdict
from apportion.core.match import Matcher
from apportion.core.request import Application
from apportion.edge.counts import Counts
from apportion.edge.decider import Decider


@runtime_checkable
class Shadowing(Protocol):
    """A decider that tells later what shadow rules say that no decision waited for."""

    shadowed: Callable[[Verdict], object]


class Counted:
    """Passes everything on to `decider` and counts what it answers in `counts`, and what its shadow rules say later."""

    def __init__(self, decider: Decider) -> None:
        self.counts = Counts()
        self._decider = decider
        if isinstance(decider, Shadowing):
            decider.shadowed = self.counts.shadowed

    @property
    def ready(self) -> bool:
        """As the decider says."""
        return self._decider.ready

    @property
    def domains(self) -> tuple[str, ...]:
        """As the decider says."""
        return self._decider.domains

    def matcher(self, domain: str) -> Matcher | None:
        """As the decider says."""
        return self._decider.matcher(domain)

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        """As the decider does."""
        began_ns = time.perf_counter_ns()
        try:
            decided = self._decider.decide(applications, peek)
        except Exception:
            self.counts.failed += 1
            raise
        if isinstance(decided, Decision):
            self.counts.decided(decided, peek, time.perf_counter_ns() - began_ns)
            return decided
        return self._settled(decided, peek, began_ns)

    async def _settled(self, decided: Awaitable[Decision], peek: bool, began_ns: int) -> Decision:
        try:
            decision = await decided
        except asyncio.CancelledError:  # the caller went away: whether it was charged, nobody was told
            self.counts.abandoned += 1
            raise
        except Exception:
            self.counts.failed += 1
            raise
        self.counts.decided(decision, peek, time.perf_counter_ns() - began_ns)
        return decision
