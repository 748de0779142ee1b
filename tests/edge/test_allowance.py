"""A quota of a period at one edge: the region names the period, the edge remembers what that rules out."""

from dataclasses import replace

from apportion.core.limit import EPOCH_NS, PeriodLimit
from apportion.core.messages import Acquire, GroupAnswer, MemberAnswer, Outcome, Rules
from apportion.core.request import Application
from apportion.core.rule import Fallback, Stage
from apportion.edge.allowance import Allowance
from apportion.edge.holding import Holding
from apportion.edge.http_fields import decision_fields
from apportion.edge.ids import Ids
from apportion.edge.ticket import Ticket
from tests.edge.by_hand import EPOCH, MS, T0, TEXT, ByHand, member, needs, quota, rule

HOUR_NS = 3600 * EPOCH_NS


def admitted(remaining: int, reset_ns: int) -> MemberAnswer:
    """Charged, and so much is left until the reset."""
    return member(remaining=remaining, reset_ns=reset_ns)


def used_up(reset_ns: int, remaining: int = 0) -> MemberAnswer:
    """Refused until the reset."""
    return member(Outcome.OVER_LIMIT, remaining, reset_ns, reset_ns=reset_ns)


def attached() -> ByHand:
    """An edge that has heard its region."""
    edge = ByHand()
    edge.attach()
    return edge


def told_over(edge: ByHand, reset_ns: int, cost: int = 1, remaining: int = 0) -> None:
    """The edge asks, and is told that the quota is used up until the reset."""
    edge.waits(needs("daily", cost))
    edge.answer(GroupAnswer(0, (used_up(reset_ns, remaining),)))


def crossings(edge: ByHand) -> int:
    """How many crossings left so far."""
    return len(edge.said(Acquire))


def test_what_is_left_and_when_it_resets_are_the_regions() -> None:
    """Three of ten were used; the day ends in five hours."""
    edge = attached()
    ticket = edge.waits(needs("daily"))
    edge.answer(GroupAnswer(1, (admitted(7, 5 * HOUR_NS),)))
    decision = edge.decisions()[ticket]
    assert (decision.allowed, decision.remaining, decision.remaining_scope) == (True, 7, "region")
    assert (decision.retry_after, decision.reset_after) == (0.0, 5 * 3600.0)
    assert isinstance(decision.limit, PeriodLimit)


def test_a_quota_that_is_used_up_does_not_cross_again_until_it_resets() -> None:
    """Told once, an hour of requests is refused here, each with the time that is left."""
    edge = attached()
    told_over(edge, HOUR_NS)
    before = crossings(edge)
    for minutes in range(59):
        decision = edge.ask(needs("daily"))
        assert (decision.allowed, decision.reason, decision.remaining) == (False, "over_limit", 0)
        assert decision.retry_after == decision.reset_after == 3600.0 - 60 * minutes
        edge.now_ns += 60 * EPOCH_NS
    assert crossings(edge) == before


def test_a_handful_of_crossings_before_the_reset_make_up_for_clocks_that_differ() -> None:
    """What was told for an hour ends 0.72 s early; asked again then, the rest is known to 0.2 ms."""
    edge = attached()
    told_over(edge, HOUR_NS)
    edge.now_ns = T0 + HOUR_NS - 721 * MS
    assert not edge.ask(needs("daily")).allowed
    edge.now_ns = T0 + HOUR_NS - 719 * MS
    edge.hear(edge.tick())
    told_over(edge, 719 * MS)
    edge.now_ns = T0 + HOUR_NS - 1 * MS
    assert edge.ask(needs("daily")).retry_after == 0.001
    edge.now_ns = T0 + HOUR_NS
    edge.hear(edge.tick())
    ticket = edge.waits(needs("daily"))
    edge.answer(GroupAnswer(1, (admitted(9, 24 * HOUR_NS),)))
    assert edge.decisions()[ticket].remaining == 9


def test_a_smaller_cost_than_the_refused_one_may_still_fit() -> None:
    """Three are left: a cost of four is remembered as refused, one of three asks."""
    edge = attached()
    told_over(edge, HOUR_NS, cost=4, remaining=3)
    refused = edge.ask(needs("daily", 5))
    assert (refused.allowed, refused.remaining) == (False, 3)
    ticket = edge.waits(needs("daily", 3))
    edge.answer(GroupAnswer(1, (admitted(0, HOUR_NS),)))
    assert edge.decisions()[ticket].allowed


def test_a_cost_above_the_allowance_never_crosses() -> None:
    """No period ever has eleven."""
    decision = attached().ask(needs("daily", 11))
    assert (decision.allowed, decision.reason, decision.retry_after) == (False, "impossible", None)


def test_new_rules_make_the_edge_ask_again() -> None:
    """C33: a raised allowance admits at once, although the edge was told to wait for the reset."""
    edge = attached()
    told_over(edge, HOUR_NS)
    raised = Rules(2, (("rules.yaml", TEXT.replace("quota: 10/day", "quota: 20/day")),))
    edge.hear(raised)
    (raised_rule,) = edge.agent.matchers["api"].match({"d": "k"}, whole=True)
    ticket = edge.waits(Application(raised_rule, ("k",), 1))
    edge.answer(GroupAnswer(1, (admitted(9, HOUR_NS),)))
    assert edge.decisions()[ticket].allowed


def test_all_answers_of_a_period_tell_one_instant() -> None:
    """The way back takes 1 to 40 ms; the instant told is that of the first answer, not before the reset."""
    edge = attached()
    ends_ns = T0 + HOUR_NS
    told = set()
    for back_ms in (5, 40, 1, 17, 30):
        edge.waits(needs("daily"))
        reset_ns = ends_ns - edge.now_ns  # as the region sees it when the question has come
        edge.now_ns += back_ms * MS
        edge.answer(GroupAnswer(1, (admitted(5, reset_ns),)))
        (decision,) = edge.decisions().values()
        edge.commands.clear()
        assert decision.reset_after is not None
        told.add(round(edge.now_ns + decision.reset_after * EPOCH_NS))
        edge.now_ns += 200 * MS
        edge.hear(edge.tick())
    assert told == {ends_ns + 5 * MS}


def test_an_instant_that_cannot_be_right_gives_way() -> None:
    """Another period, or a clock of the region that was set: earlier by more than a way back, or later."""
    allowance = Allowance()
    allowance.learn(admitted(1, HOUR_NS), 1, T0, T0)
    assert allowance.reset_in_ns(T0) == HOUR_NS
    allowance.learn(admitted(1, HOUR_NS // 2), 1, T0, T0)
    assert allowance.reset_in_ns(T0) == HOUR_NS // 2
    allowance.learn(admitted(1, HOUR_NS), 1, T0, T0)
    assert allowance.reset_in_ns(T0) == HOUR_NS
    assert allowance.remaining_at(T0 + HOUR_NS - 1) == 1
    assert allowance.remaining_at(T0 + HOUR_NS) is None


def test_a_window_that_rolls_tells_when_the_cost_fits_not_when_all_is_free() -> None:
    """The wait is the refused cost's own; the reset is told beside it."""
    edge = attached()
    ticket = edge.waits(needs("daily"))
    edge.answer(GroupAnswer(0, (member(Outcome.OVER_LIMIT, 0, 60 * EPOCH_NS, reset_ns=HOUR_NS),)))
    decision = edge.decisions()[ticket]
    assert (decision.retry_after, decision.reset_after) == (60.0, 3600.0)
    edge.now_ns += 30 * EPOCH_NS
    assert edge.ask(needs("daily")).retry_after == 30.0


def test_a_refusal_never_says_0() -> None:
    """C38: refused in the last instant of a period, a caller is told to wait for something."""
    edge = attached()
    ticket = edge.waits(needs("daily"))
    edge.answer(GroupAnswer(0, (used_up(0),)))
    decision = edge.decisions()[ticket]
    assert decision.retry_after is not None and decision.retry_after > 0
    assert decision_fields(decision, "id")["Retry-After"] == "1"


def test_what_is_remembered_gives_way_where_holdings_are_many() -> None:
    """Forgetting costs a crossing; a table that is full would refuse other keys."""
    daily = rule("daily")
    assert isinstance(daily.limit, PeriodLimit)
    holding = Holding(Ids(), daily, daily.limit, quota("daily"))
    holding.learn(used_up(HOUR_NS), 1, T0, T0)
    assert not holding.idle(EPOCH + 11, T0 + 11 * EPOCH_NS)
    assert holding.idle(EPOCH + 11, T0 + 11 * EPOCH_NS, crowded=True)
    assert holding.idle(EPOCH + 3601, T0 + HOUR_NS)


def test_no_plan_divides_it() -> None:
    """It has no slice and no threshold, so that nothing is admitted here without the region."""
    daily = rule("daily")
    assert (daily.planned, daily.divided, daily.local) == (False, False, False)
    assert attached().agent.ask((needs("daily"),), T0).__class__ is Ticket


def test_a_stage_answers_while_the_region_is_away_and_what_is_known_to_be_used_up_stays_refused() -> None:
    """`allow` lets pass, marked as degraded, with the reset that was told; `deny` refuses; nothing is charged."""
    edge = attached()
    edge.waits(needs("daily", key="known"))
    edge.answer(GroupAnswer(1, (admitted(9, HOUR_NS),)))
    told_over(edge, HOUR_NS)
    edge.lose()
    away = edge.ask(needs("daily", key="known"))
    assert (away.allowed, away.reason, away.degraded) == (False, "unavailable", True)
    used = edge.ask(needs("daily"))
    assert (used.allowed, used.reason, used.degraded) == (False, "over_limit", False)
    lenient = replace(rule("daily"), when_unavailable=(Stage(Fallback.ALLOW),))
    passed = edge.ask(Application(lenient, ("other",), 3))
    assert (passed.allowed, passed.degraded, passed.remaining) == (True, True, None)
