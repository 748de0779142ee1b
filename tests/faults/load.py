"""What is asked in the fault world: random requests at random edges, by rules and rates that a seed chose."""

from __future__ import annotations

from functools import partial

from tests.faults.rules import application
from tests.faults.world import SECOND, World

RATES = {
    "both": 80,
    "each": 60,
    "exact": 40,
    "fair": 90,
    "fifty": 50,
    "hundred": 100,
    "keep": 70,
    "odd": 22,
    "pair": 15,
    "part": 48,
    "planned": 60,
    "shade": 25,
    "slow": 2,
    "spread": 160,
    "veil": 60,
}
"""Limits in units a second."""

FACTORS = {"fifty": (1.0, 2.5, 4.0), "hundred": (0.3, 0.8, 1.3)}
"""Demand as a multiple of the limit, where it is not the usual; `fifty` may be spent in an instant, so it is hot."""

MEAN_COST = 1.8

TOGETHER = (
    ("exact", "hundred"),
    ("fifty", "hundred"),
    ("free", "odd"),
    ("exact", "fifty", "odd"),
    ("fifty", "slow"),
    ("both", "each"),
    ("keep", "part"),
    ("both", "hundred"),
    ("exact", "spread"),
    ("exact", "shade"),
    ("planned", "exact"),
    ("hundred", "shade", "veil"),
)


class Load:
    """Poisson requests for single rules until `until_ns`; unless `factor` sets their demand, some for several rules."""

    def __init__(self, world: World, until_ns: int, factor: float | None = None) -> None:
        self.world = world
        self.until_ns = until_ns
        random = world.random
        self._possible = factor is not None
        self._fresh_ns = 0 if factor else random.choice((0, 0, 1_300_000_000))
        self._edges = range(len(world.edges))
        self.factors = {name: factor or random.choice(FACTORS.get(name, (0.3, 1.0, 1.4, 2.2))) for name in RATES}
        self._skew = {name: [random.random() ** 3 + 0.02 for _ in self._edges] for name in RATES}
        for name, rate in RATES.items():
            self._later(partial(self._single, name), rate * self.factors[name] / MEAN_COST)
        if factor is None:
            self._later(self._several, 10.0)

    def _later(self, work: partial[None] | object, rate: float) -> None:
        assert callable(work)
        when = self.world.now_ns + int(self.world.random.expovariate(rate) * SECOND)
        if when < self.until_ns:
            self.world.at(when, partial(self._again, work, rate))

    def _again(self, work: object, rate: float) -> None:
        assert callable(work)
        if self.world.now_ns > 1.5 * SECOND or self.world.random.random() < 0.5:  # nobody leads yet
            work()
        self._later(work, rate)

    def _cost(self) -> int:
        random = self.world.random
        kind = random.random()
        if kind < 0.6:
            return 1
        return random.randrange(1, 6) if kind < 0.995 else random.choice((0, 20, 200, 2**64 - 1))

    def _key(self) -> str:
        """One key, or a fresh one from time to time: nobody has planned for it yet, so it is lent directly."""
        return f"k{self.world.now_ns // self._fresh_ns}" if self._fresh_ns else "k"

    def _single(self, name: str) -> None:
        at = self.world.random.choices(self._edges, self._skew[name])[0]
        cost = min(self._cost(), 5) if self._possible else self._cost()
        self.world.edges[at].ask((application(name, cost, self._key()),))

    def _several(self) -> None:
        random = self.world.random
        names = random.choice(TOGETHER)
        applications = tuple(application(name, self._cost(), self._key()) for name in names)
        random.choice(self.world.edges).ask(applications, peek=random.random() < 0.2)
