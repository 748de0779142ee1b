"""One run of the fault world by its seed: what is drawn, and the verdict of the oracles."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from apportion.core.limit import RateLimit
from apportion.core.meter import Meter
from apportion.simulations.checkers import violations
from apportion.simulations.network import MS
from apportion.simulations.world import Label
from tests.faults.faults import Faults
from tests.faults.load import Load
from tests.faults.rules import RULES, load, rule
from tests.faults.unclaimed import AcceptingAuthority, unclaimed
from tests.faults.world import SECOND, Options, World

LOADED_S = 6.2
"""Requests come for so long."""

FAULTS_S = (1.0, 5.2)
"""Faults happen between these instants; then everything is up and connected, or connects."""

DRAINED_S = 2.2
"""After the last request: the longest deadline, an epoch's end, its report and the acknowledgement."""


def options_of(seed: int) -> Options:
    """A world that differs with each seed; a tenth of them speaks through the codec."""
    random = Random(f"options {seed}")
    return Options(
        edges=random.randrange(3, 6),
        allocators=random.randrange(2, 4),
        wire=seed % 10 == 0,
        repeat=random.choice((0.0, 0.1, 0.3)),
        lost_answers=random.choice((0.0, 0.005, 0.03)),
        spikes=random.choice((0.0, 0.02, 0.1)),
        delay_ns=random.choice((2, 20, 60)) * MS,
    )


def without_claim(options: Options) -> Options:
    """The same world, but anybody divides and every plan is taken."""
    return replace(options, make_leader=unclaimed, make_authority=AcceptingAuthority)


def run(seed: int, options: Options | None = None, faults: int | None = None, factor: float | None = None) -> World:
    """A world after load, faults and healing. `faults` None: 2 to 8, by the seed. `factor`: demand of each limit."""
    world = World(seed, options or options_of(seed))
    world.start()
    Load(world, int(LOADED_S * SECOND), factor)
    Faults(world, *FAULTS_S, world.random.randrange(2, 9) if faults is None else faults)
    world.run(LOADED_S + DRAINED_S)
    return world


def broken(world: World) -> dict[str, list[str]]:
    """What is wrong with a run that has ended, by the property that it breaks; empty when all holds."""
    world.recording.ended(world.now_ns, world.region.disk.rollup.rows(0), world.open_requests())
    found: dict[str, list[str]] = {}
    for each in violations(world.recording.log, load(RULES)):
        found.setdefault(each.property, []).append(str(each))
    return found


def meter(world: World, name: str, key: tuple[str, ...] = ("k",)) -> Meter:
    """The meter of one quota over all labels."""
    limited = rule(name).for_key(key)
    assert isinstance(limited.limit, RateLimit)
    found = Meter(limited.limit, limited.divided)
    for epoch, units in sorted(world.sums.spent[name, key].items()):
        found.record(epoch, units)
    return found


def worst_share(world: World) -> float:
    """The largest admitted_k / Q_k of any divided quota and label."""
    meters = [(meter(world, name, key), labels) for (name, key), labels in world.sums.spent.items()]
    return max(
        (
            units / found.limit.units_in_epoch(epoch)
            for found, labels in meters
            if found.divided
            for epoch, units in labels.items()
        ),
        default=0.0,
    )


def unreported(world: World) -> dict[Label, tuple[int, int]]:
    """Labels of which more was given than the rollup says: right only where an edge died before its report."""
    found, rollup = {}, world.rollup()
    for quota, name in world.sums.quotas.items():
        for epoch, units in world.sums.spent.get(name, {}).items():
            known = rollup.get((quota, epoch), 0)
            if units > known:
                found[quota, epoch] = (units, known)
    return found
