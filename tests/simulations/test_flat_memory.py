"""A log may be larger than memory: what is kept of it stops growing."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from apportion.region import rollup
from apportion.simulations import replay as module
from apportion.simulations.baselines import Baseline
from apportion.simulations.replay import replay, replay_baseline
from tests.simulations.test_replay import world, written

SECONDS = 300
"""Windows are a minute, and here the store keeps labels for two: by half of it all is as large as it will be."""


@pytest.mark.parametrize("baseline", [None, Baseline.LATER])
def test_memory_does_not_grow_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: Baseline | None
) -> None:
    """Sixteen requests a second, each second a new key: at its end hardly more is kept than half way."""
    monkeypatch.setattr(module, "ORDERED_LINES_MAX", 100)  # lines that are read ahead: here a small part of the log
    monkeypatch.setattr(module, "APPLICATIONS_MAX", 100)
    monkeypatch.setattr(rollup, "ROLLUP_EPOCHS_KEPT", 120)
    lines = "".join(f"{1798761600 + at / 16:.4f},{'ab'[at % 2]},k{at // 16}\n" for at in range(16 * SECONDS))
    reader, kept = written(tmp_path, "time,location,key\n" + lines), list[int]()

    def progress(share: float) -> None:
        if share >= (0.5, 0.98, 2.0)[len(kept)]:
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        if baseline is None:
            assert replay(world("20/s", "lease"), reader, 1, progress).outcome.broken == ()
        else:
            replay_baseline(world("20/s"), reader, 1, baseline, progress)
    finally:
        tracemalloc.stop()
    half, whole = kept
    assert whole < 1.1 * half
