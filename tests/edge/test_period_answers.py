"""What every door says of a quota of a period: its limit, what is left, and the reset."""

from dataclasses import replace

import pytest
from envoy.service.ratelimit.v3 import rls_pb2

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.errors import ProtocolError
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.core.periods import Unit
from apportion.edge.asking import Answer
from apportion.edge.http_fields import decision_fields
from apportion.edge.limiter_answer import from_response, to_response
from apportion.edge.rls_answer import AnswerWriter
from apportion.proto.v1 import limiter_pb2
from tests.edge.by_hand import rule

RateLimit = rls_pb2.RateLimitResponse.RateLimit
RESET_NS = 3600 * EPOCH_NS + 1


def limit(unit: Unit = Unit.DAY, multiple: int = 1, anchor: PeriodAnchor = PeriodAnchor.CALENDAR) -> PeriodLimit:
    """Ten in a period."""
    return PeriodLimit(10, multiple, unit, anchor, "Europe/Berlin" if anchor is PeriodAnchor.CALENDAR else "UTC")


def answer(of: PeriodLimit, left: int, allowed: bool = True) -> Answer:
    """A decision by one rule with that limit, which resets in an hour and a nanosecond."""
    verdict = Verdict(
        replace(rule("daily"), limit=of),
        ("k",),
        1,
        allowed,
        allowed,
        left,
        Scope.REGION,
        0 if allowed else RESET_NS,
        RESET_NS,
        None if allowed else Reason.OVER_LIMIT,
        7 if allowed else None,
    )
    return Answer(Decision(allowed, (verdict,)), [(0,)])


def test_http_says_the_allowance_its_period_and_the_time_it_must_do_for() -> None:
    """What is left must do until the reset, in whole seconds rounded up; who is refused waits for it."""
    fields = decision_fields(answer(limit(), 4).decision, "id")
    assert fields["RateLimit-Policy"] == '"daily";q=10;w=86400'
    assert fields["RateLimit"] == '"daily";a=4;w=3601;r=4;t=3601;apportion-scope=region'
    assert "Retry-After" not in fields
    refused = decision_fields(answer(limit(), 0, allowed=False).decision, "id")
    assert refused["RateLimit"] == '"daily";a=0;w=3601;r=0;t=3601;apportion-scope=region'
    assert refused["Retry-After"] == "3601"


@pytest.mark.parametrize(
    "unit, multiple, told",
    [
        (Unit.SECOND, 1, RateLimit.SECOND),
        (Unit.MINUTE, 1, RateLimit.MINUTE),
        (Unit.HOUR, 1, RateLimit.HOUR),
        (Unit.DAY, 1, RateLimit.DAY),
        (Unit.WEEK, 1, RateLimit.WEEK),
        (Unit.MONTH, 1, RateLimit.MONTH),
        (Unit.YEAR, 1, RateLimit.YEAR),
        (Unit.HOUR, 6, RateLimit.UNKNOWN),
    ],
)
def test_rls_names_the_unit_where_it_has_a_word(unit: Unit, multiple: int, told: int) -> None:
    """And the time until the reset, to the nanosecond."""
    response = rls_pb2.RateLimitResponse.FromString(AnswerWriter().write(answer(limit(unit, multiple), 4), "id", 1))
    (status,) = response.statuses
    assert (status.current_limit.unit, status.current_limit.requests_per_unit) == (told, 10)
    assert status.limit_remaining == 4
    assert (status.duration_until_reset.seconds, status.duration_until_reset.nanos) == (3600, 1)


@pytest.mark.parametrize("anchor", PeriodAnchor)
def test_a_limiter_elsewhere_has_the_same_decision(anchor: PeriodAnchor) -> None:
    """Limit, what is left and reset come through the message as they went in."""
    given = answer(limit(Unit.HOUR, 6, anchor), 4)
    told = from_response(limiter_pb2.DecideResponse.FromString(to_response(given, "id").SerializeToString()))
    assert told.limit == given.decision.limit
    assert (told.remaining, told.reset_after, told.retry_after) == (4, given.decision.reset_after, 0.0)


@pytest.mark.parametrize(
    "periods",
    [
        limiter_pb2.Periods(multiple=1, unit="day"),
        limiter_pb2.Periods(anchor=limiter_pb2.ANCHOR_CALENDAR, multiple=1, unit="fortnight"),
        limiter_pb2.Periods(anchor=limiter_pb2.ANCHOR_CALENDAR, multiple=0, unit="day"),
    ],
)
def test_periods_that_cannot_be_are_refused_in_words(periods: limiter_pb2.Periods) -> None:
    """No traceback for whoever asked."""
    response = to_response(answer(limit(), 4), "id")
    response.verdicts[0].limit.periods.CopyFrom(periods)
    with pytest.raises(ProtocolError, match="a limit that cannot be"):
        from_response(response)
