"""Faults at the level of the cores: whatever crashes, pauses, is cut, late or said twice, no limit is exceeded.

The oracles are S1 to S4 of algorithms 6, read from the log of one seed. `run(seed)` replays a failure.
"""

import pytest

from tests.faults.runs import broken, options_of, run, without_claim, worst_share

SEEDS = 400
CHUNK = 10
CHUNKS = [range(first, first + CHUNK) for first in range(0, SEEDS, CHUNK)]


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_no_seed_breaks_a_promise(seeds: range) -> None:
    """S1 to S4 hold, every request is answered once and in time, and no core reports an error."""
    for seed in seeds:
        found = broken(run(seed))
        assert not found, f"seed {seed}: {found}"


def test_without_the_claim_a_label_is_spent_nearly_twice() -> None:
    """The same run with the claim switched off exceeds Q_k, up to about 1.9 of it: the claim is what holds the sum."""
    worlds = [run(seed, without_claim(options_of(seed)), factor=2.5) for seed in range(20)]
    assert sum("S1" in broken(world) for world in worlds) >= 10
    assert any("S2" in broken(world) for world in worlds)
    assert max(worst_share(world) for world in worlds) > 1.8


def test_the_same_seed_gives_the_same_run() -> None:
    """F7: a failing seed can be replayed."""
    one, other = run(7), run(7)
    assert one.recording.log.digest() == other.recording.log.digest()
    assert one.rollup() == other.rollup()
