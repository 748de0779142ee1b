"""A decision in its written forms: as the message of `apportion.v1.Limiter`, read back from it, and as one JSON object.

Translates and nothing else. The object is what `apportion decide --json` prints and `POST /v1/decide` answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from google.protobuf.duration_pb2 import Duration

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.errors import ProtocolError
from apportion.core.limit import EPOCH_NS, Finite, PeriodAnchor, PeriodLimit, RateLimit, Unlimited
from apportion.core.periods import Unit
from apportion.core.request import COST_MAX
from apportion.core.rule import Rule
from apportion.edge.asking import Answer
from apportion.proto.v1 import limiter_pb2

_REASONS = {
    None: limiter_pb2.REASON_UNSPECIFIED,
    Reason.OVER_LIMIT: limiter_pb2.REASON_OVER_LIMIT,
    Reason.IMPOSSIBLE: limiter_pb2.REASON_IMPOSSIBLE,
    Reason.UNAVAILABLE: limiter_pb2.REASON_UNAVAILABLE,
    Reason.KEYS_FULL: limiter_pb2.REASON_KEYS_FULL,
    Reason.PENDING: limiter_pb2.REASON_PENDING,
    Reason.UNLISTED: limiter_pb2.REASON_UNLISTED,
}
_SCOPES = {Scope.EDGE: limiter_pb2.REMAINING_SCOPE_EDGE, Scope.REGION: limiter_pb2.REMAINING_SCOPE_REGION}
_ANCHORS = {
    PeriodAnchor.CALENDAR: limiter_pb2.ANCHOR_CALENDAR,
    PeriodAnchor.FIRST_USE: limiter_pb2.ANCHOR_FIRST_USE,
    PeriodAnchor.ROLLING: limiter_pb2.ANCHOR_ROLLING,
}
_REASONS_BACK = {number: reason for reason, number in _REASONS.items()}
_SCOPES_BACK = {number: scope for scope, number in _SCOPES.items()}
_ANCHORS_BACK = {number: anchor for anchor, number in _ANCHORS.items()}


@dataclass(frozen=True, slots=True)
class NamedRule:
    """What an edge tells of a rule. In the place of a `Rule`, whose other fields a caller elsewhere cannot know."""

    domain: str
    name: str
    limit: Finite
    shadow: bool = False


def to_response(answer: Answer, decision_id: str) -> limiter_pb2.DecideResponse:
    """A decision as a message."""
    decision = answer.decision
    return limiter_pb2.DecideResponse(
        allowed=decision.allowed,
        decision_id=decision_id,
        deciding_rule=decision.rule,
        verdicts=[_to_message(verdict) for verdict in decision.verdicts],
        degraded=decision.degraded,
    )


def from_response(response: limiter_pb2.DecideResponse, domain: str = "") -> Decision:
    """The decision that a message tells. The rules of its verdicts are `NamedRule`s. ProtocolError for nonsense."""
    try:
        verdicts = tuple(_from_message(verdict, domain) for verdict in response.verdicts)
    except ValueError as error:
        raise ProtocolError(f"the edge's answer has a limit that cannot be: {error}") from error
    if not response.allowed and all(verdict.allowed or verdict.shadow for verdict in verdicts):
        raise ProtocolError("the edge's answer refuses without a rule that does")
    return Decision(response.allowed, verdicts)


def as_object(decision: Decision, decision_id: str) -> dict[str, object]:
    """A decision as a JSON object: times in seconds, null where there is nothing to say."""
    return {
        "allowed": decision.allowed,
        "decision_id": decision_id,
        "rule": decision.rule,
        "degraded": decision.degraded,
        "rules": [verdict_object(verdict) for verdict in decision.verdicts],
    }


def verdict_object(verdict: Verdict) -> dict[str, object]:
    """What one rule said, as a JSON object."""
    retry_ns = verdict.retry_after_ns
    known = verdict.remaining is not None
    return {
        "rule": verdict.rule.name,
        "key": list(verdict.key),
        "cost": min(verdict.cost, COST_MAX),
        "allowed": verdict.allowed,
        "charged": verdict.charged,
        "remaining": verdict.remaining,
        "remaining_scope": verdict.scope.value if known else None,
        "retry_after": None if retry_ns is None else retry_ns / EPOCH_NS,
        "reset_after": verdict.reset_after_ns / EPOCH_NS,
        "reason": verdict.reason.value if verdict.reason else None,
        "epoch": verdict.epoch,
        "degraded": verdict.degraded,
        "shadow": verdict.shadow,
    }


def _to_message(verdict: Verdict) -> limiter_pb2.RuleVerdict:
    limit = verdict.rule.limit
    assert not isinstance(limit, Unlimited), "of other rules there is no verdict to tell"
    known = verdict.remaining is not None
    return limiter_pb2.RuleVerdict(
        rule=verdict.rule.name,
        key=verdict.key,
        cost=min(verdict.cost, COST_MAX),
        allowed=verdict.allowed,
        charged=verdict.charged,
        remaining=verdict.remaining,
        remaining_scope=_SCOPES[verdict.scope] if known else limiter_pb2.REMAINING_SCOPE_UNSPECIFIED,
        retry_after=None if verdict.retry_after_ns is None else _duration(verdict.retry_after_ns),
        reset_after=_duration(verdict.reset_after_ns),
        reason=_REASONS[verdict.reason],
        epoch=verdict.epoch,
        degraded=verdict.degraded,
        limit=_limit_message(limit),
        shadow=verdict.shadow,
    )


def _from_message(message: limiter_pb2.RuleVerdict, domain: str) -> Verdict:
    return Verdict(
        cast(Rule, NamedRule(domain, message.rule, _limit(message.limit), message.shadow)),
        tuple(message.key),
        message.cost,
        allowed=message.allowed,
        charged=message.charged,
        remaining=message.remaining if message.HasField("remaining") else None,
        scope=_SCOPES_BACK.get(message.remaining_scope, Scope.EDGE),
        retry_after_ns=_nanoseconds(message.retry_after) if message.HasField("retry_after") else None,
        reset_after_ns=_nanoseconds(message.reset_after),
        reason=_reason(message),
        epoch=message.epoch if message.HasField("epoch") else None,
        degraded=message.degraded,
    )


def _limit_message(limit: Finite) -> limiter_pb2.Limit:
    if isinstance(limit, RateLimit):
        return limiter_pb2.Limit(units=limit.units, period=_duration(limit.period_ns), burst=limit.burst)
    periods = limiter_pb2.Periods(
        anchor=_ANCHORS[limit.anchor],
        multiple=limit.multiple,
        unit=limit.unit.value,
        time_zone=limit.zone if limit.anchor is PeriodAnchor.CALENDAR else "",
    )
    return limiter_pb2.Limit(units=limit.units, period=_duration(limit.length_ns), burst=limit.largest, periods=periods)


def _limit(message: limiter_pb2.Limit) -> Finite:
    """The limit; of a quota of a period without the days on which its weeks and months begin, which nobody tells.
    ValueError: it cannot be.
    """
    if not message.HasField("periods"):
        return RateLimit(message.units, _nanoseconds(message.period), message.burst)
    periods = message.periods
    if periods.anchor not in _ANCHORS_BACK:
        raise ValueError("its periods have no anchor that this version knows")
    anchor = _ANCHORS_BACK[periods.anchor]
    return PeriodLimit(message.units, periods.multiple, Unit(periods.unit), anchor, periods.time_zone or "UTC")


def _reason(message: limiter_pb2.RuleVerdict) -> Reason | None:
    if message.allowed:
        return Reason.PENDING if message.reason == limiter_pb2.REASON_PENDING else None
    # A reason of a later version is one that this version cannot act on better than on the commonest.
    return _REASONS_BACK.get(message.reason, Reason.OVER_LIMIT) or Reason.OVER_LIMIT


def _duration(nanoseconds: int) -> Duration:
    return Duration(seconds=nanoseconds // EPOCH_NS, nanos=nanoseconds % EPOCH_NS)


def _nanoseconds(duration: Duration) -> int:
    return duration.seconds * EPOCH_NS + duration.nanos
