"""The log keeps what it is told: as columns for those who reckon, as rows for those who look."""

from __future__ import annotations

import pytest

from apportion.simulations.log import COST_MAX, NO_EPOCH, REASONS, Log
from apportion.simulations.recording import Recording
from apportion.simulations.rows import Row, Waited
from apportion.simulations.sums import totals
from tests.simulations.written import admitted, crossed, issued, offered, refused

ROWS: list[Row] = [
    issued(0, 60),
    offered(0.5, 3),
    admitted(0.5, 3),
    offered(0.75, 4, key="other"),
    crossed(0.75),
    offered(1.25, 5, 1),
    Waited(2_800_000_000, 2_750_000_000, 100_000_000),
    admitted(0.8, 4, key="other", at_edge=False),
    refused(1.25, 5, "unavailable"),
]
"""In the order of virtual time, which begins at two seconds."""


def test_rows_are_read_as_they_were_written() -> None:
    """Of answers all, in their order; rare rows stay between the answers between which they came."""
    found = list(Log.of(ROWS))
    assert sorted(map(repr, found)) == sorted(map(repr, ROWS))
    assert [row for row in found if row in (ROWS[0], ROWS[2], ROWS[4], ROWS[7])] == [ROWS[0], ROWS[2], ROWS[4], ROWS[7]]
    assert list(Log.of(found)) == found


def test_columns() -> None:
    """Processes and quotas are places in the lists of them; what was not charged has no epoch."""
    log = Log.of(ROWS)
    offers, answers = log.offers(), log.answers()
    assert list(log.processes) == [("edge-0", 0), ("edge-1", 1)]
    assert log.quotas == [("simulated", "search", ("k",)), ("simulated", "search", ("other",))]
    assert (offers.process.tolist(), offers.quota.tolist(), offers.cost.tolist()) == ([0, 0, 1], [0, 1, 0], [3, 4, 5])
    assert answers.epoch.tolist() == [0, 0, NO_EPOCH]
    assert (answers.at_edge.tolist(), answers.charged.tolist()) == ([True, False, True], [True, True, False])
    assert [REASONS[reason] for reason in answers.reason.tolist()] == [None, None, "unavailable"]
    assert log.waited.columns().tolist() == [[2_800_000_000], [2_750_000_000], [100_000_000]]


def test_what_is_packed() -> None:
    """It changes nothing."""
    log, other = Log.of(ROWS), Log.of(ROWS)
    log.pack()
    assert (log.digest(), len(log)) == (other.digest(), len(ROWS))


def test_what_is_taken_of_a_recording() -> None:
    """What comes after it is of the same processes, and of nothing else."""
    recording = Recording()
    for row in ROWS:
        recording.log.add(row)
    assert list(recording.take(0)) == list(Log.of(ROWS))
    assert (len(recording.log), recording.log.quotas, len(recording.log.processes)) == (0, [], 2)
    recording.log.add(offered(2.5, 7, 1, "third"))
    assert recording.log.quotas == [("simulated", "search", ("third",))]
    assert recording.log.offers().process.tolist() == [1]


@pytest.mark.parametrize("at", range(len(ROWS) + 1))
def test_one_log_after_another(at: int) -> None:
    """However they are cut, they come to the log of all; what is of an earlier epoch stays out."""
    log, rest = Log(), Log()
    rest.processes["edge-1", 1]  # numbers of names need not be the same
    for row in ROWS[at:]:
        rest.add(row)
    log.extend(Log.of(ROWS[:at]), 0)
    log.extend(rest, 0)
    assert (list(log), len(log)) == (list(Log.of(ROWS)), len(ROWS))
    later = Log()
    later.extend(log, 1)
    kept = [row for row in ROWS if getattr(row, "epoch", None) is None]
    assert sorted(map(repr, later)) == sorted(map(repr, kept))


def test_a_cost_that_no_column_has_room_for() -> None:
    """It is told as the largest that has; the row has it as it was."""
    log = Log.of([offered(0.5, 2**64 - 1)])
    assert log.offers().cost.tolist() == [COST_MAX]
    assert list(log) == [offered(0.5, 2**64 - 1)]


def test_answers_by_a_column() -> None:
    """In the order of its values, each part in the order of time; nothing of nothing."""
    answers = Log.of(ROWS).answers()
    found = [(quota, part.cost.tolist()) for quota, part in answers.by(answers.quota)]
    assert found == [(0, [3, 5]), (1, [4])]
    none = Log().answers()
    assert list(none.by(none.quota)) == []


def test_totals() -> None:
    """By the values of columns, whatever their size; also where a total is nothing."""
    answers = Log.of(ROWS).answers()
    assert totals(answers.cost, answers.process) == [(0, 12)]
    assert totals(answers.cost, answers.epoch, answers.quota) == [(NO_EPOCH, 0, 5), (0, 0, 3), (0, 1, 4)]
    assert totals(answers.cost * 0, answers.at_edge) == [(0, 0), (1, 0)]
    assert totals(answers.cost[:0], answers.epoch[:0]) == []
