"""Period quotas in the engine: counted in its own memory, by the wall clock where the calendar says when they begin."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.decision import Decision, Reason
from apportion.core.engine import Engine
from apportion.core.errors import RulesError
from apportion.core.limit import PeriodAnchor, PeriodLimit, RateLimit
from apportion.core.periods import Unit
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone
from apportion.edge.limiter import Limiter
from tests.in_process import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    T0,
    ManualClock,
    engine_of,
    rule_set,
    rule_text,
    rules_text,
)

REQUEST = {"tenant": "contoso"}
BERLIN = "anchor: calendar, time_zone: Europe/Berlin"
NOISE = ", wrong_costs: noise"


def at(text: str) -> int:
    """Nanoseconds of an instant written in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def numbers(decision: Decision) -> tuple[bool, int | None, float | None, float | None]:
    """What a caller is told."""
    return decision.allowed, decision.remaining, decision.retry_after, decision.reset_after


class Clocks:
    """An engine's two clocks, moved together unless the wall clock is set."""

    def __init__(self, wall: str, *entries: str, keys_max: int = 1000) -> None:
        self.engine = engine_of(*entries, keys_max=keys_max)
        self.now_ns, self.wall_ns = T0, at(wall)

    def ask(
        self, after_ns: int = 0, cost: int | None = 1, peek: bool = False, request: dict[str, str] = REQUEST
    ) -> Decision:
        """A decision `after_ns` later."""
        self.now_ns += after_ns
        self.wall_ns += after_ns
        return self.engine.decide(request, cost, self.now_ns, peek, self.wall_ns)


def test_a_calendar_day_ends_at_midnight_of_its_zone() -> None:
    """22:00 UTC in Berlin's summer; the wait and the reset are the rest of the day, to the second."""
    clocks = Clocks("2026-07-01T20:00:00", rule_text("daily", f"quota: 3/day, {BERLIN}"))
    assert numbers(clocks.ask(peek=True)) == (True, 3, 0.0, 0.0)
    assert numbers(clocks.ask(cost=2)) == (True, 1, 0.0, 7200.0)
    assert numbers(clocks.ask(HOUR, cost=2)) == (False, 1, 3600.0, 3600.0)
    assert numbers(clocks.ask(cost=1)) == (True, 0, 0.0, 3600.0)
    assert numbers(clocks.ask(HOUR - 1, cost=1)) == (False, 0, 1e-9, 1e-9)
    assert numbers(clocks.ask(1, cost=1)) == (True, 2, 0.0, 86_400.0)


def test_a_day_of_23_hours_resets_after_23_hours() -> None:
    """Berlin, 2026-03-29: from 23:00 UTC the evening before until 22:00 UTC."""
    clocks = Clocks("2026-03-28T23:00:00", rule_text("daily", f"quota: 1/day, {BERLIN}"))
    assert numbers(clocks.ask()) == (True, 0, 0.0, 23 * 3600.0)
    assert not clocks.ask(23 * HOUR - 1).allowed
    assert clocks.ask(1).allowed


def test_the_first_use_opens_a_period_and_no_later_call_moves_its_end() -> None:
    """Peeks and refusals open none; the first call after its end opens the next."""
    clocks = Clocks("2026-07-01T20:00:00", rule_text("trial", "quota: 2/day, anchor: first_use"))
    assert numbers(clocks.ask(peek=True)) == (True, 2, 0.0, 0.0)
    assert clocks.engine.keys == 0
    assert numbers(clocks.ask(HOUR)) == (True, 1, 0.0, 86_400.0)
    assert numbers(clocks.ask(23 * HOUR)) == (True, 0, 0.0, 3600.0)
    assert numbers(clocks.ask(HOUR - 1)) == (False, 0, 1e-9, 1e-9)
    assert numbers(clocks.ask(1, peek=True)) == (True, 2, 0.0, 0.0)
    assert numbers(clocks.ask()) == (True, 1, 0.0, 86_400.0)


def test_a_month_from_the_first_use_is_as_long_as_that_month() -> None:
    """28 days from the tenth of February on."""
    clocks = Clocks("2026-02-10T12:00:00", rule_text("trial", "quota: 1/month, anchor: first_use"))
    assert numbers(clocks.ask()) == (True, 0, 0.0, 28 * 86_400.0)


def test_a_rolling_window_gives_back_what_has_left_it() -> None:
    """In parts of half a minute of an hour, the oldest counted whole."""
    clocks = Clocks("2026-07-01T20:00:00", rule_text("window", "quota: 4/hour, anchor: rolling"))
    assert clocks.ask(cost=3).allowed
    assert clocks.ask(30 * MINUTE, cost=1).allowed
    refused = clocks.ask(cost=2)
    assert numbers(refused) == (False, 0, 1825.0, 3625.0)  # the first part began 5 s before the first call
    assert not clocks.ask(1825 * SECOND - 1, cost=2).allowed
    assert clocks.ask(1, cost=2).allowed


def test_a_cost_above_the_allowance_is_impossible_and_nothing_passes_zero() -> None:
    """Waiting cannot help; a quota of 0 has no count."""
    clocks = Clocks("2026-07-01T20:00:00", rule_text("daily", "quota: 3/day, anchor: calendar"))
    decision = clocks.ask(cost=4)
    assert (decision.allowed, decision.retry_after, decision.reason) == (False, None, "impossible")
    nothing = Clocks("2026-07-01T20:00:00", rule_text("none", "quota: 0/day, anchor: calendar"))
    assert (nothing.ask().reason, nothing.engine.keys) == ("impossible", 0)


def test_a_rate_and_a_quota_are_charged_together_or_not_at_all() -> None:
    """What the one refuses takes nothing of the other; the deciding rule is the one with the longer wait."""
    clocks = Clocks(
        "2026-07-01T23:59:00",
        rule_text("a-rate", "rate: 2/s, burst: 2"),
        rule_text("daily", "quota: 3/day, anchor: calendar"),
    )
    assert [clocks.ask().allowed for _ in range(3)] == [True, True, False]
    assert clocks.ask(SECOND).remaining == 0
    refused = clocks.ask()
    assert (refused.rule, refused.retry_after, refused.limit) == (
        "daily",
        59.0,
        PeriodLimit(3, 1, Unit.DAY, PeriodAnchor.CALENDAR),
    )
    assert {v.rule.name: v.remaining for v in refused.verdicts} == {"a-rate": 1, "daily": 0}
    assert clocks.ask(59 * SECOND).allowed


def test_a_wall_clock_that_is_set_back_finds_what_was_used() -> None:
    """To before midnight: yesterday's allowance is still used up, and today's a second later."""
    clocks = Clocks("2026-07-01T23:59:59", rule_text("daily", "quota: 1/day, anchor: calendar"))
    assert clocks.ask().allowed
    assert clocks.ask(2 * SECOND).allowed
    clocks.engine.sweep(clocks.now_ns, 100)
    clocks.wall_ns -= 3 * SECOND
    assert numbers(clocks.ask(SECOND)) == (False, 0, 1.0, 1.0)
    assert not clocks.ask(SECOND).allowed
    assert clocks.engine.keys == 2


def test_a_wall_clock_far_ahead_leaves_nothing_behind() -> None:
    """What was counted in 2100 is forgotten by the other clock, a day and an hour later."""
    clocks = Clocks("2100-01-01T00:00:00", rule_text("daily", "quota: 1/day, anchor: calendar"))
    assert clocks.ask().allowed
    clocks.wall_ns = at("2026-07-01T00:00:00")
    assert clocks.ask().allowed
    clocks.engine.sweep(clocks.now_ns + 25 * HOUR - 1, 100)
    assert clocks.engine.keys == 2
    clocks.engine.sweep(clocks.now_ns + 25 * HOUR, 100)
    assert clocks.engine.keys == 0


@pytest.mark.parametrize("anchor,room_s", [("calendar", 3660.0), ("first_use", 7200.0), ("rolling", 7255.0)])
def test_counts_are_bounded_and_none_is_forgotten_that_counts(anchor: str, room_s: float) -> None:
    """A key more than there is room for waits until one of the others is worth nothing."""
    entry = rule_text("slow", f"quota: 5/2hour, anchor: {anchor}")
    clocks = Clocks("2026-07-01T20:59:00", entry, keys_max=2)
    for tenant in ("a", "b"):
        assert clocks.ask(request={"tenant": tenant}).allowed
    refused = clocks.ask(request={"tenant": "c"})
    assert (refused.reason, refused.retry_after) == ("keys_full", room_s)
    assert clocks.ask(int(room_s * SECOND), request={"tenant": "c"}).allowed
    assert clocks.ask(request={"tenant": "a"}).remaining == 4


def test_a_full_table_has_room_in_the_next_period() -> None:
    """What the former one used is kept for a clock that is set back, and not where it would cost a key its turn."""
    clocks = Clocks("2026-07-01T20:00:00", rule_text("hourly", "quota: 1/hour, anchor: calendar"), keys_max=40)
    for _ in range(3):
        assert [clocks.ask(request={"tenant": str(each)}).allowed for each in range(41)] == [True] * 40 + [False]
        clocks.ask(HOUR, peek=True)


def test_what_is_worth_nothing_is_swept() -> None:
    """An engine that nobody asks about these keys any more keeps none of them."""
    entries = [rule_text(anchor, f"quota: 5/min, anchor: {anchor}") for anchor in ("calendar", "first_use", "rolling")]
    clocks = Clocks("2026-07-01T20:00:00", *entries)
    clocks.ask()
    assert clocks.engine.keys == 3
    clocks.engine.sweep(clocks.now_ns + 3 * MINUTE, 100)
    assert clocks.engine.keys == 0


def test_shadows_and_other_measures_are_counted_as_if_alone() -> None:
    """A shadow quota refuses nobody; a quota of tokens counts tokens."""
    clocks = Clocks(
        "2026-07-01T20:00:00",
        rule_text("shadow", "quota: 1/day, anchor: calendar", more=", shadow: true"),
        rule_text("tokens", "quota: 100/day, anchor: calendar", more=", counts: tokens"),
    )
    assert clocks.ask().would_deny == ()
    assert clocks.ask().would_deny == ("shadow",)
    decision = clocks.engine.decide_measures(REQUEST, {"tokens": 99}, clocks.now_ns, False, clocks.wall_ns)
    assert (decision.allowed, decision.reason, decision.remaining) == (False, "over_limit", 98)


TENANTS = """version: 1
domain: api
plans: {free: {calls: {quota: 1/day, anchor: calendar, time_zone: from_tenant}}}
tenants:
  contoso: {plan: free, time_zone: Asia/Tokyo}
  fabrikam: {plan: free, time_zone: America/New_York}
unlisted_tenants: free
rules:
  - {name: r, match: {tenant: "*"}, key: [tenant], limit: {from_plan: calls}, enforce: region, when_unavailable: [deny]}
"""


def test_each_tenant_has_the_day_of_its_own_zone() -> None:
    """At 12:00 UTC in July Tokyo has 3 hours left, New York 16, and who is not listed the file's 12."""
    engine = Engine(parse_rules([("rules.yaml", TENANTS)]).domains["api"])
    noon = at("2026-07-01T12:00:00")
    resets = [
        engine.decide({"tenant": tenant}, 1, T0, False, noon).reset_after for tenant in ("contoso", "fabrikam", "other")
    ]
    assert resets == [3 * 3600.0, 16 * 3600.0, 12 * 3600.0]


def test_a_limiter_reads_the_wall_clock_for_quotas(tmp_path: Path) -> None:
    """And an edge alone; both say how they came to refuse."""
    clock, wall = ManualClock(), ManualClock(at("2026-07-01T23:59:59"))
    file = tmp_path / "rules.yaml"
    file.write_text(rules_text(rule_text("daily", "quota: 1/day, anchor: calendar", more=NOISE)))
    limiter = Limiter.from_rules(file, clock, wall_clock=wall)
    assert [limiter.decide(REQUEST).allowed for _ in range(2)] == [True, False]
    wall.now_ns += SECOND
    assert limiter.decide(REQUEST, cost={"requests": 1}).allowed
    rules = rule_set(rule_text("daily", "quota: 1/day, anchor: calendar", more=NOISE))
    alone = Alone(rules, clock, wall_clock=wall)
    application = Application(rules.rules[0], ("contoso",), 1)
    assert [alone.decide((application,), False).allowed for _ in range(2)] == [True, False]


@pytest.mark.parametrize("period,anchor", [("hour", "rolling"), ("60min", "calendar"), ("year", "first_use")])
def test_a_long_quota_is_not_counted_in_a_process_alone(period: str, anchor: str) -> None:
    """A restart would be worth an allowance: the error names the rule and the fix. Short ones, ones of 0 and shadows
    are.
    """
    limit = f"quota: 9/{period}, anchor: {anchor}"
    rules = rule_set(rule_text("daily", limit))
    with pytest.raises(RulesError) as refused:
        Limiter(rules)
    assert str(refused.value) == (
        f"rules.yaml:4: rules[daily]: the quota 9/{period} would be counted in this process, where each "
        "restart is worth a whole allowance; count it in a region on sqlite, or write `wrong_costs: noise` if that is "
        "no harm"
    )
    with pytest.raises(RulesError, match="would be counted by an edge alone"):
        Alone(rules, ManualClock())
    Limiter(
        rule_set(
            rule_text("short", "quota: 9/30min"),
            rule_text("none", "quota: 0/day, anchor: calendar"),
            rule_text("shadow", limit, more=", shadow: true"),
        )
    )


# --- against a reference that keeps every call

RULES = (
    rule_text("a-rate", "rate: 2/s, burst: 2"),
    rule_text("calendar", "quota: 4/min"),
    rule_text("calendar-days", "quota: 9/day, anchor: calendar, time_zone: America/New_York", match="tenant api"),
    rule_text("first-use", "quota: 5/2min, anchor: first_use", match="api", more=", cost: {default: 2, max: 3}"),
    rule_text("rolling", "quota: 6/min, anchor: rolling", match="api tenant", key="api"),
)
STEPS = (0, 1, 900 * MILLISECOND, SECOND, 59 * SECOND, MINUTE, 3 * MINUTE, HOUR, DAY)

values = st.sampled_from(["a", "b"])
calls = st.tuples(
    st.dictionaries(st.sampled_from(["tenant", "api"]), values, max_size=2),
    st.one_of(st.none(), st.integers(0, 6)),
    st.sampled_from(STEPS),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 0, 1, 50]),
)


class Reference:
    """Everything that was charged, added up anew for each question. Clocks do not go back."""

    def __init__(self) -> None:
        self.charged: dict[tuple[str, tuple[str, ...]], list[tuple[int, int, int]]] = defaultdict(list)

    def used(self, limit: PeriodLimit, quota: tuple[str, tuple[str, ...]], now_ns: int, wall_ns: int) -> int:
        """Units that count against the limit now."""
        log = self.charged[quota]
        if limit.anchor is PeriodAnchor.ROLLING:
            part_ns = limit.length_ns // 120
            return sum(cost for then, _, cost in log if now_ns // part_ns - then // part_ns <= 120)
        if limit.anchor is PeriodAnchor.CALENDAR:
            period = limit.calendar.period(wall_ns // SECOND)
            return sum(cost for _, then, cost in log if then // SECOND in period)
        start_ns, used = -DAY, 0
        for then, _, cost in log:
            start_ns, used = (then, cost) if then >= start_ns + limit.length_ns else (start_ns, used + cost)
        return used if now_ns < start_ns + limit.length_ns else 0


@given(st.lists(calls, max_size=30), st.integers(0, DAY))
def test_the_engine_equals_a_reference_that_keeps_every_call(
    ops: list[tuple[dict[str, str], int | None, int, bool, int]], wall_after: int
) -> None:
    """Allowed and remaining, for any steps of time, sweeps, costs and peeks."""
    engine, reference = engine_of(*RULES), Reference()
    now_ns, wall_ns = T0, at("2026-10-31T22:00:00") + wall_after
    for request, cost, step, peek, sweep in ops:
        now_ns, wall_ns = now_ns + step, wall_ns + step
        engine.sweep(now_ns, sweep)
        decision = engine.decide(request, cost, now_ns, peek, wall_ns)
        assert decision.allowed == all(verdict.allowed for verdict in decision.verdicts)
        for verdict in decision.verdicts:
            limit = verdict.rule.limit
            if isinstance(limit, RateLimit):
                continue
            assert isinstance(limit, PeriodLimit)
            quota = (verdict.rule.name, verdict.key)
            used = reference.used(limit, quota, now_ns, wall_ns)
            largest = verdict.rule.cost_max or 0
            assert verdict.allowed == (used + verdict.cost <= limit.units and verdict.cost <= largest)
            if verdict.charged:
                reference.charged[quota].append((now_ns, wall_ns, verdict.cost))
                used += verdict.cost
            assert verdict.remaining == limit.units - used
            if verdict.reason is Reason.OVER_LIMIT:
                wait_ns = verdict.retry_after_ns
                assert wait_ns is not None
                before = reference.used(limit, quota, now_ns + wait_ns - 1, wall_ns + wait_ns - 1)
                later = reference.used(limit, quota, now_ns + wait_ns, wall_ns + wait_ns)
                assert later + verdict.cost <= limit.units < before + verdict.cost
