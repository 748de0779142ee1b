"""What was issued and never reported stays known."""

from apportion.region.plans import EPOCHS_KEPT, UNREPORTED_KEPT, Ledger

EDGE, KILLED, QUOTA, OTHER = 1, 2, 7, 8


def ledger() -> Ledger:
    """Label 100 is issued to two holders, one of which reports."""
    issued = Ledger()
    issued.issue(100, EDGE, QUOTA, 60)
    issued.issue(100, KILLED, QUOTA, 40)
    issued.issue(100, KILLED, OTHER, 5)
    issued.report(100, EDGE)
    return issued


def test_what_a_killed_edge_never_reported_stays_shown() -> None:
    """The units of silent holders outlive their epoch: without them the region's sum would fall short."""
    issued = ledger()
    for epoch in range(101, 101 + 3 * EPOCHS_KEPT):
        issued.forget(epoch - EPOCHS_KEPT)
    assert (issued.unreported(100, QUOTA), issued.unreported(100, OTHER)) == (40, 5)
    assert issued.issued_to(100, EDGE, QUOTA) == 0


def test_a_report_that_comes_late_ends_it() -> None:
    """An edge that was cut off reports once it is back; then its units are in the sum, and nowhere else."""
    issued = ledger()
    issued.forget(110)
    issued.report(100, KILLED)
    assert issued.unreported(100, QUOTA) == 0
    issued.forget(111)
    assert (issued.issued, issued.reported) == ({}, {})


def test_it_is_kept_no_longer_than_the_sum() -> None:
    """With the rollup's label goes what was not reported of it."""
    issued = ledger()
    issued.forget(100 + UNREPORTED_KEPT)
    assert issued.unreported(100, QUOTA) == 40
    issued.forget(101 + UNREPORTED_KEPT)
    assert issued.issued == {}


def test_an_id_that_is_used_again_inherits_nothing() -> None:
    """Ids of quotas that were forgotten name others later."""
    issued = ledger()
    issued.forget(110)
    issued.forget_quotas([QUOTA])
    assert (issued.unreported(100, QUOTA), issued.unreported(100, OTHER)) == (0, 5)
