"""HTTP response fields that say what was decided: `Retry-After`, the IETF's `RateLimit` and `RateLimit-Policy`, ours.

Pure: decisions in, texts out. Whole seconds are rounded up, so that who waits exactly as told is admitted.
"""

from __future__ import annotations

from apportion.core.decision import Decision, Reason, Verdict
from apportion.core.limit import EPOCH_NS, PeriodLimit, Unlimited, ceil_div

# The IETF's fields are those of draft-ietf-httpapi-ratelimit-headers-12 (20 November 2026), as its working copy of
# 15 August 2026 has them: lists of Strings (RFC 9651), one for each policy, with parameters. Where it says `a`
# (available quota) and `w` (effective window) in RateLimit, drafts 08 to 11 say `r` and `t`. Readers of each ignore
# parameters they do not know, so both pairs are sent. The names of rules need no escape in a String, nor in a header.

POLICIES_MAX = 8
"""Rules that the fields name, the deciding one first: proxies allow a response 4 to 8 KiB of header."""

INTEGER_MAX = 999_999_999_999_999
"""The largest Integer of a structured field."""


def retry_after_s(decision: Decision) -> int | None:
    """Whole seconds that a refused lone caller waits, at least 1; None when it was allowed or waiting cannot help."""
    verdict = decision.deciding
    if decision.allowed or verdict is None or verdict.retry_after_ns is None:
        return None
    return max(1, ceil_div(verdict.retry_after_ns, EPOCH_NS))


def decision_fields(decision: Decision, decision_id: str) -> dict[str, str]:
    """Every field of an answer to a request with this decision, by name."""
    fields = {"X-Apportion-Decision-Id": decision_id}
    verdict = decision.deciding
    if decision.degraded:
        fields["X-Apportion-Degraded"] = "true"
    if verdict is None:
        return fields
    fields["X-Apportion-Rule"] = verdict.rule.name
    if verdict.reason is not None:
        fields["X-Apportion-Reason"] = verdict.reason.value
    wait = retry_after_s(decision)
    if wait is not None:
        fields["Retry-After"] = str(wait)
    spoken = _most_telling(decision, verdict)
    policies = [item for item in map(_policy, spoken) if item]
    if policies:
        fields["RateLimit-Policy"] = ", ".join(policies)
    limits = [item for item in map(_service_limit, spoken) if item]
    if limits:
        fields["RateLimit"] = ", ".join(limits)
    return fields


def is_shortage(decision: Decision) -> bool:
    """Whether a refusal is nothing that the caller did: nobody could decide, or there was no room to count it."""
    verdict = decision.deciding
    return verdict is not None and verdict.reason in (Reason.UNAVAILABLE, Reason.KEYS_FULL)


def _most_telling(decision: Decision, deciding: Verdict) -> list[Verdict]:
    """The deciding verdict and others of like outcome, each rule once, at most POLICIES_MAX.

    Of a refused request only what refused it is told: a window may not end after Retry-After does.
    """
    by_rule = {deciding.rule.name: deciding}
    for verdict in decision.verdicts:
        if verdict.allowed == decision.allowed and not verdict.shadow:
            by_rule.setdefault(verdict.rule.name, verdict)
    return list(by_rule.values())[:POLICIES_MAX]


def _policy(verdict: Verdict) -> str | None:
    """What the rule gives in which time: of a quota of months or years, as long as its first one."""
    limit = verdict.rule.limit
    if isinstance(limit, Unlimited):
        return None
    quota = min(limit.units, INTEGER_MAX)
    if isinstance(limit, PeriodLimit):
        return f'"{verdict.rule.name}";q={quota};w={ceil_div(limit.length_ns, EPOCH_NS)}'
    window, burst = ceil_div(limit.period_ns, EPOCH_NS), min(limit.burst, INTEGER_MAX)
    return f'"{verdict.rule.name}";q={quota};w={window};apportion-burst={burst}'


def _service_limit(verdict: Verdict) -> str | None:
    """What is left and for how long it must do; None where nobody knows what is left.

    That is until the next unit comes: of a rate not until the allowance is whole, for who waited for that would wait
    too long; of a quota of a period until it resets.
    """
    limit = verdict.rule.limit
    if verdict.remaining is None or isinstance(limit, Unlimited):
        return None
    left = min(verdict.remaining, INTEGER_MAX)
    wait_ns = verdict.retry_after_ns
    if verdict.allowed:
        wait_ns = verdict.reset_after_ns
        if not isinstance(limit, PeriodLimit):
            wait_ns = ceil_div(limit.period_ns, max(limit.units, 1))
    if wait_ns is None:
        return f'"{verdict.rule.name}";a={left};r={left};apportion-scope={verdict.scope.value}'
    window = max(1, ceil_div(wait_ns, EPOCH_NS))
    return f'"{verdict.rule.name}";a={left};w={window};r={left};t={window};apportion-scope={verdict.scope.value}'
