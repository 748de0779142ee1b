"""Demand by place and time: what each shape gives each edge, and when it changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.simulations.shapes import Halves, Heavy, Hotspot, OnOff, Ramp, Shape, Step, Uniform, Zipf

S = 1_000_000_000


@pytest.mark.parametrize("shape", [Uniform(), Zipf(), Hotspot(), Heavy(), Halves()])
@given(edges=st.integers(1, 60), at_s=st.integers(0, 100), seed=st.integers(0, 2**32))
def test_what_only_moves_adds_up_to_the_load(shape: Shape, edges: int, at_s: int, seed: int) -> None:
    """And no edge has less than nothing. Of one edge, the half whose turn it is may have none."""
    parts = shape.parts(edges, at_s * S, seed)
    assert parts.shape == (edges,)
    assert parts.min() >= 0
    assert parts.sum() == pytest.approx(0 if edges == 1 and isinstance(shape, Halves) and at_s // 5 % 2 else 1)


@given(edges=st.integers(2, 60), seed=st.integers(0, 2**32))
def test_the_hotspot_is_at_another_edge_after_each_dwell_and_at_the_same_within_it(edges: int, seed: int) -> None:
    """60 % there, the rest evenly."""
    shape = Hotspot(9 * S, 0.6)
    hot = [int(np.argmax(shape.parts(edges, at * 3 * S, seed))) for at in range(12)]
    assert hot[0::3] == hot[1::3] == hot[2::3]
    assert all(before != after for before, after in zip(hot[0::3], hot[3::3], strict=False)) or edges == 2
    parts = sorted(shape.parts(edges, 0, seed))
    assert parts[-1] == pytest.approx(0.6)
    assert parts[:-1] == pytest.approx([0.4 / (edges - 1)] * (edges - 1))
    assert shape.changes_ns(28 * S) == [9 * S, 18 * S, 27 * S]


def test_zipf_gives_the_second_less_than_half_of_the_first() -> None:
    """2 ** -1.2; which edge is which, the seed says."""
    one, other = (Zipf(1.2).parts(10, 0, seed) for seed in (1, 2))
    first, second = sorted(one, reverse=True)[:2]
    assert second / first == pytest.approx(2**-1.2)
    assert sorted(one) == pytest.approx(sorted(other))
    assert list(one) != list(other)


def test_a_step_a_ramp_and_halves() -> None:
    """In units of the load."""
    step = Step(20 * S, 0.3, 3.0)
    assert step.parts(4, 20 * S - 1, 1) == pytest.approx([0.075] * 4)
    assert step.parts(4, 20 * S, 1) == pytest.approx([0.75] * 4)
    assert step.changes_ns(60 * S) == [20 * S]
    assert Ramp(10 * S).parts(2, 5 * S, 1) == pytest.approx([0.25, 0.25])
    assert Ramp(10 * S).parts(2, 50 * S, 1) == pytest.approx([0.5, 0.5])
    assert Halves().parts(4, 0, 1) == pytest.approx([0.5, 0, 0.5, 0])
    assert Halves().parts(4, 5 * S, 1) == pytest.approx([0, 0.5, 0, 0.5])


def test_edges_that_are_on_or_off_have_the_load_on_average() -> None:
    """Each is on half of the time."""
    sums = [OnOff(10 * S).parts(20, at * 5 * S, 7).sum() for at in range(200)]
    assert np.mean(sums) == pytest.approx(1, abs=0.05)
    assert min(sums) < 0.8 < 1.2 < max(sums)
