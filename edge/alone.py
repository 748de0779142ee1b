"""A whole edge without a region: one location, every limit local (`apportion edge --alone`, and tests of the doors).

Rules that would cross are decided here too, by exact buckets and counts of this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apportion.core.bounds_period import refuse_unkept
from apportion.core.decision import Decision
from apportion.core.engine import KEYS_MAX, Engine
from apportion.core.errors import InputError
from apportion.core.match import Matcher
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.edge.decider import Gauges

TIDY_STEPS = 1_000
"""Buckets of a domain looked at by one `tidy`: less than a millisecond, and a million in less than two minutes."""


class Alone:
    """A `Decider` over the engine. `clock` gives nanoseconds that do not go back, `wall_clock` those since 1970 UTC, by
    which calendars go; not safe for threads.
    """

    def __init__(
        self,
        rules: RuleSet,
        clock: Callable[[], int],
        keys_max: int = KEYS_MAX,
        *,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        if not rules.domains:
            raise InputError("the rules name no domain, so nothing could be decided; write at least one rules file")
        refuse_unkept(rules.rules, "by an edge alone")
        self._clock = clock
        self._wall_clock = wall_clock
        self._engines = {name: Engine(domain, keys_max) for name, domain in rules.domains.items()}
        self._matchers = {name: Matcher(domain) for name, domain in rules.domains.items()}

    @property
    def ready(self) -> bool:
        """Always: nobody else is needed."""
        return True

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that there are rules for, sorted."""
        return tuple(sorted(self._matchers))

    def matcher(self, domain: str) -> Matcher | None:
        """The compiled rules of `domain`; "" names the only one."""
        if not domain and len(self._matchers) == 1:
            return next(iter(self._matchers.values()))
        return self._matchers.get(domain)

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:
        """Decide a request, at once. Its applications are of one domain."""
        engine = self._engines[applications[0].rule.domain]
        return engine.decide_applications(applications, self._clock(), peek, self._wall_clock())

    def tidy(self) -> None:
        """Forget some buckets that are full again. Called ten times a second, so that memory goes back while nobody
        asks.
        """
        for engine in self._engines.values():
            engine.sweep(self._clock(), TIDY_STEPS)

    def gauges(self) -> Gauges:
        """What a scrape sees beside the counts."""
        return Gauges(holdings=sum(engine.keys for engine in self._engines.values()))
