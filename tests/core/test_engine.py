"""The engine: exact, all or nothing, bounded, and never generous by forgetting."""

import pytest

from apportion.core.decision import Reason
from apportion.core.engine import Engine
from apportion.core.errors import InputError
from apportion.core.plans import MEMO_CHARACTERS_MAX
from apportion.core.request import Application
from tests.in_process import MICROSECOND, MILLISECOND, MINUTE, SECOND, T0, domain_of, engine_of, rule_of, rule_text

TEN = rule_text("ten", "rate: 10/s, burst: 5")
A = {"tenant": "a"}


def admitted(engine: Engine, tenant: str, now_ns: int, times: int, cost: int | None = None) -> int:
    """How many of `times` requests of a tenant pass at one instant."""
    return sum(engine.decide({"tenant": tenant}, cost, now_ns).allowed for _ in range(times))


def test_a_new_key_has_its_burst_and_no_more() -> None:
    """5 of 7 pass, and each key has its own."""
    engine = engine_of(TEN)
    assert admitted(engine, "a", T0, 7) == 5
    assert admitted(engine, "b", T0, 7) == 5


def test_a_caller_that_waits_as_told_passes_and_one_tick_earlier_does_not() -> None:
    """At 3/s a unit takes 333333.33 microseconds: 333334 ticks, counted from within a tick."""
    engine = engine_of(rule_text("three", "rate: 3/s, burst: 1"))
    now = T0 + 999
    assert engine.decide(A, None, now).allowed
    refused = engine.decide(A, None, now)
    wait = refused.verdicts[0].retry_after_ns
    assert (refused.allowed, refused.reason, wait) == (False, "over_limit", 333_334 * MICROSECOND)
    assert wait is not None
    assert not engine.decide(A, None, now + wait - MICROSECOND).allowed
    assert engine.decide(A, None, now + wait).allowed


def test_a_caller_whose_clock_stepped_back_is_told_to_wait_longer() -> None:
    """Nothing drains before the latest instant the bucket saw is past: 1 s back, so 1.1 s for a unit of 10/s."""
    engine = engine_of(TEN)
    assert admitted(engine, "a", T0, 5) == 5
    refused = engine.decide(A, None, T0 - SECOND)
    wait = refused.verdicts[0].retry_after_ns
    assert wait == SECOND + 100 * MILLISECOND
    assert not engine.decide(A, None, T0 - SECOND + wait - MICROSECOND).allowed
    assert engine.decide(A, None, T0 - SECOND + wait).allowed


def test_what_can_never_pass_is_told_no_wait_and_makes_no_key() -> None:
    """A cost above the burst, and one above cost.max."""
    engine = engine_of(TEN, rule_text("capped", "rate: 10/s, burst: 5", match="user", more=", cost: {max: 2}"))
    for request, cost in ((A, 6), ({"user": "u"}, 3)):
        refused = engine.decide(request, cost, T0)
        assert (refused.allowed, refused.reason, refused.retry_after) == (False, "impossible", None)
    assert engine.keys == 0


def test_a_live_bucket_refuses_the_impossible_too() -> None:
    """Above the burst, and above cost.max though it would fit; and keeps what it holds."""
    capped = engine_of(rule_text("capped", "rate: 10/s, burst: 5", more=", cost: {max: 2}"))
    assert capped.decide(A, 2, T0).remaining == 3
    assert capped.decide(A, 3, T0).reason == "impossible"
    engine = engine_of(TEN)
    assert engine.decide(A, 2, T0).remaining == 3
    refused = engine.decide(A, 6, T0)
    assert (refused.reason, refused.retry_after, refused.remaining) == ("impossible", None, 3)


def test_a_peek_charges_nothing_and_makes_no_key() -> None:
    """Neither with `peek`, nor with a cost of 0."""
    engine = engine_of(TEN)
    assert engine.decide(A, 5, T0, peek=True).remaining == 5
    assert engine.decide(A, 0, T0).remaining == 5
    assert engine.keys == 0
    engine.decide(A, 4, T0)
    assert engine.decide(A, 1, T0, peek=True).remaining == 1
    assert not engine.decide(A, 2, T0, peek=True).allowed
    assert engine.decide(A, 0, T0).remaining == 1


def test_a_refused_request_charges_none_of_its_rules() -> None:
    """The rule that has room keeps it, whichever order the names give; its verdict says so."""
    engine = engine_of(
        rule_text("a-wide", "rate: 10/min, burst: 10"),
        rule_text("b-narrow", "rate: 3/min, burst: 3", match="tenant api"),
        rule_text("c-wide", "rate: 10/min, burst: 10", match="api"),
    )
    request = {"tenant": "a", "api": "x"}
    assert [engine.decide(request, None, T0).allowed for _ in range(5)] == [True] * 3 + [False] * 2
    refused = engine.decide(request, None, T0)
    assert [(v.rule.name, v.allowed, v.charged, v.remaining) for v in refused.verdicts] == [
        ("a-wide", True, False, 7),
        ("b-narrow", False, False, 0),
        ("c-wide", True, False, 7),
    ]
    assert engine.decide(A, 7, T0).allowed


def test_on_admission_the_scarcest_rule_decides_on_refusal_the_longest_wait() -> None:
    """9/10 left against 1/3; then a wait of 20 s against none."""
    engine = engine_of(
        rule_text("wide", "rate: 10/min, burst: 10"), rule_text("narrow", "rate: 3/min, burst: 3", "tenant", "")
    )
    assert (engine.decide(A, 2, T0).rule, engine.decide(A, 2, T0).rule) == ("narrow", "narrow")
    assert engine.decide(A, 2, T0).retry_after == 20.0


def test_a_decision_tells_the_instant_it_was_made_however_late_it_is_read() -> None:
    """What happens between the decision and the first look at its numbers does not show."""
    engine = engine_of(TEN)
    engine.decide(A, 1, T0)
    early = engine.decide(A, 1, T0)
    engine.decide(A, 3, T0)
    refused = engine.decide(A, 1, T0)
    engine.decide(A, 5, T0 + MINUTE)
    assert (early.remaining, early.reset_after) == (3, 0.2)
    assert (refused.remaining, refused.retry_after, refused.reset_after) == (0, 0.1, 0.5)


def test_a_request_that_no_rule_limits_passes() -> None:
    """It has no deciding rule; nor has one that only an unlimited rule meets."""
    engine = engine_of(TEN, rule_text("free", "unlimited: true", match="path"))
    for request in ({}, {"other": "x"}, {"path": "/"}):
        decision = engine.decide(request, None, T0)
        assert (decision.allowed, decision.rule, decision.verdicts, decision.retry_after) == (True, None, (), 0.0)
    assert engine.keys == 0


def test_dimensions_that_no_rule_names_do_not_matter() -> None:
    """The same bucket with and without them, in any order."""
    engine = engine_of(rule_text("two", "rate: 10/s, burst: 4", match="tenant api"))
    requests = (
        {"tenant": "a", "api": "x"},
        {"api": "x", "tenant": "a"},
        {"tenant": "a", "user": "u", "api": "x"},
        {"tenant": "a", "api": "x", "user": "v"},
    )
    assert [engine.decide(request, None, T0).remaining for request in requests] == [3, 2, 1, 0]
    assert engine.keys == 1


def test_equal_values_of_different_dimensions_are_different_requests() -> None:
    """A request remembered by the value of one dimension is not taken for one with that value in another."""
    engine = engine_of(TEN, rule_text("users", "rate: 1/s, burst: 1", match="user"))
    assert engine.decide({"tenant": "a"}, None, T0).rule == "ten"
    assert engine.decide({"user": "a"}, None, T0).rule == "users"
    assert [v.rule.name for v in engine.decide({"tenant": "a", "user": "b"}, None, T0).verdicts] == ["ten", "users"]


def test_a_mapping_that_makes_up_what_is_absent_is_asked_for_what_it_has() -> None:
    """A defaultdict has no tenant until somebody puts one there."""
    from collections import defaultdict

    engine = engine_of(rule_text("two", "rate: 1/s, burst: 1", match="tenant api"))
    engine.decide({"tenant": "a", "api": "x"}, None, T0)
    request: defaultdict[str, str] = defaultdict(str, {"tenant": "a", "user": "u"})
    assert engine.decide(request, None, T0).verdicts == ()
    assert dict(request) == {"tenant": "a", "user": "u"}


@pytest.mark.parametrize(
    "request_, words",
    [
        (None, "mapping"),
        ([("tenant", "a")], "mapping"),
        ("tenant", "mapping"),
        ({"tenant": 7}, "'tenant' has the value 7 (int)"),
        ({"tenant": None}, "leave the dimension out"),
        ({"tenant": ["a"]}, "['a'] (list)"),
        ({"tenant": b"a"}, "(bytes)"),
        ({"tenant": "a", "other": 1.5}, "'other' has the value 1.5 (float)"),
        ({"tenant": "a", 7: "x"}, "dimension name 7 (int)"),
    ],
)
def test_dimensions_that_are_not_text_are_an_error_that_names_them(request_: object, words: str) -> None:
    """Before and after the engine has seen good requests of the same shape, and nothing is charged."""
    engine = engine_of(TEN)
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            engine.decide(request_, None, T0)  # type: ignore[arg-type]
        assert words in str(caught.value)
        engine.decide({"tenant": "a", "other": "x"}, 0, T0)
        engine.decide(A, 0, T0)
    assert engine.keys == 0


def test_a_drained_bucket_is_forgotten_and_a_live_one_is_not() -> None:
    """100 keys of which one is still in use: sweeping leaves that one, and it still holds what it held."""
    engine = engine_of(TEN)
    for number in range(100):
        engine.decide({"tenant": str(number)}, None, T0)
    assert engine.decide({"tenant": "7"}, 4, T0).remaining == 0
    engine.sweep(T0 + 100 * MILLISECOND, 100)
    assert engine.keys == 1
    assert engine.decide({"tenant": "7"}, None, T0 + 100 * MILLISECOND).remaining == 0


def test_deciding_sweeps_by_itself() -> None:
    """New keys push drained ones out: the table does not grow with the number of keys that ever were."""
    engine = engine_of(TEN, keys_max=10_000)
    sizes = []
    for number in range(3000):
        engine.decide({"tenant": str(number)}, None, T0 + number * MILLISECOND)
        sizes.append(engine.keys)
    assert max(sizes) <= 250  # 100 are live at any time, for a unit drains in 100 ms


def test_hits_on_one_key_sweep_the_others() -> None:
    """Even where no new key ever comes."""
    engine = engine_of(rule_text("ten", "rate: 10/s, burst: 10"))
    for number in range(200):
        engine.decide({"tenant": str(number)}, None, T0)
    for number in range(200):
        engine.decide({"tenant": "0"}, None, T0 + SECOND + number * MILLISECOND)
    assert engine.keys == 1


def test_a_clock_that_steps_back_before_a_sweep_fills_nothing_twice() -> None:
    """Swept at 10 s, then charged in full at 0 s: what drains before 10 s has drained already."""
    engine = engine_of(TEN)
    engine.decide(A, 5, T0)
    engine.sweep(T0 + 10 * SECOND, 1)
    assert engine.keys == 0
    assert engine.decide(A, 5, T0).allowed
    assert not engine.decide(A, 1, T0 + 9 * SECOND).allowed
    assert engine.decide(A, 1, T0 + 10 * SECOND + 100 * MILLISECOND).allowed


def test_a_remembered_plan_never_keeps_a_swept_bucket_as_a_second_copy() -> None:
    """Two requests share a bucket; it is swept; both then meet the same new one, not each its own."""
    engine = engine_of(rule_text("ten", "rate: 10/s, burst: 5", match="tenant api", key="tenant"))
    one, other = {"tenant": "a", "api": "x"}, {"tenant": "a", "api": "y"}
    engine.decide(one, None, T0)
    engine.decide(other, None, T0)
    engine.sweep(T0 + MINUTE, 10)
    assert engine.keys == 0
    assert [engine.decide(one, None, T0 + MINUTE).remaining for _ in range(3)] == [4, 3, 2]
    assert [engine.decide(other, None, T0 + MINUTE).remaining for _ in range(2)] == [1, 0]
    assert not engine.decide(one, None, T0 + MINUTE).allowed


def test_a_bucket_found_for_one_rule_is_not_swept_while_another_rule_gets_a_new_one() -> None:
    """The drained bucket of one part must be charged where it can be found again."""
    engine = engine_of(TEN, rule_text("users", "rate: 10/s, burst: 5", match="user"))
    engine.decide(A, None, T0)
    both = {"tenant": "a", "user": "u"}
    later = T0 + SECOND
    assert engine.decide(both, 5, later).allowed
    assert not engine.decide(A, 1, later).allowed
    assert not engine.decide({"user": "u"}, 1, later).allowed


def test_when_the_table_is_full_of_live_keys_a_new_one_is_refused_and_counted() -> None:
    """The keys it has go on; the new one is told when a place will be free, and then has it."""
    engine = engine_of(TEN, keys_max=3)
    for tenant, cost in (("a", 3), ("b", 2), ("c", 4)):
        assert engine.decide({"tenant": tenant}, cost, T0).allowed
    refused = engine.decide({"tenant": "d"}, None, T0)
    assert (refused.allowed, refused.reason, refused.retry_after) == (False, "keys_full", 0.2)
    assert (engine.keys, engine.keys_full) == (3, 1)
    assert engine.decide({"tenant": "a"}, 2, T0).remaining == 0
    assert not engine.decide({"tenant": "d"}, None, T0 + 200 * MILLISECOND - 1).allowed
    assert engine.decide({"tenant": "d"}, None, T0 + 200 * MILLISECOND).allowed
    assert not engine.decide({"tenant": "a"}, 5, T0 + 200 * MILLISECOND).allowed


def test_a_request_with_two_new_keys_waits_for_two_places() -> None:
    """With one place only, neither is charged; with both, both."""
    engine = engine_of(TEN, rule_text("users", "rate: 10/s, burst: 5", match="user"), keys_max=2)
    both = {"tenant": "new", "user": "new"}
    engine.decide(A, 1, T0)
    engine.decide({"tenant": "b"}, 3, T0)
    refused = engine.decide(both, None, T0)
    assert [v.reason for v in refused.verdicts] == [Reason.KEYS_FULL, Reason.KEYS_FULL]
    assert refused.retry_after == 0.3
    one_place = engine.decide(both, None, T0 + 100 * MILLISECOND)
    assert [v.reason for v in one_place.verdicts] == [None, Reason.KEYS_FULL]
    assert engine.keys == 1
    assert engine.decide(both, None, T0 + 300 * MILLISECOND).allowed


def test_a_table_too_small_for_a_request_promises_nothing() -> None:
    """Two new keys never fit where there is one place."""
    engine = engine_of(TEN, rule_text("users", "rate: 10/s, burst: 5", match="user"), keys_max=1)
    refused = engine.decide({"tenant": "a", "user": "u"}, None, T0)
    assert (refused.reason, refused.retry_after) == ("keys_full", None)
    assert engine.keys == 0


def test_a_flood_of_values_does_not_grow_what_is_remembered() -> None:
    """Two generations of plans, whatever comes; a value too long to remember decides like any other."""
    engine = engine_of(rule_text("ten", "rate: 10/s, burst: 5", match="tenant api", key="api"), memo_max=10)
    for number in range(1000):
        engine.decide({"tenant": str(number), "api": "x"}, None, T0 + number * SECOND)
    plans = engine._plans
    assert (len(plans.young) <= 10, len(plans._old) <= 10) == (True, True)
    before = len(plans.young)
    long = "x" * (2 * 1024 * 1024)
    later = T0 + 10_000 * SECOND
    assert [engine.decide({"tenant": long, "api": long}, 2, later).allowed for _ in range(3)] == [True, True, False]
    assert len(plans.young) == before
    assert len(long) > MEMO_CHARACTERS_MAX


def test_a_flood_of_dimension_names_does_not_grow_what_is_remembered() -> None:
    """Names come from outsiders too."""
    engine = engine_of(TEN)
    for number in range(5000):
        engine.decide({"tenant": "a", f"name-{number}": "x"}, 0, T0)
    assert len(engine._plans._shapes) <= 1024
    engine.decide({"tenant": "a", "n" * 5000: "x"}, 0, T0)
    assert all(len(name) < 5000 for names in engine._plans._shapes for name in names)


def test_applications_are_answered_in_the_order_given_unlimited_ones_too() -> None:
    """Each with its own cost, as one request."""
    entries = (
        TEN,
        rule_text("free", "unlimited: true", match="path"),
        rule_text("users", "rate: 5/s, burst: 5", match="user"),
    )
    engine = engine_of(*entries)
    users, free, ten = (rule_of(*entries, name=name) for name in ("users", "free", "ten"))
    applications = (
        Application(users, ("u",), 5),
        Application(free, ("/",), 9),
        Application(ten, ("a",), 0),
        Application(ten, ("b",), 3),
    )
    passed = engine.decide_applications(applications, T0)
    assert [(v.rule.name, v.cost, v.charged, v.remaining) for v in passed.verdicts] == [
        ("users", 5, True, 0),
        ("free", 9, False, None),
        ("ten", 0, False, 5),
        ("ten", 3, True, 2),
    ]
    refused = engine.decide_applications(applications, T0)
    assert [v.allowed for v in refused.verdicts] == [False, True, True, False]
    assert engine.decide({"tenant": "b"}, 2, T0).allowed


def test_peeked_applications_charge_nothing() -> None:
    """And make no keys."""
    engine = engine_of(TEN)
    rule = domain_of(TEN).rules[0]
    assert engine.decide_applications((Application(rule, ("a",), 5),), T0, peek=True).allowed
    assert engine.keys == 0
