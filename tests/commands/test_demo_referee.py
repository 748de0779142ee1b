"""The demo's referee: sums by label, when a label is settled, utilisation, and the comparison with the region's sum."""

from apportion.commands.demonstration.referee import Referee, RegionLabel, Tally, compare
from apportion.core.limit import RateLimit

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
LIMIT = RateLimit(200, SECOND, 50)


def referee(divided: bool = False) -> Referee:
    """A referee of one rule of 200/s with burst 50."""
    return Referee([(LIMIT, divided)])


def admit(judge: Referee, label: int | None, cost: int, now_ns: int) -> None:
    """An answer that admitted `cost` under `label`, to a request sent a millisecond before."""
    judge.sent(0, cost, now_ns - MILLISECOND)
    judge.admitted(0, [(label, cost)], False, now_ns - MILLISECOND, now_ns)


def test_a_label_is_over_by_what_exceeds_quota_and_burst() -> None:
    """260 under one label of 200/s with burst 50 is over by 10, and over its quota by 60."""
    judge = referee()
    admit(judge, 7, 260, 0)
    verdict = judge.tallies[0].verdict(through=7)
    assert (verdict.overshoot, verdict.above_quota) == (10, 60)


def test_charges_count_under_their_label_whenever_the_answer_comes() -> None:
    """Answers that arrive out of order add up by label."""
    judge = referee()
    for label, cost in ((7, 100), (8, 30), (7, 100), (9, 1), (8, 30)):
        admit(judge, label, cost, 0)
    assert judge.tallies[0].by_label == {7: 200, 8: 60, 9: 1}
    assert judge.tallies[0].admitted == 261


def test_a_label_that_is_not_settled_is_not_metered() -> None:
    """Only labels up to `through` count."""
    judge = referee()
    admit(judge, 7, 200, 0)
    admit(judge, 8, 400, SECOND)
    assert judge.tallies[0].verdict(through=7).overshoot == 0
    assert judge.tallies[0].verdict(through=8).overshoot == 150


def test_a_label_is_settled_when_every_request_sent_before_its_end_is_answered() -> None:
    """Label 7 begins at 0 here; a request sent at 0.9 s that still waits keeps it open, however late it is."""
    judge = referee()
    admit(judge, 7, 1, 0)
    assert judge.settled_through(now_ns=1_100 * MILLISECOND, oldest_sent_ns=None) == 6
    assert judge.settled_through(now_ns=1_250 * MILLISECOND, oldest_sent_ns=None) == 7
    assert judge.settled_through(now_ns=1_900 * MILLISECOND, oldest_sent_ns=900 * MILLISECOND) == 6
    assert judge.settled_through(now_ns=1_900 * MILLISECOND, oldest_sent_ns=1_250 * MILLISECOND) == 7


def test_labels_are_placed_by_the_earliest_answer() -> None:
    """A first answer in the middle of label 7 places it too late; the first answer of label 8 corrects that."""
    judge = referee()
    admit(judge, 7, 1, 800 * MILLISECOND)
    assert judge.label_at(1_000 * MILLISECOND) == 7
    admit(judge, 8, 1, 1_010 * MILLISECOND)
    assert judge.label_at(2_000 * MILLISECOND) == 8
    assert judge.label_at(2_011 * MILLISECOND) == 9


def test_nothing_is_settled_before_the_first_label() -> None:
    """Refusals carry no label."""
    judge = referee()
    judge.sent(0, 1, 0)
    judge.refused(0, degraded=True)
    assert judge.settled_through(5 * SECOND, None) is None
    assert (judge.tallies[0].refused, judge.tallies[0].degraded) == (1, 1)


def test_an_admission_without_a_label_is_counted_as_such() -> None:
    """Neither a charge without an epoch nor an admission without a charge may pass unseen."""
    judge = referee()
    admit(judge, None, 3, 0)
    judge.admitted(0, [], False, 0, 0)
    assert judge.tallies[0].unlabelled == 4


def test_a_true_second_slides_over_the_borders_of_labels() -> None:
    """200 late in one label and 200 early in the next are no overshoot by label, and 150 over in a true second."""
    judge = referee(divided=True)
    admit(judge, 7, 200, 900 * MILLISECOND)
    admit(judge, 8, 200, 1_100 * MILLISECOND)
    tally = judge.tallies[0]
    assert tally.verdict(through=8).overshoot == 0
    assert tally.overshoot_true_second == 150
    assert tally.overshoot_true_second_certain == 150


def test_a_true_second_is_no_longer_than_a_second() -> None:
    """What came exactly a second earlier is outside."""
    judge = referee()
    admit(judge, 7, 200, 0)
    admit(judge, 8, 200, SECOND)
    assert judge.tallies[0].overshoot_true_second == 0


def test_what_arrived_late_is_not_certainly_of_that_second() -> None:
    """Two lots of 200 arrive together, but the first was asked for 1.5 s before: nothing is certain."""
    judge = referee()
    judge.admitted(0, [(7, 200)], False, 0, 1_500 * MILLISECOND)
    judge.admitted(0, [(8, 200)], False, 1_400 * MILLISECOND, 1_500 * MILLISECOND)
    assert judge.tallies[0].overshoot_true_second == 150
    assert judge.tallies[0].overshoot_true_second_certain == 0


def filled(tally: Tally, epochs: range, offered: int, admitted: int) -> Tally:
    """A tally with the same figures in each epoch."""
    for epoch in epochs:
        tally.offered_by_epoch[epoch] = offered
        tally.by_label[epoch] = admitted
    return tally


def test_utilisation_leaves_out_ten_epochs_of_warm_up() -> None:
    """10 epochs of 0, then 5 of 190 out of 200."""
    tally = filled(Tally(LIMIT, divided=True), range(100, 110), 500, 0)
    usage = filled(tally, range(110, 115), 500, 190).utilisation(100, 114)
    assert (usage.value, usage.warm_up, usage.epochs) == (0.95, 10, 5)


def test_utilisation_is_of_what_was_offered_where_that_is_less() -> None:
    """80 of 100 offered are 80 %, though the limit is 200."""
    usage = filled(Tally(LIMIT, divided=True), range(20), 100, 80).utilisation(0, 19)
    assert usage.value == 0.8


def test_utilisation_is_never_more_than_all() -> None:
    """250 under a label of 200 spend a burst that was saved before: all of the limit was used, and not 125 %."""
    usage = filled(Tally(LIMIT, divided=False), range(2), 500, 250).utilisation(0, 1)
    assert usage.value == 1.0


def test_a_short_run_says_what_it_left_out() -> None:
    """Six whole epochs: three of warm-up, three measured."""
    usage = filled(Tally(LIMIT, divided=True), range(6), 500, 200).utilisation(0, 5)
    assert (usage.value, usage.warm_up, usage.epochs) == (1.0, 3, 3)


def test_no_whole_epoch_no_utilisation() -> None:
    """A figure that nothing stands behind is not given."""
    assert Tally(LIMIT, divided=True).utilisation(1, 0).value is None


def test_equal_sums_agree() -> None:
    """The usual case."""
    assert compare({7: 200, 8: 150}, {7: RegionLabel(200, 0), 8: RegionLabel(150, 0)}, unanswered=0) == []


def test_the_region_may_lack_what_it_awaits_reports_of() -> None:
    """120 in its sum and 80 unreported cover 200 by answers, and not 201."""
    assert compare({7: 200}, {7: RegionLabel(120, 80)}, unanswered=0) == []
    assert compare({7: 201}, {7: RegionLabel(120, 80)}, unanswered=0) == [
        "label 7: answers add up to 201, the region has 120 and awaits reports of at most 80"
    ]


def test_a_label_the_region_does_not_know_is_a_difference() -> None:
    """Nothing is forgiven because it is missing."""
    assert len(compare({7: 1}, {}, unanswered=5)) == 1


def test_the_region_may_have_more_only_for_lost_answers() -> None:
    """Three units more over all labels need three units without an answer."""
    region = {7: RegionLabel(202, 0), 8: RegionLabel(151, 0)}
    assert compare({7: 200, 8: 150}, region, unanswered=3) == []
    assert compare({7: 200, 8: 150}, region, unanswered=2) == [
        "label 8: the region has 151, answers add up to 150, and only 2 units are without an answer"
    ]
