"""One run of the fault world by its seed: what is drawn, and the verdict of the oracles."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from apportion.simulations.network import MS
from tests.faults.faults import Faults
from tests.faults.load import Load
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


def broken(world: World) -> dict[str, Any]:
    """The oracles that a run breaks, with what they found; empty when all hold."""
    referee, rollup = world.referee, world.rollup()
    found = {
        "S1 over the entitlement": referee.over(),
        "S2 divided twice": referee.divided_twice(),
        "S3 miscounted": referee.miscounted(rollup),
        "S4 spent without right": referee.spent_without_right(),
        "answered late": referee.late,
        "never answered": [edge.waiting for edge in world.edges if edge.waiting],
        "errors": referee.errors,
    }
    return {name: each for name, each in found.items() if each}


def worst_share(world: World) -> float:
    """The largest admitted_k / Q_k of any divided quota and label."""
    meters = [(world.referee.meter(name, key), labels) for (name, key), labels in world.referee.spent.items()]
    return max(
        (
            units / meter.limit.units_in_epoch(epoch)
            for meter, labels in meters
            if meter.divided
            for epoch, units in labels.items()
        ),
        default=0.0,
    )
