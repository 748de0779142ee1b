"""The roll-up in memory: bounded by labels and by rows."""

from apportion.region.rollup import Rollup
from apportion.region.store import ROLLUP_EPOCHS_KEPT, RollupRow


def test_too_many_rows_push_out_the_oldest_labels() -> None:
    """Ten rows at most, noticed when a label begins: the newest label always stays."""
    rollup = Rollup(rows_max=10)
    for epoch in (1, 2, 3):
        rollup.add(RollupRow(b"%d" % key, epoch, 1) for key in range(5))
    rollup.add([RollupRow(b"k", 4, 1)])
    assert {row.epoch for row in rollup.rows(0)} == {2, 3, 4}


def test_a_label_that_is_too_old_is_not_kept() -> None:
    """It would not be read."""
    rollup = Rollup()
    rollup.add([RollupRow(b"k", 1000, 1), RollupRow(b"k", 1000 - ROLLUP_EPOCHS_KEPT, 1)])
    rollup.add([RollupRow(b"k", 1001 - ROLLUP_EPOCHS_KEPT, 2)])
    assert rollup.rows(0) == (RollupRow(b"k", 1001 - ROLLUP_EPOCHS_KEPT, 2), RollupRow(b"k", 1000, 1))


def test_what_is_taken_is_gone_and_can_be_put_back() -> None:
    """As after a commit that failed, with more decided meanwhile."""
    rollup = Rollup()
    rollup.label(5)[b"k"] = 3
    taken = rollup.take()
    assert not rollup
    rollup.label(5)[b"k"] = 4
    rollup.add(taken)
    assert rollup.rows(0) == (RollupRow(b"k", 5, 7),)
