"""The global sum of a quota is compared with its limit, label by label, and passing it is said."""

from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Quota
from apportion.core.rules_file import parse_rules
from apportion.region.events import Note
from apportion.region.quotas import QuotaTable
from apportion.region.store import RollupRow
from apportion.region.sums import SAID_EVERY, Sums
from apportion.region.thresholds import refused_with_room
from apportion.region.versions import Versions


def text(rate: int) -> str:
    """A divided rule; Q_k is the rate, and the burst a quarter of it."""
    return (
        "version: 1\ndomain: api\nrules:\n"
        f"  - {{name: a, match: {{a: '*'}}, key: [a], limit: {{rate: {rate}/s}}, enforce: lease, "
        "when_unavailable: [deny]}\n"
    )


KEY = encode_quota("api", "a", encode_key(["x"]))


def world(rate: int = 100) -> tuple[Sums, QuotaTable, Versions]:
    """One quota is known."""
    versions = Versions(1, parse_rules([("a.yaml", text(rate))]))
    table = QuotaTable(versions.effective)
    assert table.find(Quota("api", "a", encode_key(["x"])), 5) is not None
    return Sums(table), table, versions


def said(sums: Sums, label: int, units: int) -> list[Note]:
    """What is said of one label."""
    return sums.judge(label, [RollupRow(KEY, label, units)], 3)


def test_a_sum_within_the_limit_says_nothing() -> None:
    """100 of 100."""
    sums, _, _ = world()
    assert said(sums, 10, 100) == []
    assert (sums.rules["api", "a"].worst, sums.rules["api", "a"].admitted) == (0, 100)


def test_a_sum_above_the_limit_is_one_line_that_names_everything() -> None:
    """180 of 100 with a burst of 25 is 55 over, though no edge knows."""
    sums, _, _ = world()
    (note,) = said(sums, 10, 180)
    assert (note.level, note.event) == ("warning", "limit_passed_globally")
    assert dict(note.fields) == {
        "domain": "api",
        "rule": "a",
        "key": "x",
        "epoch": 10,
        "admitted": 180,
        "limit": 100,
        "over": 55,
        "edges": 3,
    }
    assert sums.rules["api", "a"].worst == 55


def test_a_quota_that_stays_over_is_told_of_once_a_minute() -> None:
    """Nobody reads a line a second."""
    sums, _, _ = world()
    told = [label for label in range(10, 10 + 2 * SAID_EVERY) if said(sums, label, 300)]
    assert told == [10, 10 + SAID_EVERY]


def test_a_label_is_judged_once() -> None:
    """A second look at the rollup counts nothing twice."""
    sums, _, _ = world()
    assert said(sums, 10, 180)
    assert said(sums, 10, 180) == []
    assert said(sums, 9, 500) == []


def test_another_limit_is_metered_anew() -> None:
    """What was right under 100 is not held against 50."""
    sums, table, versions = world()
    assert said(sums, 10, 100) == []
    assert versions.adopt(2, parse_rules([("a.yaml", text(50))]), 11)
    assert versions.follow(2, 12)
    table.adopt(versions.effective)
    assert said(sums, 12, 50) == []
    assert len(said(sums, 13, 90)) == 1


def test_what_edges_refused_is_counted_as_far_as_there_was_room_when_the_label_ended() -> None:
    """40 of 100 with a burst of 25 leaves room for 25, 105 leave 20; also of a label in which nothing was admitted."""
    sums, _, _ = world()
    rule = sums.rules
    sums.judge(10, [RollupRow(KEY, 10, 40)], 3, {KEY: 90})
    assert (rule["api", "a"].refused_with_room, rule["api", "a"].admitted_ever) == (25, 40)
    sums.judge(11, [RollupRow(KEY, 11, 105)], 3, {KEY: 90})
    assert rule["api", "a"].refused_with_room == 25 + 20
    sums.judge(12, [], 3, {KEY: 7, b"forgotten": 9})
    assert rule["api", "a"].refused_with_room == 25 + 20 + 7
    limit = RateLimit(100, EPOCH_NS, 25)
    assert refused_with_room(limit, {10: 40, 11: 105}, {10: 90, 11: 90, 12: 7}) == {10: 25, 11: 20, 12: 7}
