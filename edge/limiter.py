"""The limiter inside a process: rules from files, decisions without any other process. The shell around `core.engine`.

It brings what the engine must not have: a clock, files, and exclusion between threads. The numbers are this process's
own: several processes with the same rules admit several times as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from apportion.core.bounds_period import refuse_unkept
from apportion.core.decision import Decision
from apportion.core.engine import KEYS_MAX, Engine
from apportion.core.errors import InputError
from apportion.core.limit import PeriodLimit
from apportion.core.plans import shown_value
from apportion.core.request import COST_MAX, MEASURE_NAME_MAX, MEASURES_MAX, Cost
from apportion.core.rule import Domain, RuleSet
from apportion.core.rules_file import parse_rules
from apportion.rules_path import read_rule_texts

if TYPE_CHECKING:
    from apportion.edge.connected import ConnectedLimiter

CONTENDED_PAUSE_S = 20e-6
"""Sleep of a thread that finds another one in the middle of a decision, which takes about a microsecond."""

DOMAINS_SHOWN_MAX = 20
"""Domains that an error names."""

RulesPath = str | PathLike[str]


class _CalendarEngine(Engine):
    """An engine that reads the wall clock for each decision, which those with rates alone would feel."""

    __slots__ = ("_wall_clock",)

    def __init__(self, domain: Domain, keys_max: int, wall_clock: Callable[[], int]) -> None:
        super().__init__(domain, keys_max)
        self._wall_clock = wall_clock

    def decide(
        self, dimensions: Mapping[str, str], cost: int | None, now_ns: int, peek: bool = False, wall_ns: int = 0
    ) -> Decision:
        return super().decide(dimensions, cost, now_ns, peek, self._wall_clock())

    def decide_measures(
        self,
        dimensions: Mapping[str, str],
        costs: Mapping[str, int],
        now_ns: int,
        peek: bool = False,
        wall_ns: int = 0,
    ) -> Decision:
        return super().decide_measures(dimensions, costs, now_ns, peek, self._wall_clock())


def _counts_periods(domain: Domain) -> bool:
    """Whether any rule has a quota of a period, on any plan."""
    return any(isinstance(rule.limit, PeriodLimit) for each in domain.rules for rule in each.on_plans)


class Limiter:
    """Decides requests by rules, in this process. Safe for threads; a decision blocks for microseconds.

    >>> limiter = Limiter.from_rules("rules.yaml")
    >>> if not limiter.decide({"tenant": "contoso", "api": "search"}):
    ...     ...  # answer 429
    """

    def __init__(
        self,
        rules: RuleSet,
        clock: Callable[[], int] = time.monotonic_ns,
        keys_max: int = KEYS_MAX,
        *,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`clock` gives nanoseconds that do not go back, `wall_clock` those since 1970 UTC, by which calendars go;
        `keys_max` bounds what each domain remembers.
        """
        if not rules.domains:
            raise InputError("the rules name no domain, so nothing could be decided; write at least one rules file")
        refuse_unkept(rules.rules, "in this process")
        self._engines = {
            name: _CalendarEngine(domain, keys_max, wall_clock) if _counts_periods(domain) else Engine(domain, keys_max)
            for name, domain in rules.domains.items()
        }
        self._only = next(iter(self._engines.values())) if len(self._engines) == 1 else None
        self._clock = clock
        # Exclusion by taking the second thing out of a list: that is atomic, and costs a third of taking a Lock, which
        # would be a seventh of the whole decision. (The first stays, so that the list keeps its memory.) It is taken by
        # `del` because Python runs signal handlers after a call, not after a `del`: what a handler raises between a
        # call and the `try` behind it would leave it taken for ever.
        self._free = [None, None]

    @staticmethod
    def connect(
        address: str, when_unreachable: Literal["allow", "deny"] | None = None, timeout_s: float = 0.2
    ) -> ConnectedLimiter:
        """A limiter that asks the edge agent whose `--rls` is `address`, HOST:PORT or unix:PATH.

        `when_unreachable` has no default: it says what is answered where no answer comes within `timeout_s`. Nothing
        is connected before the first decision, so a server may call this before it forks. InputError for wrong values.
        """
        from apportion.edge.connected import ConnectedLimiter  # who decides in process need not load gRPC

        return ConnectedLimiter(address, when_unreachable, timeout_s)

    @classmethod
    def from_rules(
        cls,
        paths: RulesPath | Iterable[RulesPath],
        clock: Callable[[], int] = time.monotonic_ns,
        *,
        keys_max: int = KEYS_MAX,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> Self:
        """A limiter by the rules at `paths`: one file, one folder, or several of either.

        Raises InputError naming the path that cannot be read, RulesError with every problem of the files.
        """
        given = (paths,) if isinstance(paths, str | PathLike) else tuple(paths)
        rules = parse_rules([text for path in given for text in read_rule_texts(Path(path))])
        return cls(rules, clock, keys_max, wall_clock=wall_clock)

    def decide(
        self, request: Mapping[str, str], cost: Cost = None, domain: str | None = None, peek: bool = False
    ) -> Decision:
        """Whether `request`, a mapping of dimensions to values, may pass; it is charged if it may.

        `cost` in requests, None = each rule's default, 0 = a peek; or units by measure, such as {"requests": 1,
        "tokens": 350}, where a measure that a rule counts and the request does not name costs the rule's default.
        `peek` charges nothing whatever the cost; `domain` may be left out when the rules have only one. A refusal is an
        answer: only wrong input raises, InputError.
        """
        # Pass domain and peek by name. The signature does not insist, for that alone would cost 60 ns.
        engine = self._only
        if domain is not None or engine is None:
            engine = self._engine(domain)
        if cost is not None and (cost.__class__ is not int or not 0 <= cost <= COST_MAX):
            cost = checked_costs(cost)
            if not isinstance(cost, int):
                return self._decide_measures(engine, request, cost, peek)
        try:
            del self._free[1]
        except IndexError:
            self._wait()
        try:
            return engine.decide(request, cost, self._clock(), peek, 0)  # a call with all arguments is quicker
        finally:
            self._free.append(None)

    async def decide_async(
        self, request: Mapping[str, str], cost: Cost = None, domain: str | None = None, peek: bool = False
    ) -> Decision:
        """As `decide`. It does not wait for anything, so it does not yield to the event loop either."""
        return self.decide(request, cost, domain=domain, peek=peek)

    def _decide_measures(
        self, engine: Engine, request: Mapping[str, str], costs: Mapping[str, int], peek: bool
    ) -> Decision:
        try:
            del self._free[1]
        except IndexError:
            self._wait()
        try:
            return engine.decide_measures(request, costs, self._clock(), peek)
        finally:
            self._free.append(None)

    def close(self) -> None:
        """Let go of what it holds: nothing here, connections where it is connected."""

    async def close_async(self) -> None:
        """As `close`, from a coroutine."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close_async()

    def _engine(self, domain: str | None) -> Engine:
        """The engine of `domain`. Raises InputError when there is none, or none is named and there are several."""
        known = ", ".join(map(repr, sorted(self._engines)[:DOMAINS_SHOWN_MAX]))
        if domain is None:
            raise InputError(f"the rules have several domains; name one: domain= one of {known}")
        engine = self._engines.get(domain) if domain.__class__ is str else None
        if engine is None:
            raise InputError(f"domain {shown_value(domain)} is in none of the rules; there is {known}")
        return engine

    def _wait(self) -> None:
        """Take what excludes others when whoever has it puts it back."""
        while True:
            time.sleep(CONTENDED_PAUSE_S)
            try:
                del self._free[1]
                return
            except IndexError:
                continue


def checked_costs(cost: object) -> int | dict[str, int]:
    """`cost` as an int, for what is one without being of that very type, or as units by measure. Raises InputError for
    everything else.
    """
    if not isinstance(cost, Mapping):
        return _checked_units(cost, "cost", "leave it out for the rule's default")
    if len(cost) > MEASURES_MAX:
        raise InputError(f"cost names {len(cost)} measures, the most is {MEASURES_MAX}")
    for measure in cost:
        if not isinstance(measure, str) or not 0 < len(measure) <= MEASURE_NAME_MAX:
            raise InputError(
                f"cost names the measure {shown_value(measure)}; a measure is a text of 1 to {MEASURE_NAME_MAX} "
                "characters, such as 'tokens'"
            )
    return {
        measure: _checked_units(units, f"cost[{measure!r}]", "leave it out for each rule's default")
        for measure, units in cost.items()
    }


def _checked_units(units: object, what: str, hint: str) -> int:
    if isinstance(units, bool) or not isinstance(units, int):
        raise InputError(f"{what} is a whole number of units, not {shown_value(units)}; {hint}")
    if units < 0:
        raise InputError(f"{what} {shown_value(units)} is below 0; units are never given back by a request")
    if units > COST_MAX:
        raise InputError(
            f"{what} {shown_value(units)} is above {COST_MAX}, the largest there is; no limit admits as much"
        )
    return int(units)
