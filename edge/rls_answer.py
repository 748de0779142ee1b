"""Answers of the RLS door: a decision as the bytes of a RateLimitResponse.

`dynamic_metadata` says what was decided and what was charged under which epoch's label, so that a client can check
the global sum by itself. Whole numbers in it are doubles, as everywhere in a Struct: exact up to 2^53, which neither
an epoch's label nor an admitted cost reaches.
"""

from __future__ import annotations

from hashlib import blake2b

from envoy.config.core.v3 import base_pb2
from envoy.service.ratelimit.v3 import rls_pb2
from google.protobuf.duration_pb2 import Duration

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.limit import EPOCH_NS, MINUTE_NS, PeriodLimit, Unlimited
from apportion.core.periods import Unit
from apportion.core.rule import Rule
from apportion.edge.asking import Answer
from apportion.edge.http_fields import retry_after_s
from apportion.edge.struct_bytes import boolean, field, key, number, record, sized, text, values

UINT32_MAX = 2**32 - 1
"""What `limit_remaining` and `requests_per_unit` can say; more is said as this."""

KEY_TEXT_MAX = 256
"""Characters of a key's value that are repeated in metadata; of a longer one, its digest."""

RULES_MAX = 10_000
"""Rules of which the written parts are remembered; rules in force are fewer, former ones go when it is full."""

_Response = rls_pb2.RateLimitResponse
_Status = _Response.DescriptorStatus
_OK = _Response.OK
_OVER_LIMIT = _Response.OVER_LIMIT
_METADATA = b"\x32"  # tag of dynamic_metadata
_UNITS = {
    EPOCH_NS: _Response.RateLimit.SECOND,
    MINUTE_NS: _Response.RateLimit.MINUTE,
    60 * MINUTE_NS: _Response.RateLimit.HOUR,
    24 * 60 * MINUTE_NS: _Response.RateLimit.DAY,
    7 * 24 * 60 * MINUTE_NS: _Response.RateLimit.WEEK,
}
_PERIOD_UNITS = {
    Unit.SECOND: _Response.RateLimit.SECOND,
    Unit.MINUTE: _Response.RateLimit.MINUTE,
    Unit.HOUR: _Response.RateLimit.HOUR,
    Unit.DAY: _Response.RateLimit.DAY,
    Unit.WEEK: _Response.RateLimit.WEEK,
    Unit.MONTH: _Response.RateLimit.MONTH,
    Unit.YEAR: _Response.RateLimit.YEAR,
}
_CHARGED, _COST, _DECISION_ID, _EPOCH, _KEY, _REASON, _RULE, _SCOPE, _WOULD_DENY = map(
    key, ("charged", "cost", "decision_id", "epoch", "key", "reason", "rule", "remaining_scope", "would_deny")
)
_IS_SHADOW = field(key("shadow"), boolean(True))
_DEGRADED = {flag: field(key("degraded"), boolean(flag)) for flag in (False, True)}
_SCOPES = {scope: field(_SCOPE, text(scope.value)) for scope in Scope}
_REASONS = {reason: field(_REASON, text(reason.value)) for reason in Reason}


class AnswerWriter:
    """Writes answers; remembers what is the same in every answer about a rule."""

    def __init__(self) -> None:
        self._limits: dict[int, tuple[Rule, rls_pb2.RateLimitResponse.RateLimit, bytes]] = {}

    def write(self, answer: Answer, decision_id: str, descriptors: int) -> bytes:
        """A serialised RateLimitResponse with one status for each of `descriptors` descriptors."""
        decision = answer.decision
        if descriptors == 1:
            statuses = [self._status(decision)]
        else:
            statuses = [self._status(answer.of_descriptor(index)) for index in range(descriptors)]
        response = _Response(overall_code=_OK if decision.allowed else _OVER_LIMIT, statuses=statuses)
        if not decision.allowed:
            response.response_headers_to_add.extend(_headers(decision))
        # Two serialised parts of a message, one after the other, are the message.
        whole: bytes = response.SerializeToString() + self._metadata(decision, decision_id)
        return whole

    def _status(self, decision: Decision) -> rls_pb2.RateLimitResponse.DescriptorStatus:
        """The status of one descriptor: OVER_LIMIT by its own rules alone, and the numbers of the one that decides.

        `limit_remaining` is 0 also where nobody knows it: a caller that slows down for nothing asks again.
        """
        verdict = decision.deciding
        code = _OK if decision.allowed else _OVER_LIMIT
        if verdict is None:
            return _Status(code=code)
        return _Status(
            code=code,
            current_limit=self._rule(verdict.rule)[1],
            limit_remaining=min(verdict.remaining or 0, UINT32_MAX),
            duration_until_reset=Duration(
                seconds=verdict.reset_after_ns // EPOCH_NS, nanos=verdict.reset_after_ns % EPOCH_NS
            ),
        )

    def _metadata(self, decision: Decision, decision_id: str) -> bytes:
        verdicts = decision.verdicts
        fields = [
            field(_DECISION_ID, text(decision_id)),
            _DEGRADED[decision.degraded],
            field(_CHARGED, values([self._charged(verdict) for verdict in verdicts if verdict.charged])),
        ]
        if would_deny := decision.would_deny:
            fields.append(field(_WOULD_DENY, values([text(rule) for rule in would_deny])))
        verdict = decision.deciding
        if verdict is not None:
            fields.append(self._rule(verdict.rule)[2])
            if verdict.remaining is not None:
                fields.append(_SCOPES[verdict.scope])
            if verdict.reason is not None:
                fields.append(_REASONS[verdict.reason])
        return sized(_METADATA, b"".join(fields))

    def _charged(self, verdict: Verdict) -> bytes:
        """What a rule was charged. Without `epoch` where there are no labels, as on an edge without a region."""
        fields = [
            self._rule(verdict.rule)[2],
            field(_KEY, values([text(_shown(value)) for value in verdict.key])),
            field(_COST, number(verdict.cost)),
            _DEGRADED[verdict.degraded],
        ]
        if verdict.shadow:
            fields.append(_IS_SHADOW)
        if verdict.epoch is not None:
            fields.append(field(_EPOCH, number(verdict.epoch)))
        return record(fields)

    def _rule(self, rule: Rule) -> tuple[Rule, rls_pb2.RateLimitResponse.RateLimit, bytes]:
        """A rule with its limit as RLS has it, and its name as a field of metadata."""
        # By identity, since a rule hashes all it holds; the rule is kept beside, so that its id is not used again.
        found = self._limits.get(id(rule))
        if found is None:
            if len(self._limits) >= RULES_MAX:
                self._limits.clear()
            found = self._limits[id(rule)] = (rule, current_limit(rule), field(_RULE, text(rule.name)))
        return found


def current_limit(rule: Rule) -> rls_pb2.RateLimitResponse.RateLimit:
    """A rule's limit as RLS can say it: units of a period that has a name. Another period's unit is UNKNOWN."""
    limit, unit = rule.limit, _Response.RateLimit.UNKNOWN
    assert not isinstance(limit, Unlimited), "of other rules there is no verdict to tell"
    if not isinstance(limit, PeriodLimit):
        unit = _UNITS.get(limit.period_ns, unit)
    elif limit.multiple == 1:
        unit = _PERIOD_UNITS[limit.unit]
    return _Response.RateLimit(name=rule.name, requests_per_unit=min(limit.units, UINT32_MAX), unit=unit)


def _headers(decision: Decision) -> list[base_pb2.HeaderValue]:
    """Headers for who was refused. No retry-after where waiting cannot help."""
    verdict = decision.deciding
    assert verdict is not None and verdict.reason is not None, "a refusal has a rule that refused, and why"
    headers = [base_pb2.HeaderValue(key="x-apportion-reason", value=verdict.reason.value)]
    wait = retry_after_s(decision)
    if wait is not None:
        headers.append(base_pb2.HeaderValue(key="retry-after", value=str(wait)))
    return headers


def _shown(value: str) -> str:
    """A key's value for metadata: another's 2 MiB of text are not sent back."""
    if len(value) <= KEY_TEXT_MAX:
        return value
    return "blake2b:" + blake2b(value.encode(), digest_size=32).hexdigest()
