"""Reading back over changed limits: each label by the limit that it had."""

from apportion.core.key import encode_key
from apportion.core.messages import Quota
from apportion.core.rules_file import parse_rules
from apportion.region.reading import metered
from apportion.region.versions import Versions


def text(rate: int, enforce: str) -> str:
    """One rule; the burst of 100/s is 25, of 40/s 20."""
    return (
        "version: 1\ndomain: api\nrules:\n"
        f"  - {{name: a, match: {{a: '*'}}, key: [a], limit: {{rate: {rate}/s}}, enforce: {enforce}, "
        "when_unavailable: [deny]}\n"
    )


QUOTA = Quota("api", "a", encode_key(["x"]))


def changed(enforce: str) -> Versions:
    """100/s, and 40/s from the plan of epoch 12 on."""
    versions = Versions(1, parse_rules([("a.yaml", text(100, enforce))]))
    assert versions.adopt(2, parse_rules([("a.yaml", text(40, enforce))]), 11)
    versions.follow(2, 12)
    return versions


def test_a_lowered_limit_is_not_held_against_what_was_right() -> None:
    """100 a label before, 40 after: nothing was ever over."""
    overs, meter = metered(changed("lease").segments(QUOTA), {10: 100, 11: 100, 12: 40, 13: 40})
    assert meter is not None
    assert (set(overs.values()), meter.worst, meter.above_quota) == ({0}, 0, 0)


def test_what_is_over_the_new_limit_is_seen() -> None:
    """70 of 40 with a burst of 20 is 10 over."""
    overs, meter = metered(changed("lease").segments(QUOTA), {10: 100, 12: 70})
    assert meter is not None
    assert (overs, meter.worst, meter.above_quota) == ({10: 0, 12: 10}, 10, 30)


def test_the_label_of_an_undivided_change_had_both_limits() -> None:
    """In epoch 11 the number went from 100 to 40 at once: 110 may have passed before that."""
    overs, _ = metered(changed("region").segments(QUOTA), {10: 100, 11: 110, 12: 40})
    assert overs == {10: 0, 11: 0, 12: 0}


def test_the_worst_of_all_limits_counts() -> None:
    """Over before the change is still over after it."""
    _, meter = metered(changed("lease").segments(QUOTA), {10: 200, 12: 40})
    assert meter is not None
    assert meter.worst == 75
